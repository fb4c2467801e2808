"""Which local stores of a stopped job may be incomplete: those in which the stop itself found damage."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from samzapy.store.problems import mark_set_aside, problem
from tests.recovery.state import found_damaged

STOP_MS = 1_700_000_000_000
TASK, STORE = "Partition 1", "counts"


def _set_aside(state: Path, reason: str, at_ms: int) -> None:
    generation = state / "id" / "127.0.0.2" / "job-1" / TASK / STORE / "21c0be0d64002fdb"
    generation.mkdir(parents=True)
    mark_set_aside(generation, reason)
    os.utime(generation / "SET-ASIDE", ns=(at_ms * 1_000_000, at_ms * 1_000_000))


def _damage() -> str:
    return problem(Path("somewhere"), "flushing", "Corruption: block checksum mismatch: stored = 1, computed = 2").message


def test_damage_that_the_stop_finds_is_told_by_the_mark(tmp_path: Path) -> None:
    _set_aside(tmp_path, _damage(), STOP_MS)
    assert found_damaged(tmp_path, TASK, STORE, STOP_MS)
    assert not found_damaged(tmp_path, TASK, "chain", STOP_MS)
    assert not found_damaged(tmp_path, "Partition 2", STORE, STOP_MS)


def test_damage_found_before_the_stop_excuses_nothing(tmp_path: Path) -> None:
    """The store was to be restored."""
    _set_aside(tmp_path, _damage(), STOP_MS - 1)
    assert not found_damaged(tmp_path, TASK, STORE, STOP_MS)


@pytest.mark.parametrize("reason", ["its task moved away", "the disk is full"])
def test_a_store_set_aside_for_another_reason_is_missed(tmp_path: Path, reason: str) -> None:
    _set_aside(tmp_path, reason, STOP_MS)
    assert not found_damaged(tmp_path, TASK, STORE, STOP_MS)


def test_a_store_that_is_gone_is_missed(tmp_path: Path) -> None:
    assert not found_damaged(tmp_path, TASK, STORE, STOP_MS)
