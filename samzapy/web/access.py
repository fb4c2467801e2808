"""Who may do what: tokens of two kinds, derived from the run's own, in a header and nowhere else.

No cookie is set or read, and no token is taken from a URL: so a browser sends nothing on its own, and other jobs on this host, which share its
cookies, see nothing. The command line signs its requests with the run's token and sends none.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from urllib.parse import urlsplit

from starlette.requests import Request

from samzapy.coordinator.control_app import signature_check
from samzapy.coordinator.door import peer_of
from samzapy.coordinator.http import knows
from samzapy.signing import SIGNATURE

MAX_WRONG, MAX_CHANGES, SPAN_S = 10, 20, 60.0
MAX_PEERS = 10_000


class May(IntEnum):
    """What a request may do; each includes those before it."""

    ANYTHING_OPEN = 0
    VIEW = 1
    OPERATE = 2


NAMES = {May.ANYTHING_OPEN: "anyone", May.VIEW: "view", May.OPERATE: "operate"}


def derived_token(token: str, may: May) -> str:
    """The token of that kind, of 43 characters; the run's own cannot be found from it."""
    made = hmac.new(token.encode(), f"samzapy {NAMES[may]}".encode(), hashlib.sha256).digest()
    return base64.urlsafe_b64encode(made).decode().rstrip("=")


@dataclass(frozen=True, slots=True)
class Refused:
    """A request that is not answered. `status`: HTTP's."""

    status: int
    why: str
    remedy: str = ""
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks. `is_signed`: the body is to be checked against the signature, too."""

    may: May
    peer: str
    is_signed: bool = False

    def __str__(self) -> str:
        return f"{'the command line' if self.is_signed else NAMES[self.may]} ({self.peer})"


class Access:
    """Decides on requests from their heads alone. Used on the listener's loop only. `fixed`: tokens that the job file gives, beside the run's."""

    def __init__(self, token: str, clock: Callable[[], float] = time.monotonic, fixed: Mapping[May, str] | None = None) -> None:
        self._own = [(derived_token(token, May.VIEW), May.VIEW), (derived_token(token, May.OPERATE), May.OPERATE), (token, May.OPERATE)]
        self._fixed = [(text, may) for may, text in (fixed or {}).items()]
        self._check = signature_check(token)
        self._wrong = Often(MAX_WRONG, clock)
        self._changes = Often(MAX_CHANGES, clock)

    def caller(self, request: Request, needed: May, *, changes: bool) -> Caller | Refused:
        """Who it is, if that is enough. `changes`: it may not come from another site's page."""
        peer = peer_of(request.client.host) if request.client else ""
        found = self._caller(request, peer)
        if isinstance(found, Refused):
            return found
        if found.may < needed:
            return self._not_enough(found, needed)
        if changes and self._is_foreign(request):
            return Refused(403, "another site's page asked for this")
        return found

    def change(self, caller: Caller) -> Refused | None:
        """Counts a change. Refused: there were too many from there."""
        if caller.is_signed or not self._changes.is_too_often(caller.peer):
            return None
        remedy = "Wait a minute; questions with `dry_run`, and the command line, are not counted."
        return Refused(429, f"more than {MAX_CHANGES} changes in a minute", remedy, headers=(("Retry-After", "60"),))

    def _caller(self, request: Request, peer: str) -> Caller | Refused:
        if SIGNATURE in request.headers:
            refused, more = self._check(request)
            return Refused(403, refused, headers=tuple(more.items())) if refused else Caller(May.OPERATE, peer, True)
        kind, _, given = request.headers.get("Authorization", "").partition(" ")
        if not given:
            return Caller(May.ANYTHING_OPEN, peer)
        token = given.strip().encode() if kind == "Bearer" else b""
        may = _found(token, self._own)  # nobody guesses one of these: whoever has it is answered, whatever others behind the same address try
        if may is None and self._wrong.has_been(peer):
            return Refused(429, f"more than {MAX_WRONG} wrong tokens in a minute", headers=(("Retry-After", "60"),))
        may = _found(token, self._fixed) if may is None else may
        if may is not None:
            knows(request, only_reads=may is May.VIEW)
            return Caller(may, peer)
        self._wrong.is_too_often(peer)
        return Refused(403, "this token is not one of this run's", "Each run has its own: `samzapy ui JOB.yaml` prints the address with it.")

    @staticmethod
    def _not_enough(found: Caller, needed: May) -> Refused:
        if found.may is May.ANYTHING_OPEN:
            remedy = "`samzapy ui JOB.yaml` prints the page's address with a token."
            return Refused(401, "a token is needed", remedy, (("WWW-Authenticate", 'Bearer realm="samzapy"'),))
        remedy = "`samzapy ui JOB.yaml` prints an address whose token gives all rights."
        return Refused(403, f"this token gives the right to {NAMES[found.may]}; the request needs the right to {NAMES[needed]}", remedy)

    def _is_foreign(self, request: Request) -> bool:
        """Whether a browser says that a page of another origin asks."""
        if request.headers.get("Sec-Fetch-Site", "same-origin") not in ("same-origin", "none"):
            return True
        origin = request.headers.get("Origin")
        if origin is None:
            return False
        return urlsplit(origin).netloc != request.headers.get("Host", "")


def _found(given: bytes, tokens: Sequence[tuple[str, May]]) -> May | None:
    """What the token may; each is compared, to its end, so that the time it takes tells nothing."""
    fit = [may for token, may in tokens if hmac.compare_digest(given, token.encode())]
    return max(fit, default=None)


class Often:
    """Counts by peer, over SPAN_S."""

    def __init__(self, limit: int, clock: Callable[[], float]) -> None:
        self._limit = limit
        self._clock = clock
        self._at: dict[str, deque[float]] = {}

    def has_been(self, peer: str) -> bool:
        """Whether the limit was reached."""
        at = self._at.get(peer)
        while at and self._clock() - at[0] > SPAN_S:
            at.popleft()
        return at is not None and len(at) >= self._limit

    def is_too_often(self, peer: str) -> bool:
        """Count one more, unless the limit was reached."""
        if self.has_been(peer):
            return True
        if peer not in self._at and len(self._at) >= MAX_PEERS:
            del self._at[next(iter(self._at))]
        self._at.setdefault(peer, deque()).append(self._clock())
        return False
