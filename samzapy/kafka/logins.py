"""Why a client cannot get in: what the library says of logins and of TLS on the side, in plain words.

A call that finds no broker to speak to only says that it timed out. That a broker refused the password, or that its certificate is not
accepted, librdkafka tells `error_cb`, and goes on trying for ever. It does not say what is wrong with a certificate; so the broker is asked
for it once more, by Python's own TLS. And of a broker that speaks TLS to a client that does not, it says nothing at all.
"""

from __future__ import annotations

import re
import socket
import ssl
from collections.abc import Mapping
from typing import Any

from confluent_kafka import KafkaError

from samzapy.api.errors import LogError, NotAuthenticated, TlsFailed
from samzapy.config.secrets import without_secrets
from samzapy.kafka.own_certificate import RENEWED, own_certificate
from samzapy.plan.certificate_hint import RENEW

PROBE_S = 3.0
_WHERE = re.compile(r"^(?:\w+://)?(?P<place>(?P<host>\[[^\]]*\]|[^\s:/]+):(?P<port>\d+))(?:/\w+)?: ")
_AFTER = re.compile(r" \(after \d+ms in state \w+[^)]*\)?$")
_OURS = re.compile(r"alert (?P<alert>[a-z ]*(?:certificate|unknown ca)[a-z ]*)")  # what a broker answers to a certificate that it does not accept
_OF_CLIENT = ("ssl.keystore.location", "ssl.certificate.location", "ssl.certificate.pem", "ssl_certificate")
_CA = "Set `ssl.ca.location` in `kafka:` to the file (PEM) of the authority that signed the broker's certificate."


class Refusals:
    """What one client heard of refused logins and failed TLS, until it got in."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._settings = settings
        self._own = own_certificate(settings)  # the client keeps to it, whatever is put in its place
        self._last: KafkaError | None = None

    def heard(self, error: KafkaError) -> None:
        """Give this to the client as `error_cb`."""
        if error.code() in (KafkaError._AUTHENTICATION, KafkaError._SSL) or _alert(error):
            self._last = error

    @property
    def is_heard(self) -> bool:
        return self._last is not None

    def forget(self) -> None:
        self._last = None

    def error(self, doing: str) -> LogError | None:
        """The error that says why `doing` does not succeed; None if nothing was heard."""
        if self._last is None:
            return None
        text = without_secrets(self._last.str())
        found = _WHERE.match(text)
        place = found["place"] if found else ""
        reason = _AFTER.sub("", text[found.end() :] if found else text).rstrip(". ")
        at = f" at {place}" if place else ""
        if alert := _alert(self._last):
            return TlsFailed(*self._own_refused(f"{doing}: the broker{at} does not accept", alert))
        if self._last.code() == KafkaError._SSL:
            certificate = certificate_problem(found["host"].strip("[]"), int(found["port"]), self._settings) if found else None
            what, remedy = certificate or (reason, f"Check the `ssl.` keys in `kafka:`. {_CA}")
            return TlsFailed(f"{doing}: no secure connection to the broker{at}: {what}.", remedy)
        user = self._settings.get("sasl.username")
        whose = f" of user {user!r}" if user and "***" not in without_secrets(str(user)) else ""
        mechanism = self._settings.get("sasl.mechanism", self._settings.get("sasl.mechanisms", "GSSAPI"))
        keys = "`sasl.oauthbearer.*`" if mechanism == "OAUTHBEARER" else "`sasl.username` and `sasl.password`"
        return NotAuthenticated(
            f"{doing}: Kafka{at} refused the login{whose}: {reason}.", f"Check {keys} in `kafka:`, and `sasl.mechanism` ({mechanism} now)."
        )

    def _own_refused(self, doing: str, alert: str) -> tuple[str, str]:
        """What is to be said of this client's own certificate, and what to do."""
        own = self._own
        if own is None or not own.has_expired:
            return f"{doing} this client's certificate, or wants one ({alert}).", _client_remedy(self._settings)
        newer = own_certificate(self._settings)
        return (
            f"{doing} the client certificate {own.named}, which expired at {own.until} ({alert}).",
            RENEW if newer is None or newer.has_expired else RENEWED,
        )


