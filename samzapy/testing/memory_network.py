"""The way to the in-memory Kafka and back, and what the broker does later: losses, delays, outages, all by a clock and a Chance.

A request is carried out once for each time it arrives: at once, later, or never; its client learns of it at once, later, or never. What is
to happen later waits in one queue, by time and then by order of coming, and is done before the next request that arrives at or after its
time, so nobody can see a difference from a broker that runs by itself. Nothing here blocks: a reply says how long its client has to wait.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

from samzapy.api.errors import LogError
from samzapy.ports import Clock
from samzapy.testing.memory_chance import FATES, REQUESTS, Chance

T = TypeVar("T")

REQUEST_TIMEOUT_S = 1.0  # when a client takes a request for lost and sends it again
SLOW_S = 1.0  # from which a commit counts as suspicious
MARKER = "marker"
EVERYBODY = ""


class Reply(NamedTuple, Generic[T]):
    """`answers` holds the answer, or nothing if none came; either is known to the client after so many seconds."""

    answers: tuple[T, ...]
    after_s: float = 0.0


class MemoryNetwork:
    """Carries requests; used under the cluster's lock."""

    def __init__(self, clock: Clock, chance: Chance, trace: Callable[[str], None] | None) -> None:
        self._clock = clock
        self._chance = chance
        self._trace = trace
        self._calm = chance.quiet and trace is None
        self._later: list[tuple[float, int, str, Callable[[], object]]] = []
        self._numbers = 0
        self._held: list[tuple[str, str, Callable[[], object]]] = []  # until somebody delivers them
        self._planned: dict[str, list[str]] = {}
        self._cut_until: dict[str, float] = {}

    def say(self, line: object) -> None:
        if self._trace is not None:
            self._trace(f"{self._clock.monotonic():.6f} {line}")

    # -- what is planned -----------------------------------------------------------------------------------------------------------

    def plan(self, request: str, fate: str) -> None:
        if request not in (*REQUESTS, MARKER) or fate not in FATES or (request == MARKER and fate != "held"):
            raise ValueError(f"{fate!r} of {request!r}: requests are {', '.join(REQUESTS)}, fates {', '.join(FATES)}; a marker can be held")
        self._planned.setdefault(request, []).append(fate)

    def planned(self, request: str) -> str:
        if request not in self._planned:
            return ""
        fate = self._planned[request].pop(0)
        if not self._planned[request]:
            del self._planned[request]
        return fate

    def forget(self) -> None:
        """Nothing is planned any more, nobody is cut off, and what was held on purpose arrives."""
        self._planned.clear()
        self._cut_until.clear()
        for kind in dict.fromkeys(kind for kind, _, _ in self._held):
            self.deliver_held(kind)

    def cut_off(self, seconds: float, origin: str) -> None:
        self._cut_until[origin] = self._clock.monotonic() + seconds
        self.say(f"{origin or 'everybody'} is cut off for {seconds:.3f} s")

    def is_cut_off(self, origin: str) -> bool:
        if not self._cut_until:
            return False
        return self._clock.monotonic() < max(self._cut_until.get(EVERYBODY, 0.0), self._cut_until.get(origin, 0.0))

    # -- later ---------------------------------------------------------------------------------------------------------------------

    def later(self, seconds: float, what: str, action: Callable[[], object]) -> None:
        self._numbers += 1
        heapq.heappush(self._later, (self._clock.monotonic() + seconds, self._numbers, what, action))

    def hold(self, kind: str, what: str, action: Callable[[], object]) -> None:
        self._held.append((kind, what, action))

    def next_due(self) -> float | None:
        """When the next thing will happen by itself, on the clock's monotonic scale."""
        return self._later[0][0] if self._later else None

    def run_due(self) -> None:
        """Do what is due."""
        while self._later and self._later[0][0] <= self._clock.monotonic():
            _, _, what, action = heapq.heappop(self._later)
            self._arrive(what, action)

    def deliver_held(self, kind: str) -> int:
        """What was held on purpose arrives, in the order of its sending."""
        arriving = [(what, action) for held, what, action in self._held if held == kind]
        self._held = [entry for entry in self._held if entry[0] != kind]
        for what, action in arriving:
            self._arrive(what, action)
        return len(arriving)

    def _arrive(self, what: str, action: Callable[[], object]) -> None:
        """Nobody waits for the answer any more; the trace tells it."""
        try:
            action()
            self.say(f"late: {what}")
        except LogError as refusal:
            self.say(f"late: {what}: refused, {refusal.message}")

    # -- a request -----------------------------------------------------------------------------------------------------------------

    def carry(self, request: str, what: object, origin: str, action: Callable[[], T]) -> Reply[T]:
        """One try of one request; `what` is how it prints.

        Raises:
            LogError: the broker's refusal, and it arrived.
        """
        self.run_due()
        if self._calm and not self._planned and not self._cut_until:
            return Reply((action(),))
        planned = self.planned(request)
        if self._chance.happens("outage"):
            self.cut_off(self._chance.seconds("outage"), origin)
        if self.is_cut_off(origin):
            return Reply((), REQUEST_TIMEOUT_S)
        fate = planned or self._chance.fate(request)
        if not fate:
            self.say(what)
            return Reply((action(),))
        self.say(f"{fate}: {what}")
        if fate == "slow":
            return Reply((action(),), SLOW_S if planned else self._chance.seconds("slow"))
        if fate == "reply_lost":
            self._arrive(str(what), action)
        elif fate == "held" and planned:
            self.hold(request, str(what), action)
        elif fate == "held":
            self.later(REQUEST_TIMEOUT_S + self._chance.seconds("held"), str(what), action)
        return Reply((), REQUEST_TIMEOUT_S)
