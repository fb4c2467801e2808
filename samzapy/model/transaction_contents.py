"""What a transaction held, as the search for a poison record and the size of transactions are told of it."""

from __future__ import annotations

from dataclasses import dataclass

from samzapy.model.dead_letter import Origin


@dataclass(frozen=True, slots=True)
class Contents:
    """What a transaction held when it was decided.

    Attributes:
        records: how many records' effects are in it.
        last: the last of them; None if that was not in the batch under way.
        skipped: condemned records that `on_error` was applied to in it.
        has_window: whether window() ran in it.
        waited_s: how long brokers took for it, so far as that held up the loop.
    """

    records: int
    last: Origin | None = None
    skipped: frozenset[Origin] = frozenset()
    has_window: bool = False
    waited_s: float = 0.0