def _alert(error: KafkaError) -> str:
    """What the broker says of this client's certificate; "" if it is not about that. With TLS 1.3 that comes after the handshake, as a broken connection."""
    found = _OURS.search(error.str()) if error.code() in (KafkaError._TRANSPORT, KafkaError._SSL) else None
    return found["alert"].strip() if found else ""


def _client_remedy(settings: Mapping[str, Any]) -> str:
    named = next((key for key in _OF_CLIENT if settings.get(key)), None)
    if named is None:
        return "Set `ssl.keystore.location` and `ssl.keystore.password`, or `ssl.certificate.location` and `ssl.key.location`, in `kafka:`."
    return f"Check the certificate that `{named}` names: that it has not expired, and that the broker trusts the authority that signed it."


def certificate_problem(host: str, port: int, settings: Mapping[str, Any]) -> tuple[str, str] | None:
    """What is wrong with a broker's certificate, and what to do; None if this cannot be found out."""
    try:
        context = _context(settings)
        with socket.create_connection((host, port), PROBE_S) as plain, context.wrap_socket(plain, server_hostname=host):
            return None
    except ssl.SSLCertVerificationError as error:
        return _words(error, host)
    except ssl.SSLError as error:
        if error.reason == "WRONG_VERSION_NUMBER":
            return "the broker does not speak TLS there", "Check `security.protocol` in `kafka:`, and the port in `bootstrap.servers`."
        return None
    except (OSError, ValueError):
        return None


def _words(error: ssl.SSLCertVerificationError, host: str) -> tuple[str, str]:
    said = error.verify_message.rstrip(".")
    if error.verify_code == 10:
        return "its certificate has expired", "Give the broker a new certificate, or check this host's clock: if it is ahead, the certificate looks expired."
    if error.verify_code == 9:
        return "its certificate is not valid yet", "Check the clocks of this host and of the host that issued the certificate."
    if error.verify_code in (62, 64):
        return (
            f"its certificate is not for {host} ({said})",
            "Name the broker in `bootstrap.servers` (and its `advertised.listeners`) as its certificate does.",
        )
    if error.verify_code in (18, 19, 20, 21):
        return f"its certificate is signed by an authority that is not trusted here ({said})", _CA
    return f"its certificate is not accepted ({said})", _CA


def _context(settings: Mapping[str, Any]) -> ssl.SSLContext:
    pem, file = settings.get("ssl.ca.pem"), settings.get("ssl.ca.location")
    if pem:
        context = ssl.create_default_context(cadata=str(pem))
    else:
        context = ssl.create_default_context(cafile=str(file) if file else None)
    context.check_hostname = settings.get("ssl.endpoint.identification.algorithm", "https") != "none"
    return context


def silent_broker(settings: Mapping[str, Any]) -> str:
    """Why a broker may not answer that takes connections; "" if none does, or nothing is found."""
    protocol = str(settings.get("security.protocol", "plaintext")).upper()
    for server in str(settings.get("bootstrap.servers", "")).split(","):
        found = _WHERE.match(server.strip() + ": ")
        if found is None:
            continue
        host, port = found["host"].strip("[]"), int(found["port"])
        if protocol in ("PLAINTEXT", "SASL_PLAINTEXT"):
            if _speaks_tls(host, port):
                return f"{found['place']} speaks TLS, and `security.protocol` is {protocol}: set it to SSL or SASL_SSL."
        elif _takes_connections(host, port):
            return f"{found['place']} accepts connections: check that it uses `security.protocol: {protocol}`."
    return ""


def _speaks_tls(host: str, port: int) -> bool:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE  # nothing is said to it: only whether it answers
    try:
        with socket.create_connection((host, port), PROBE_S) as plain, context.wrap_socket(plain):
            return True
    except (OSError, ValueError):
        return False


def _takes_connections(host: str, port: int) -> bool:
    try:
        socket.create_connection((host, port), PROBE_S).close()
    except OSError:
        return False
    return True
