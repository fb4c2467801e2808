"""A yardstick: sides that are measured one after the other, A B A B, and the pairs of them that are compared."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from tests.bench.ratios import Round

Figures = dict[str, float]


@dataclass(frozen=True)
class Side:
    """`run` measures once; it checks what was written, and raises when that is wrong."""

    name: str
    run: Callable[[], Figures]


@dataclass(frozen=True)
class Sides:
    """Of one yardstick.

    Attributes:
        pairs: (side, other side): how good the first is against the second.
        records: the size, without which figures are not comparable.
    """

    sides: list[Side]
    pairs: list[tuple[str, str]]
    records: int


def measure(sides: Sides, rounds: int, say: Callable[[str], None]) -> list[Round]:
    """Every side once in each round."""
    found: list[Round] = []
    for number in range(1, rounds + 1):
        one: dict[str, Figures] = {}
        for side in sides.sides:
            started = time.monotonic()
            one[side.name] = side.run()
            shown = ", ".join(
                f"{value:,.4g} {figure}" if value < 1000 else f"{value:,.0f} {figure}" for figure, value in one[side.name].items()
            )
            say(f"  round {number} of {rounds}, {side.name}: {shown} ({time.monotonic() - started:.0f} s)")
        found.append(one)
    return found
