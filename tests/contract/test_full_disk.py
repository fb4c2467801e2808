"""A disk that is really full: a small file system in memory, where this user may mount one."""

from __future__ import annotations

import os
import resource
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from samzapy.model.stamp import StoreIdentity, StoreStamp
from samzapy.store.problems import StoreDiskFull
from samzapy.store.rocks import RocksEngine


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Eight MiB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(disk)]
    if subprocess.run(mount, capture_output=True, stdin=subprocess.DEVNULL, check=False).returncode != 0:
        pytest.skip("this user cannot mount a file system")
    try:
        yield disk
    finally:
        subprocess.run(["umount", "--lazy", str(disk)], check=True, stdin=subprocess.DEVNULL)


def test_a_full_disk_is_told_by_the_flush_and_closing_does_not_hide_it(small_disk: Path, caplog: pytest.LogCaptureFixture) -> None:
    engine = RocksEngine(small_disk / "store")
    engine.write([(b"before", b"1")], stamp(1))
    engine.flush()
    engine.write([(b"key", b"v" * (1 << 20))], stamp(2))
    ballast = small_disk / "ballast"
    fill(ballast)

    with pytest.raises(StoreDiskFull, match="flushing: the disk is full"):
        engine.flush()
    engine.close()
    assert [] == caplog.messages, "said a second time"
    ballast.unlink()

    again = RocksEngine(small_disk / "store")
    assert (b"1", 1) == (again.get(b"before"), getattr(again.stamp(), "position", None))
    again.close()


def test_a_limit_of_the_size_of_files_is_told_as_a_full_disk_with_the_limit(tmp_path: Path) -> None:
    engine = RocksEngine(tmp_path / "store")
    engine.write([(b"before", b"1")], stamp(1))
    engine.flush()
    engine.write([(b"key", os.urandom(2 << 20))], stamp(2))
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, before[1]))
    try:
        with pytest.raises(StoreDiskFull, match=r"flushing: a file would be larger than this process may write: 1048576 bytes \(`ulimit -f`\)"):
            engine.flush()
        engine.close()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)

    again = RocksEngine(tmp_path / "store")
    assert (b"1", 1) == (again.get(b"before"), getattr(again.stamp(), "position", None))
    again.close()


def stamp(position: int) -> StoreStamp:
    return StoreStamp(StoreIdentity("j", "1", "Partition 0", "s", "bytes", "bytes"), "topic-id", position, position, 0)


def fill(path: Path) -> None:
    with path.open("wb", buffering=0) as file, pytest.raises(OSError, match="No space left"):
        file.writelines(bytes(1 << 16) for _ in range(1 << 20))
