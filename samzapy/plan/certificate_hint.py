"""Whether people are to be told of the client certificate that a job shows Kafka: that it has expired, or soon will."""

from __future__ import annotations

from samzapy.plan.duration import duration
from samzapy.plan.finding import ACT, LOOK, Finding

SOON_S = 7 * 86_400.0
RENEW = (
    "Put a new certificate, with its key, in its place: each client that is made from then on reads it. `samzapy restart JOB.yaml` starts the containers "
    "of a running job again; a job that has ended has to be run again."
)


def certificate_finding(named: str, until: str, left_s: float) -> Finding | None:
    """`named`: the certificate, for people; `until`: when it expires, in words; `left_s`: seconds until then."""
    if left_s <= 0:
        sentence = f"The client certificate {named} expired at {until}: Kafka accepts no new connection with it."
        return Finding("certificate", ACT, sentence, {"expired_s": round(-left_s)}, RENEW)
    if left_s <= SOON_S:
        sentence = f"The client certificate {named} expires in {duration(left_s)}, at {until}: from then on Kafka accepts no new connection with it."
        return Finding("certificate", LOOK, sentence, {"left_s": round(left_s)}, RENEW)
    return None
