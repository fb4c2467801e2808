"""What rocksdict does by itself: the facts that samzapy's store rules follow from, each shown on the library alone.

If one of these fails after an update, the rule that names it may be given up. What samzapy does about them is tested in test_store_engine.py.
"""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from rocksdict import Options, Rdict, ReadOptions

CRASHING = textwrap.dedent(
    """
    import os, sys
    from rocksdict import Options, Rdict, WriteBatch, WriteOptions

    options, unlogged = Options(raw_mode=True), WriteOptions()
    options.create_if_missing(True)
    unlogged.disable_wal = True
    db = Rdict(sys.argv[1], options)
    db.create_column_family("stamp", Options(raw_mode=True))
    batch = WriteBatch(raw_mode=True)
    batch.put(b"data", b"1")
    batch.put(b"stamp", b"1", db.get_column_family_handle("stamp"))
    db.write(batch, unlogged)
    db.flush(True)
    os._exit(0)
    """
)
FLUSHING_TWICE = textwrap.dedent(
    """
    import os, sys
    from rocksdict import Options, Rdict, WriteBatch, WriteOptions

    options, unlogged = Options(raw_mode=True), WriteOptions()
    options.create_if_missing(True)
    unlogged.disable_wal = True
    db = Rdict(sys.argv[1], options)
    for first in range(0, 100_000, 1000):
        batch = WriteBatch(raw_mode=True)
        for number in range(first, first + 1000):
            batch.put(b"%d" % number, os.urandom(150))
        db.write(batch, unlogged)
    db.flush(False)
    db.flush(True)
    os._exit(0)
    """
)
SLEEPING = textwrap.dedent(
    """
    import os, sys
    from rocksdict import Options, Rdict, WriteOptions

    options, unlogged = Options(raw_mode=True), WriteOptions()
    options.create_if_missing(True)
    unlogged.disable_wal = True
    db = Rdict(sys.argv[1], options)
    print("open", flush=True)
    sys.stdin.readline()
    for number in range(4):
        db.put(b"%d" % number, b"old owner", unlogged)
        db.flush(True)
    os._exit(0)
    """
)
UNPICKLED: list[str] = []


class Planted:
    """A value whose unpickling runs code."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return note, ("code ran",)


def note(text: str) -> str:
    UNPICKLED.append(text)
    return text


def raw(path: Path) -> Rdict:
    return Rdict(str(path), Options(raw_mode=True))


def test_a_batch_over_two_column_families_is_torn_by_a_crash(tmp_path: Path) -> None:
    """Without a write-ahead log each column family is flushed alone. Hence one column family for data and stamp."""
    subprocess.run([sys.executable, "-c", CRASHING, str(tmp_path)], check=True, stdin=subprocess.DEVNULL, timeout=60)

    db = Rdict(str(tmp_path), Options(raw_mode=True), column_families={n: Options(raw_mode=True) for n in ("default", "stamp")})
    assert (b"1", None) == (db.get(b"data"), db.get_column_family("stamp").get(b"stamp"))
    db.close()


def test_a_process_whose_directory_was_replaced_damages_the_store_that_lies_there_now(tmp_path: Path) -> None:
    """RocksDB opens new files by path. Hence a store's directory is never renamed, and none is made again under its name."""
    path = tmp_path / "store"
    sleeper = subprocess.Popen([sys.executable, "-c", SLEEPING, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert sleeper.stdout is not None
    assert "open\n" == sleeper.stdout.readline()
    path.rename(tmp_path / "aside")
    successor = raw(path)
    successor[b"key"] = b"new owner"
    successor.flush(True)

    sleeper.communicate("wake up\n", timeout=60)
    successor.close()

    with pytest.raises(Exception, match="Corruption"):
        raw(path)


def test_reading_runs_code_unless_raw_mode_is_asked_for(tmp_path: Path) -> None:
    """Hence raw mode everywhere: a state directory that somebody else could write to must not run code."""
    db = Rdict(str(tmp_path))
    db["key"] = Planted()
    UNPICKLED.clear()
    assert "code ran" == db["key"]
    assert ["code ran"] == UNPICKLED
    db.close()


def test_the_lower_bound_of_an_iteration_sets_the_upper_one(tmp_path: Path) -> None:
    """Hence a scan seeks to its first key and sets the upper bound only."""
    db = raw(tmp_path)
    for number in range(5):
        db[b"%d" % number] = b"v"
    options = ReadOptions()
    options.set_iterate_lower_bound(b"2")
    assert [b"0", b"1"] == list(db.keys(read_opt=options))
    db.close()


def test_items_ends_at_damage_as_it_ends_at_the_end(tmp_path: Path) -> None:
    """Hence a scan of ours asks the cursor for its status."""
    db = raw(tmp_path)
    for number in range(5000):
        db[b"%06d" % number] = os.urandom(100)
    db.close()
    (table,) = tmp_path.glob("*.sst")
    data = bytearray(table.read_bytes())
    middle = len(data) // 2
    data[middle : middle + 64] = bytes(b ^ 0xFF for b in data[middle : middle + 64])
    table.write_bytes(data)

    db = raw(tmp_path)
    assert 0 < len(list(db.items())) < 5000  # and no error
    db.close()


def test_a_flush_that_waits_waits_for_the_one_before_it_too(tmp_path: Path) -> None:
    """Hence the flushes at the end of a restore are all started before one is waited for."""
    subprocess.run([sys.executable, "-c", FLUSHING_TWICE, str(tmp_path / "db")], check=True, timeout=60)
    there = Rdict(str(tmp_path / "db"), Options(raw_mode=True))
    assert 100_000 == sum(1 for _ in there.keys())  # noqa: SIM118  keys() is the scan
    there.close()
