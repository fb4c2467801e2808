"""What a partition takes of a producer and what it refuses."""

from __future__ import annotations

import pytest

from samzapy.testing.memory_partition import MemoryPartition, Refused, State
from tests.unit.testing.world import P0

PRODUCER = 1


def offer(log: MemoryPartition, epoch: int, sequence: int) -> int | str:
    """The offset that a record got, or why it was refused."""
    try:
        return log.append(PRODUCER, epoch, sequence, b"k", b"v", 0, None, transactional=True)
    except Refused as refused:
        return refused.answer.name


@pytest.mark.parametrize(
    ("epoch", "sequence", "answer"),
    [
        (1, 2, 2),  # the next one
        (1, 1, 1),  # the last one again: the same offset
        (1, 0, -1),  # one from before: taken long ago
        (1, 3, "OUT_OF_ORDER_SEQUENCE"),
        (2, 0, 2),  # a new epoch begins at 0
        (2, 1, "OUT_OF_ORDER_SEQUENCE"),
        (0, 2, "PRODUCER_FENCED"),
    ],
)
def test_records_are_taken_in_sequence_and_once(epoch: int, sequence: int, answer: int | str) -> None:
    log = MemoryPartition(P0)
    assert [0, 1] == [offer(log, 1, n) for n in (0, 1)]
    assert answer == offer(log, epoch, sequence)
    assert (3 if answer == 2 else 2) == log.end


def test_a_marker_of_an_old_epoch_is_not_written() -> None:
    log = MemoryPartition(P0)
    offer(log, 2, 0)
    log.mark(PRODUCER, 1, State.COMMITTED)
    assert (1, 0) == (log.end, log.stable_end())


def test_a_marker_of_a_newer_epoch_decides_and_fences() -> None:
    log = MemoryPartition(P0)
    offer(log, 1, 0)
    log.mark(PRODUCER, 2, State.ABORTED)
    assert (2, 2) == (log.end, log.stable_end())
    assert "PRODUCER_FENCED" == offer(log, 1, 1)
