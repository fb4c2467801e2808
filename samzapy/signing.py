"""How a request proves that it comes from the run: HMAC-SHA256 over method, path, time, nonce and the body's SHA-256, with the run's token.

The token itself is never sent. What is signed is all in the head, so a request is let in or refused before its body is read; the body must
then be the one whose SHA-256 was signed. Refused is what is not signed, is older than five minutes, or was seen before.
Source of the construction: RFC 2104 (HMAC).
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections import OrderedDict
from collections.abc import Mapping

MAX_AGE_S = 300.0
MAX_NONCES = 200_000
TIME, NONCE, BODY, SIGNATURE = "X-Samzapy-Time", "X-Samzapy-Nonce", "X-Samzapy-Body", "X-Samzapy-Signature"
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
            return "too old"
        if nonce in self._seen:
            return "seen before"
        self._seen[nonce] = now_s
        while self._seen and (len(self._seen) > MAX_NONCES or now_s - next(iter(self._seen.values())) > 2 * MAX_AGE_S):
            self._seen.popitem(last=False)
        return ""
