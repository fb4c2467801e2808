"""What is said of a container that was killed without a word."""

from __future__ import annotations

import signal
from typing import Any

from samzapy.model.process_end import killed_by
from samzapy.plan.killed_for_memory import MIB, killed_for_memory

LIKELY = "too little memory is the likely cause"


def with_memory(*facts: Any) -> str:
    return str(killed_for_memory(killed_by(signal.SIGKILL), *facts))


def test_memory_near_the_budget_is_the_likely_cause() -> None:
    told = with_memory(500 * MIB, 512 * MIB, 1.5, False)
    assert "it had 500 MiB of memory when it was last heard of, 1.5 s before; containers.memory is 512 MiB" in told
    assert LIKELY in told


def test_memory_far_below_it_is_told_and_not_blamed() -> None:
    told = with_memory(100 * MIB, 512 * MIB, 0.1, False)
    assert "100 MiB" in told
    assert LIKELY not in told


def test_a_kill_that_the_kernel_counted_is_the_likely_cause_whatever_was_heard() -> None:
    assert LIKELY in with_memory(None, 512 * MIB, 0.0, True)
    assert LIKELY in with_memory(100 * MIB, 512 * MIB, 0.0, True)


def test_nothing_known_is_nothing_said() -> None:
    assert "killed by SIGKILL" == with_memory(None, 512 * MIB, 0.0, False)
