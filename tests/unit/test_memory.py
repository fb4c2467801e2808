"""The kernel's own figures."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

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
