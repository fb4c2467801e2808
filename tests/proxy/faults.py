"""What goes wrong on the way to a broker, as values: which requests a rule is about, and what happens to them.

Decided here, done in `proxy`. Whether chance strikes a request depends on the rule's seed, the client, the api and how many such requests
came before it, and on nothing else: not on time, nor on what other clients do. So a seed that found something strikes the same requests again,
as far as the clients send the same.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass

from tests.proxy.wire import Request


@dataclass(frozen=True, slots=True)
class Hold:
    """The request waits before it goes to the broker, and what its connection sends after it waits too: for `seconds`, or (None)
    until it is released. `cut`: the client loses the connection at once, and knows nothing of a request that is still on its way."""

    seconds: float | None = None
    cut: bool = False


@dataclass(frozen=True, slots=True)
class LoseRequest:
    """The connection is cut and the broker never hears of the request."""


@dataclass(frozen=True, slots=True)
class LoseReply:
    """The broker does what was asked; its reply is dropped and the connection is cut."""


@dataclass(frozen=True, slots=True)
class DelayReply:
    """The broker does what was asked at once; its reply, and all replies after it, wait."""

    seconds: float


Fault = Hold | LoseRequest | LoseReply | DelayReply


@dataclass(frozen=True, slots=True)
class Rule:
    """A fault, and the requests that it strikes.

    Args:
        apis: numbers of requests (`wire.Api`); empty: all.
        client: the beginning of the client's id.
        times: how many are struck; None: no end.
        chance: of each that fits, how many of one.
        seed: of the dice, where `chance` is below 1.
    """

    fault: Fault
    apis: frozenset[int] = frozenset()
    client: str = ""
    times: int | None = None
    chance: float = 1.0
    seed: int = 0

    def fits(self, request: Request) -> bool:
        return (not self.apis or request.api in self.apis) and request.client.startswith(self.client)

    def strikes(self, request: Request) -> bool:
        """Whether the dice fall on this request."""
        if self.chance >= 1.0:
            return True
        dice = random.Random(f"{self.seed}/{self.client}/{request.client}/{request.api}/{request.number}/{self.fault}")
        return dice.random() < self.chance


def storm(seed: int, apis: Iterable[int], chance: float, longest_s: float, client: str = "") -> list[Rule]:
    """Everything that can go wrong, each with an equal share of `chance`: held, held with the client cut off, lost, its reply lost or late."""
    some = random.Random(f"storm {seed}")
    faults: list[Fault] = [
        Hold(some.uniform(0, longest_s)), Hold(some.uniform(0, longest_s), cut=True), LoseRequest(), LoseReply(), DelayReply(some.uniform(0, longest_s)),
    ]  # fmt: skip
    chosen = frozenset(apis)
    return [Rule(fault, chosen, client, chance=chance / len(faults), seed=seed) for fault in faults]
