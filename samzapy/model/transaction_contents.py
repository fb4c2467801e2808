"""What a transaction held, as the search for a poison record and the size of transactions are told of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from samzapy.model.dead_letter import Origin
from samzapy.model.offsets import TopicPartition


@dataclass(frozen=True, slots=True)
class Contents:
    """What a transaction held when it was decided.

    Attributes:
        records: how many records' effects are in it.
        last: the last of them; None if that was not in the batch under way.
        skipped: condemned records that `on_error` was applied to in it.
        has_window: whether window() ran in it.
        waited_s: how long brokers took for it, so far as that held up the loop.
        ends: of each partition of which it holds records, the next offset.
    """

    records: int
    last: Origin | None = None
    skipped: frozenset[Origin] = frozenset()
    has_window: bool = False
    waited_s: float = 0.0
    ends: Mapping[TopicPartition, int] = field(default_factory=dict)
