"""All faults at once: a seed repeats itself, who follows the protocol is never told wrong, and who does not is caught."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.unit.testing.storm import Storm

ROOT = Path(__file__).parents[3]
SEEDS = range(150)


def fingerprint_elsewhere(seed: int, hash_seed: str) -> str:
    """In a process of its own, where sets have another order."""
    environ = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "tests.unit.testing.storm", str(seed)]
    return subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, check=True).stdout.strip()


def test_the_same_seed_makes_the_same_history_in_any_process() -> None:
    here = Storm(7, careful=True).run()
    assert here.history == Storm(7, careful=True).run().history
    assert here.fingerprint() != Storm(8, careful=True).run().fingerprint()
    assert [here.fingerprint()] * 2 == [fingerprint_elsewhere(7, hash_seed) for hash_seed in ("1", "2")]


def test_who_follows_the_protocol_is_never_told_wrong() -> None:
    told: Counter[str] = Counter()
    happened: Counter[str] = Counter()
    for seed in SEEDS:
        storm = Storm(seed, careful=True).run()
        assert [] == storm.violations(), f"seed {seed}"
        told.update(storm.told.values())
        happened.update(word for line in storm.history for word in ("late:", "held:", "reply_lost:", "cut off", "timeout") if word in line)
    # a storm in which these did not happen would prove nothing
    assert {"committed", "aborted", "InDoubt", "Fenced"} <= set(told), told
    assert {"late:", "held:", "reply_lost:", "cut off", "timeout"} == set(happened), happened


@pytest.mark.parametrize("told", ["committed", "aborted"])
def test_who_begins_again_after_a_suspicious_end_is_caught(told: str) -> None:
    """The planted bug of the protocol: a producer that is used again although its last commit or abort was not clean."""
    wrong = [line for seed in SEEDS for line in Storm(seed, careful=False).run().violations()]
    assert [line for line in wrong if f"told {told}" in line]
