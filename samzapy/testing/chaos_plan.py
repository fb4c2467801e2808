"""What `samzapy chaos` does to a job, decided before it begins: faults and their times from a seed, and the pace of the records.

The same seed makes the same faults at the same times in the same order; which record each of them meets is the machine's to decide.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from samzapy.model.key_partition import partition_of_key

KILL, PAUSE, KILL_DRIVER, DELETE_STATE = "kill container", "pause container", "kill driver", "delete state"
KILLS = (KILL, KILL_DRIVER, DELETE_STATE)  # those that end processes by SIGKILL
WEIGHTS = {KILL: 6, PAUSE: 2, KILL_DRIVER: 1, DELETE_STATE: 1}
FEED_SHARE = 0.9  # of the time: faults at the end still meet records that wait
CALM_S = 4.0  # between two faults, on average


class Recorded(NamedTuple):
    """A record to feed, as bytes. Without a partition its key decides, without both it is anyone's."""

    topic: str
    key: bytes | None
    value: bytes | None
    partition: int | None = None
    timestamp_ms: int = 0
    headers: tuple[tuple[str, bytes | None], ...] = ()


def placed(records: Sequence[Recorded], partitions: int, start_ms: int) -> list[Recorded]:
    """Each with the partition and the time that every run gives it: partitions as Java's clients choose them, times a millisecond apart."""
    made = []
    for number, record in enumerate(records):
        partition = record.partition
        if partition is None:
            partition = number % partitions if record.key is None else partition_of_key(record.key, partitions)
        made.append(record._replace(partition=partition, timestamp_ms=record.timestamp_ms or start_ms + number))
    return made


@dataclass(frozen=True, slots=True)
class Strike:
    """A fault `at_s` seconds after the job runs; `pick` (0 to 1) chooses among what it can hit."""

    at_s: float
    kind: str
    pick: float


def schedule(seed: int, seconds: float, kinds: Sequence[str] = tuple(WEIGHTS)) -> list[Strike]:
    """The faults of a run of so many seconds, in order. Every kind comes once before any comes again."""
    chance = random.Random(" ".join(("samzapy", "chaos", str(seed))))
    return list(_strikes(chance, seconds, kinds))


def _strikes(chance: random.Random, seconds: float, kinds: Sequence[str]) -> Iterator[Strike]:
    first = chance.sample(list(kinds), len(kinds))
    at_s = CALM_S * chance.uniform(0.2, 0.8)
    while at_s < seconds:
        kind = first.pop() if first else chance.choices(kinds, [WEIGHTS[k] for k in kinds])[0]
        yield Strike(round(at_s, 2), kind, chance.random())
        at_s += CALM_S * chance.uniform(0.4, 1.6)


def due(count: int, elapsed_s: float, seconds: float) -> int:
    """How many of `count` records are to have been sent by now, at a steady pace over the share of the time that is for feeding."""
    return count if seconds <= 0 else min(count, int(count * elapsed_s / (seconds * FEED_SHARE)))


class StrikeDone(NamedTuple):
    """A fault that was made, and what followed. `while_fed`: records were still to come; `note`: why it hit nothing, if it did not."""

    at_s: float
    kind: str
    target: str
    whole_again_s: float | None
    while_fed: bool
    note: str = ""

    @property
    def met_work(self) -> bool:
        """Whether it hit a process that had something to do."""
        return self.while_fed and not self.note


def row(number: int, done: StrikeDone) -> tuple[Any, ...]:
    """Of the table that is printed."""
    again = "-" if done.whole_again_s is None else f"{done.whole_again_s:.1f}"
    return number, f"{done.at_s:.1f}", done.kind, done.target, again, done.note
