"""The kernel's own figures, and what garbage collections leave out."""

from __future__ import annotations

import gc
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from samzapy.cli.running import How, Run
from samzapy.memory import oom_kills, resident_bytes


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel tells it on Linux only")
def test_this_process_has_some_memory() -> None:
    assert (resident_bytes() or 0) > 1 << 20


def test_the_kills_of_the_own_cgroup_are_counted(tmp_path: Path) -> None:
    (tmp_path / "membership").write_text("12:devices:/x\n0::/job/one\n")
    (tmp_path / "job" / "one").mkdir(parents=True)
    (tmp_path / "job" / "one" / "memory.events").write_text("low 0\noom 3\noom_kill 2\n")
    assert 2 == oom_kills(tmp_path, tmp_path / "membership")


def test_no_cgroup_counts_none(tmp_path: Path) -> None:
    assert 0 == oom_kills(tmp_path, tmp_path / "membership")


def test_from_when_a_run_has_begun_its_start_is_left_out_of_garbage_collections() -> None:
    begun: list[str] = []
    job: Any = SimpleNamespace(settings=None)
    lives_on = [[n] for n in range(100_000)]
    before = gc.get_freeze_count()
    Run(job, "run-1", How(local=True), begun.append)._has_begun(Path("no/such/token"), "http://127.0.0.1:1")
    assert ["http://127.0.0.1:1"] == begun
    assert gc.get_freeze_count() >= before + len(lives_on)
