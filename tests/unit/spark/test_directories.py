"""Spark's temporary directories do not grow old while a run goes on."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from samzapy.spark.directories import KeptDirectories, of_executor, touch
from tests.integration.processes import until

DAYS_11_S = 11 * 86_400


def aged(path: Path) -> Path:
    then = time.time() - DAYS_11_S
    os.utime(path, (then, then))
    return path


def age_s(path: Path) -> float:
    found = path.stat()
    return time.time() - min(found.st_mtime, found.st_atime)


def test_all_that_is_in_them_is_touched_and_what_is_gone_is_passed_over(tmp_path: Path) -> None:
    blocks = tmp_path / "blockmgr-1"
    (blocks / "0c").mkdir(parents=True)
    (blocks / "0c" / "broadcast_1").write_bytes(b"x")
    (blocks / "gone").symlink_to(tmp_path / "nowhere")
    (tmp_path / "other").mkdir()
    beside = aged(tmp_path / "other")
    entries = [aged(path) for path in (blocks / "0c" / "broadcast_1", blocks / "0c", blocks)]
    touch(str(blocks))
    touch(str(tmp_path / "nowhere"))
    assert all(age_s(path) < 60 for path in entries)
    assert age_s(beside) > 86_400


def test_each_hour_until_it_is_closed(tmp_path: Path) -> None:
    kept = KeptDirectories([str(aged(tmp_path)), ""], every_s=0.01)
    until(lambda: age_s(tmp_path) < 60, "it is touched")
    kept.close()


def test_an_executors_are_those_that_spark_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_LOCAL_DIRS", "/a/blockmgr-1,/b/blockmgr-2")
    monkeypatch.delenv("PYTHON_FAULTHANDLER_DIR", raising=False)
    assert ["/a/blockmgr-1", "/b/blockmgr-2", ""] == of_executor()
    monkeypatch.setenv("PYTHON_FAULTHANDLER_DIR", "/tmp/faulthandler-1")
    assert "/tmp/faulthandler-1" in of_executor(), "who turns it on: without this directory no worker starts"
