"""The cleaner: stores of tasks that moved away go after a day, and nothing else does."""

from __future__ import annotations

import os
from pathlib import Path

from samzapy.store.directory import LocalStoreDirectory, sweep, tasks_there
from samzapy.store.rocks import RocksEngine

DAY_S = 86_400.0
NOW_S = 1_800_000_000.0


def store(job: Path, task: str, age_s: float, keep_open: bool = False) -> RocksEngine | None:
    name, engine = LocalStoreDirectory(job / task / "counts", RocksEngine).create()
    if not keep_open:
        engine.close()
    for file in (job / task / "counts" / name).iterdir():
        os.utime(file, (NOW_S - age_s, NOW_S - age_s))
    return engine if keep_open else None  # type: ignore[return-value]


def test_only_what_is_old_not_held_and_not_open_is_removed(tmp_path: Path) -> None:
    store(tmp_path, "Partition 0", 2 * DAY_S)
    store(tmp_path, "Partition 1", 2 * DAY_S)
    store(tmp_path, "Partition 2", DAY_S / 2)
    in_use = store(tmp_path, "Partition 3", 2 * DAY_S, keep_open=True)
    (tmp_path / "Partition 4").mkdir()
    (tmp_path / "notes").write_text("mine")

    gone = sweep(tmp_path, {"Partition 1"}, NOW_S - DAY_S, RocksEngine)

    assert ["Partition 0"] == gone
    assert ["Partition 1", "Partition 2", "Partition 3"] == tasks_there(tmp_path)
    assert not (tmp_path / "Partition 0").exists()
    assert (tmp_path / "notes").exists()
    assert in_use is not None
    in_use.close()


def test_where_there_is_nothing_nothing_happens(tmp_path: Path) -> None:
    assert [] == sweep(tmp_path / "none", set(), NOW_S, RocksEngine)
    assert [] == tasks_there(tmp_path / "none")
