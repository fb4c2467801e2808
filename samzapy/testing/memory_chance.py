"""What goes wrong by chance, drawn from a seed.

A Chance with no odds draws nothing and lets nothing happen, so a cluster without one is a perfect one. All draws of a cluster come from one
generator in the order of its requests, so a run repeats itself exactly when its actors are scheduled in the same order; something that has
no odds takes no draw.
"""

from __future__ import annotations

import random
from collections.abc import Mapping

REQUESTS = ("init", "add", "produce", "end", "bounds", "admin")
FATES = {
    "request_lost": "it never arrives; the client notices after the request timeout",
    "reply_lost": "it is carried out; the client hears nothing and notices after the request timeout",
    "held": "the client gives up waiting for it, and later it arrives and is carried out all the same",
    "slow": "it is carried out at once; the reply takes its time",
}
OTHERS = {
    "marker.late": "a partition gets the marker of a decided transaction only later",
    "timeout.late": "the broker looks at a transaction's age only some time after its timeout",
    "linger": "a record waits in the client until the next send or flush",
    "outage": "with this request the client loses the cluster for a while",
    "fetch.empty": "a poll brings nothing although there is something",
    "fetch.short": "a poll brings less than there is",
}
LONGEST_S = {"held": 20.0, "slow": 3.0, "marker.late": 2.0, "timeout.late": 10.0, "outage": 30.0}


class Chance:
    """Odds by name: `<request>.<fate>` of REQUESTS and FATES, or one of OTHERS; with them how long a delay of each kind may last.

    Raises:
        ValueError: a name that means nothing, or odds outside 0 to 1.
    """

    def __init__(self, seed: int, odds: Mapping[str, float] | None = None, longest_s: Mapping[str, float] | None = None) -> None:
        self.seed = seed
        self._random = random.Random(seed)
        self._odds = {name: p for name, p in (odds or {}).items() if p}
        self._longest_s = {**LONGEST_S, **(longest_s or {})}
        known = {f"{request}.{fate}" for request in REQUESTS for fate in FATES} | set(OTHERS)
        for name, p in self._odds.items():
            if name not in known:
                raise ValueError(f"odds for {name!r}: no such thing; there are {', '.join(sorted(known))}")
            if not 0 <= p <= 1:
                raise ValueError(f"odds for {name!r} must lie between 0 and 1, not at {p}")
        for name in self._longest_s:
            if name not in LONGEST_S:
                raise ValueError(f"longest_s for {name!r}: only {', '.join(LONGEST_S)} last for a time")

    @property
    def quiet(self) -> bool:
        """Whether nothing can go wrong."""
        return not self._odds

    def end(self) -> None:
        """From now on nothing goes wrong any more."""
        self._odds = {}

    def happens(self, name: str) -> bool:
        odds = self._odds.get(name)
        return odds is not None and self._random.random() < odds

    def fate(self, request: str) -> str:
        """What becomes of a request: one of FATES, or nothing."""
        if not self._odds:
            return ""
        return next((fate for fate in FATES if self.happens(f"{request}.{fate}")), "")

    def seconds(self, kind: str) -> float:
        """How long something of this kind lasts; short times are more frequent than long ones."""
        drawn: float = self._random.random() ** 2
        return self._longest_s[kind] * drawn

    def between(self, low: int, high: int) -> int:
        """A number from low to high, both included."""
        return self._random.randint(low, high)

    def word(self) -> str:
        """A name that no other has."""
        return f"{self._random.getrandbits(64):016x}"
