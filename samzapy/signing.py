"""How a request proves that it comes from the run: HMAC-SHA256 over method, path, time, nonce and the body's SHA-256, with the run's token.

The token itself is never sent. What is signed is all in the head, so a request is let in or refused before its body is read; the body must
then be the one whose SHA-256 was signed. Refused is what is not signed, is older than five minutes, or was seen before.

Both sides tell the time by their monotonic clocks, from what the wall clock said at their start: a step of the wall clock changes nothing. A
genuine request of another time is answered with the time here, signed together with that request's nonce; who asked corrects its time by it
and asks again. So hosts' clocks may differ by any amount, and still no request can be repeated later.
Source of the construction: RFC 2104 (HMAC).
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from email.message import Message

MAX_AGE_S = 300.0
MAX_NONCES = 200_000
TIME, NONCE, BODY, SIGNATURE = "X-Samzapy-Time", "X-Samzapy-Nonce", "X-Samzapy-Body", "X-Samzapy-Signature"
ANSWER = "ANSWER"  # in the place of a request's method
TOO_OLD = "too old"
NOT_SIGNED = "not signed with this run's token"


def sign(token: str, method: str, path: str, time_s: str, nonce: str, body_sha256: str) -> str:
    """The signature, in hexadecimal."""
    text = "\n".join((method, path, time_s, nonce, body_sha256))
    return hmac.new(token.encode(), text.encode(), hashlib.sha256).hexdigest()


def signed_headers(token: str, method: str, path: str, body: bytes, now_s: float) -> dict[str, str]:
    """The headers that sign a request. `now_s`: seconds since 1970."""
    time_s, nonce, digest = f"{now_s:.3f}", secrets.token_hex(12), hashlib.sha256(body).hexdigest()
    return {TIME: time_s, NONCE: nonce, BODY: digest, SIGNATURE: sign(token, method, path, time_s, nonce, digest)}


def is_signed_body(headers: Mapping[str, str], body: bytes) -> bool:
    """Whether a body is the one that the signed headers name."""
    return hmac.compare_digest(hashlib.sha256(body).hexdigest().encode(), headers.get(BODY, "").encode())


class SteadyTime:
    """Seconds since 1970: the wall clock's when this was made, and from then on by the monotonic clock.

    Args:
        wall, monotonic: read in seconds.
    """

    def __init__(self, wall: Callable[[], float] = time.time, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._base_s = wall() - monotonic()

    def now(self) -> float:
        return self._base_s + self._monotonic()

    def set(self, now_s: float) -> float:
        """It is this late now; returns by how many seconds that is later than it was here."""
        ahead_s = now_s - self.now()
        self._base_s += ahead_s
        return ahead_s


def time_headers(token: str, path: str, request: Mapping[str, str], refused: str, now_s: float) -> dict[str, str]:
    """The headers of the answer to a request that was refused for this reason: the time here, if its own time was the reason."""
    if refused != TOO_OLD:
        return {}
    time_s = f"{now_s:.3f}"
    return {TIME: time_s, SIGNATURE: sign(token, ANSWER, path, time_s, request.get(NONCE, ""), "")}


def told_time(token: str, path: str, request: Mapping[str, str], answer: Message) -> float | None:
    """The time at the other end, in seconds since 1970, from the headers of its answer to this request; None if it tells none, or somebody else does."""
    time_s, signature = str(answer.get(TIME, "")), str(answer.get(SIGNATURE, ""))
    expected = sign(token, ANSWER, path, time_s, request.get(NONCE, ""), "")
    if not hmac.compare_digest(expected.encode(), signature.encode()):
        return None
    try:
        return float(time_s)
    except ValueError:
        return None


class Gate:
    """Lets each genuine request in once. Used under one lock by its owner."""

    def __init__(self, token: str) -> None:
        self._token = token
        self._seen: OrderedDict[str, float] = OrderedDict()

    def why_not(self, method: str, path: str, headers: Mapping[str, str], now_s: float) -> str:
        """Why a request is refused, by its head; "" if it is let in. The body is still to be compared: `is_signed_body`."""
        time_s, nonce = headers.get(TIME, ""), headers.get(NONCE, "")
        expected = sign(self._token, method, path, time_s, nonce, headers.get(BODY, ""))
        if not hmac.compare_digest(expected.encode(), headers.get(SIGNATURE, "").encode()):
            return NOT_SIGNED
        try:
            age = abs(now_s - float(time_s))
        except ValueError:
            return "no time"
        if not age <= MAX_AGE_S:
            return TOO_OLD
        if nonce in self._seen:
            return "seen before"
        self._seen[nonce] = now_s
        while self._seen and (len(self._seen) > MAX_NONCES or now_s - next(iter(self._seen.values())) > 2 * MAX_AGE_S):
            self._seen.popitem(last=False)
        return ""
