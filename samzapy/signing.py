"""How a control request proves that it comes from the run: HMAC-SHA256 over method, path, time, nonce and body, with the run's token.

A request is refused that is not signed, is older than five minutes, or was seen before. Source of the construction: RFC 2104 (HMAC).
"""

from __future__ import annotations

import hashlib
import hmac
from collections import OrderedDict

MAX_AGE_S = 300.0
MAX_NONCES = 200_000


def sign(token: str, method: str, path: str, time_s: str, nonce: str, body: bytes) -> str:
    """The signature, in hexadecimal."""
    text = "\n".join((method, path, time_s, nonce, hashlib.sha256(body).hexdigest()))
    return hmac.new(token.encode(), text.encode(), hashlib.sha256).hexdigest()


class Gate:
    """Lets each genuine request in once. Used under one lock by its owner."""

    def __init__(self, token: str) -> None:
        self._token = token
        self._seen: OrderedDict[str, float] = OrderedDict()

    def why_not(self, method: str, path: str, time_s: str, nonce: str, signature: str, body: bytes, now_s: float) -> str:
        """Why a request is refused; "" if it is let in."""
        expected = sign(self._token, method, path, time_s, nonce, body)
        if not hmac.compare_digest(expected.encode(), signature.encode()):
            return "not signed with this run's token"
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
