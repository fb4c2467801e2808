"""What the engines promise (ports.StoreEngine): order, fixed views, batches that are whole, and for RocksDB what is left after a kill."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from samzapy.api.errors import InDoubt, SamzapyError
from samzapy.model.stamp import StoreIdentity, StoreStamp
from samzapy.ports import StoreEngine
from samzapy.store.memory import MemoryEngine
from samzapy.store.problems import StoreCorrupt, StoreLocked, is_set_aside
from samzapy.store.rocks import RocksEngine, SharedMemory
from tests.contract.log_worlds import until
from tests.simulation.disk import DiskEngine, Generation, MemoryDisk

STAMP = StoreStamp(StoreIdentity("job", "1", "Partition 0", "counts", "string", "integer"), "topic-id", 0, 0, 0)
KEYS = st.binary(max_size=4) | st.sampled_from([b"", b"\x00", b"\x00stamp", b"a", b"a\x00", b"ab", b"\xff", b"\xff\xff", b"\x01", b"\x02"])
CHANGES = st.lists(st.tuples(KEYS, st.none() | st.binary(max_size=6)), max_size=8)


def at(position: int) -> StoreStamp:
    return replace(STAMP, position=position)


@pytest.fixture(scope="module")
def memory() -> SharedMemory:
    return SharedMemory(8 << 20)


@pytest.fixture(params=["memory", "disk", "rocksdb"])
def new_engine(request: pytest.FixtureRequest, tmp_path: Path, memory: SharedMemory) -> Iterator[Callable[[], StoreEngine]]:
    opened: list[StoreEngine] = []

    def make() -> StoreEngine:
        engine: StoreEngine
        if request.param == "rocksdb":
            engine = RocksEngine(tmp_path / str(len(opened)), memory)
        else:
            engine = MemoryEngine() if request.param == "memory" else DiskEngine(Generation("g"))
        opened.append(engine)
        return engine

    yield make
    for engine in opened:
        engine.close()


@pytest.fixture
def engine(new_engine: Callable[[], StoreEngine]) -> StoreEngine:
    return new_engine()


def test_is_empty_and_unstamped_at_first(engine: StoreEngine) -> None:
    assert engine.get(b"a") is None
    assert list(engine.scan()) == []
    assert engine.stamp() is None


def test_write_sets_and_removes_and_stamps(engine: StoreEngine) -> None:
    engine.write([(b"a", b"1"), (b"b", b"")], at(1))
    engine.write([(b"a", None), (b"c", b"3"), (b"never", None)], at(2))
    assert [engine.get(k) for k in (b"a", b"b", b"c", b"never")] == [None, b"", b"3", None]
    assert engine.stamp() == at(2)


def test_the_last_change_of_a_key_in_a_batch_wins(engine: StoreEngine) -> None:
    engine.write([(b"a", b"1"), (b"a", None), (b"b", None), (b"b", b"2")], at(1))
    assert list(engine.scan()) == [(b"b", b"2")]


def test_a_stamp_alone_is_a_batch(engine: StoreEngine) -> None:
    engine.write([], at(7))
    assert engine.stamp() == at(7)


def test_scans_in_byte_order_half_open(engine: StoreEngine) -> None:
    keys = [b"", b"\x00", b"\x00stamp", b"\x01", b"a", b"a\x00", b"ab", b"b", b"\xff", b"\xff\xff"]
    engine.write([(k, b"v" + k) for k in reversed(keys)], at(1))
    assert [k for k, _ in engine.scan()] == keys
    assert [k for k, _ in engine.scan(b"a", b"b")] == [b"a", b"a\x00", b"ab"]
    assert [k for k, _ in engine.scan(None, b"\x01")] == [b"", b"\x00", b"\x00stamp"]
    assert [k for k, _ in engine.scan(b"\xff", None)] == [b"\xff", b"\xff\xff"]
    assert list(engine.scan(b"b", b"a")) == []


@pytest.mark.parametrize("read_first", [0, 1])
def test_a_scan_keeps_its_view(engine: StoreEngine, read_first: int) -> None:
    before = [(b"a", b"1"), (b"b", b"2"), (b"c", b"3")]
    engine.write(before, at(1))
    scan = engine.scan()
    seen = [next(scan) for _ in range(read_first)]
    engine.write([(b"a", None), (b"b", b"new"), (b"bb", b"new"), (b"d", b"new")], at(2))
    assert before == seen + list(scan)
    assert list(engine.scan()) == [(b"b", b"new"), (b"bb", b"new"), (b"c", b"3"), (b"d", b"new")]


def test_bounds_hold_while_memory_is_used_for_other_things(engine: StoreEngine) -> None:
    """rocksdict lets RocksDB read the bound from memory that it does not keep."""
    keys = [b"%06d" % i for i in range(1000)]
    engine.write([(k, k) for k in keys], at(1))
    for start in range(0, 900, 30):
        scan = engine.scan(keys[start], keys[start + 20])
        other = [os.urandom(size) for size in range(64)]
        assert (keys[start : start + 20], len(other)) == ([k for k, _ in scan], 64)


def test_a_closed_scan_has_ended(engine: StoreEngine) -> None:
    engine.write([(b"a", b"1"), (b"b", b"2")], at(1))
    scan = engine.scan()
    next(scan)
    scan.close()
    assert next(scan, "ended") == "ended"


def test_a_closed_engine_refuses(engine: StoreEngine) -> None:
    engine.write([(b"a", b"1")], at(1))
    engine.close()
    engine.close()
    with pytest.raises(SamzapyError):
        engine.get(b"a")
    with pytest.raises(SamzapyError):
        engine.write([], at(2))


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(batches=st.lists(CHANGES, max_size=6), bounds=st.tuples(st.none() | KEYS, st.none() | KEYS))
def test_does_what_a_dict_does(
    new_engine: Callable[[], StoreEngine], batches: list[list[tuple[bytes, bytes | None]]], bounds: tuple[bytes | None, bytes | None]
) -> None:
    engine = new_engine()
    model: dict[bytes, bytes] = {}
    low, high = bounds
    for position, changes in enumerate(batches):
        before = sorted(model.items())
        scan = engine.scan()
        engine.write(changes, at(position))
        for key, value in changes:
            if value is None:
                model.pop(key, None)
            else:
                model[key] = value
        assert before == list(scan)
        assert at(position) == engine.stamp()
        assert {k: model.get(k) for k, _ in changes} == {k: engine.get(k) for k, _ in changes}
        inside = [(k, v) for k, v in sorted(model.items()) if (low is None or low <= k) and (high is None or k < high)]
        assert inside == list(engine.scan(low, high))
    engine.close()


# -- RocksDB: what is on disk ------------------------------------------------------------------------------------------------------


def test_is_there_after_a_clean_close(tmp_path: Path) -> None:
    engine = RocksEngine(tmp_path)
    engine.write([(b"a", b"1"), (b"\x00", b"")], at(5))
    engine.close()
    again = RocksEngine(tmp_path)
    assert (list(again.scan()), again.stamp()) == ([(b"\x00", b""), (b"a", b"1")], at(5))
    again.close()


@pytest.mark.parametrize("unread", [True, False])
def test_an_abandoned_scan_does_not_keep_the_lock(tmp_path: Path, unread: bool) -> None:
    engine = RocksEngine(tmp_path)
    engine.write([(b"a", b"1"), (b"b", b"2")], at(1))
    scan = engine.scan()
    if not unread:
        next(scan)
    engine.close()
    RocksEngine(tmp_path).close()  # would raise StoreLocked
    assert next(scan, "ended") == "ended"


def test_a_second_opening_is_told_as_locked(tmp_path: Path) -> None:
    engine = RocksEngine(tmp_path)
    with pytest.raises(StoreLocked, match="another process has it open"):
        RocksEngine(tmp_path)
    engine.close()


def test_damage_at_opening_is_told_as_corrupt(tmp_path: Path) -> None:
    engine = RocksEngine(tmp_path)
    engine.write([(b"a", b"1")], at(1))
    engine.close()
    (tmp_path / "CURRENT").write_text("nonsense")
    with pytest.raises(StoreCorrupt, match="damaged"):
        RocksEngine(tmp_path)


def test_a_stamp_that_cannot_be_read_is_corrupt_and_unlocked(tmp_path: Path) -> None:
    class Odd:
        def to_bytes(self) -> bytes:
            return b'{"v": 99}'

    engine = RocksEngine(tmp_path)
    engine.write([(b"a", b"1")], Odd())  # type: ignore[arg-type]
    engine.close()
    for _ in range(2):  # the second time: the first has let go of the lock
        with pytest.raises(StoreCorrupt, match="stamp"):
            RocksEngine(tmp_path)


@pytest.mark.parametrize("how", ["get", "scan"])
def test_damage_that_shows_at_a_read_leaves_it_in_doubt_and_set_aside(tmp_path: Path, how: str) -> None:
    entries = [(b"%06d" % i, os.urandom(100)) for i in range(5000)]
    engine = RocksEngine(tmp_path)
    engine.write(entries, at(1))
    engine.close()
    (table,) = tmp_path.glob("*.sst")
    data = bytearray(table.read_bytes())
    middle = len(data) // 2
    data[middle : middle + 64] = bytes(b ^ 0xFF for b in data[middle : middle + 64])
    table.write_bytes(data)
    engine = RocksEngine(tmp_path)
    assert not is_set_aside(tmp_path)
    with pytest.raises(InDoubt, match="damaged"):
        list(engine.scan()) if how == "scan" else [engine.get(k) for k, _ in entries]
    assert is_set_aside(tmp_path)
    engine.close()


def test_a_store_whose_directory_is_deleted_while_it_is_open_is_in_doubt(tmp_path: Path, memory: SharedMemory) -> None:
    """Not an error that ends the job: the container starts over, and the store is restored."""
    engine = RocksEngine(tmp_path / "store", memory)
    engine.write([(b"k", b"v")], at(1))
    engine.flush()
    engine.write([(b"k", b"w")], at(2))
    shutil.rmtree(tmp_path / "store")
    with pytest.raises(InDoubt, match="damaged or missing"):
        engine.flush()
    engine.close()


def test_closing_a_store_whose_files_are_gone_is_no_error(tmp_path: Path, memory: SharedMemory) -> None:
    """A store is a cache: what it holds is committed. (Seen: a damaged one that was set aside ended its job when the cleaner closed it.)"""
    engine = RocksEngine(tmp_path / "store", memory)
    engine.write([(b"a", b"1")], at(1))
    shutil.rmtree(tmp_path / "store")

    engine.close()

    again = RocksEngine(tmp_path / "store", memory)
    assert again.get(b"a") is None
    again.close()


def test_a_config_file_of_rocksdict_cannot_turn_unpickling_on(tmp_path: Path) -> None:
    engine = RocksEngine(tmp_path)
    engine.write([(b"a", b"1")], at(1))
    engine.close()
    (tmp_path / "rocksdict-config.json").write_text('{"raw_mode":false,"prefix_extractors":{}}')
    with pytest.raises(StoreCorrupt):
        RocksEngine(tmp_path)


def test_values_are_never_unpickled(tmp_path: Path) -> None:
    pickled = b"\x80\x04\x8c\x08builtins\x8c\x04exit\x93)R."
    engine = RocksEngine(tmp_path)
    engine.write([(b"a", pickled)], at(1))
    engine.close()
    (tmp_path / "rocksdict-config.json").unlink()
    engine = RocksEngine(tmp_path)
    assert engine.get(b"a") == pickled
    assert list(engine.scan()) == [(b"a", pickled)]
    engine.close()


def test_a_crash_on_the_disk_in_memory_leaves_an_exact_prefix_of_the_batches() -> None:
    disk = MemoryDisk(lambda: "g")
    name, engine = disk.directory(("h", "t", "s"), "process").create()
    for position in range(1, 8):
        engine.write(batch(position), at(position))
        if position == 3:
            engine.flush()
    disk.crash("process", lambda unflushed: unflushed - 2)
    engine.close()  # of a process that is gone
    (claim,) = disk.directory(("h", "t", "s"), "another").claims()
    expected = MemoryEngine()
    for position in range(1, 6):
        expected.write(batch(position), at(position))

    assert (name, at(5)) == (claim.generation, claim.stamp)
    assert claim.engine is not None
    assert list(expected.scan()) == list(claim.engine.scan())
    assert [True] == [c.locked for c in disk.directory(("h", "t", "s"), "a third").claims()]


WRITER = textwrap.dedent(
    """
    import sys
    from dataclasses import replace
    from pathlib import Path
    from tests.contract.test_store_engine import STAMP, batch
    from samzapy.store.rocks import RocksEngine

    engine = RocksEngine(Path(sys.argv[1]))
    for position in range(1, 1_000_000):
        engine.write(batch(position), replace(STAMP, position=position))
        if position % 97 == 0:
            engine.flush()
        print(position, flush=True)
    """
)


def batch(position: int) -> list[tuple[bytes, bytes | None]]:
    """Every batch changes keys that others change too, deletes some, and carries its number."""
    own = [(b"%04d" % ((position * 7 + i) % 500), b"%d" % position) for i in range(20)]
    return [*own, (b"%04d" % ((position * 13) % 500), None), (b"last", b"%d" % position)]


@pytest.mark.parametrize("kill_after", [1, 150, 400])
def test_a_kill_leaves_an_exact_prefix_of_the_batches(tmp_path: Path, kill_after: int) -> None:
    child = subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE, text=True, cwd=Path.cwd())
    assert child.stdout is not None
    for line in child.stdout:
        if int(line) >= kill_after:
            break
    child.send_signal(signal.SIGKILL)
    written = max([kill_after, *(int(line) for line in child.stdout.read().split())])
    child.wait(timeout=30)
    child.stdout.close()

    engine = RocksEngine(tmp_path)
    stamp = engine.stamp()
    position = stamp.position if stamp else 0
    flushed = written // 97 * 97 - 97  # what is surely on disk
    assert flushed <= position <= written + 1
    model: dict[bytes, bytes] = {}
    for number in range(1, position + 1):
        for key, value in batch(number):
            if value is None:
                model.pop(key, None)
            else:
                model[key] = value
    assert sorted(model.items()) == list(engine.scan())
    engine.close()


def test_stores_share_one_memory_budget(tmp_path: Path) -> None:
    memory = SharedMemory(16 << 20)
    engines = [RocksEngine(tmp_path / str(n), memory) for n in range(3)]
    for number, engine in enumerate(engines):
        for round_ in range(20):
            engine.write([(os.urandom(16), os.urandom(4000)) for _ in range(100)], at(number * 100 + round_))
    until(lambda: memory.buffers.get_usage() < memory.budget_bytes)  # what is being flushed counts until it is
    assert memory.buffers.get_usage() < memory.budget_bytes
    for engine in engines:
        engine.close()


@pytest.mark.parametrize("stores", [1, 4, 300])
def test_a_new_write_buffer_takes_a_small_part_of_what_its_store_has(tmp_path: Path, stores: int) -> None:
    """RocksDB takes its Bloom filter at once, and memory by the piece, also for a store that gets no more than a few keys."""
    memory = SharedMemory(128 << 20, stores)
    engine = RocksEngine(tmp_path, memory)
    engine.write([(b"key", b"value")], at(1))
    taken = engine._db.property_int_value("rocksdb.cur-size-all-mem-tables")
    share = memory.budget_bytes // stores
    assert share // 64 <= taken < share // 12
    engine.close()


def bytes_read() -> int:
    """What this process has read from files so far."""
    return int(dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())["rchar"])


def into_one_file(engine: RocksEngine) -> None:
    engine.flush()
    engine._db.compact_range(None, None)


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/io").exists(), reason="the system does not tell how much a process reads")
def test_a_get_in_a_large_store_reads_a_part_of_its_filter(tmp_path: Path) -> None:
    """A filter of one piece, larger than the smallest unit of the cache, is read anew at each get: here 1.2 MB."""
    engine = RocksEngine(tmp_path, SharedMemory(8 << 20))
    for begin in range(0, 1_000_000, 50_000):
        engine.write([(b"key-%d" % number, b"v") for number in range(begin, begin + 50_000)], at(begin))
    into_one_file(engine)
    missing = [b"key-%d-" % number for number in range(0, 1_000_000, 5_000)]
    before = bytes_read()
    assert {None} == {engine.get(key) for key in missing}
    assert (bytes_read() - before) / len(missing) < 200_000
    engine.close()


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/io").exists(), reason="the system does not tell how much a process reads")
def test_a_get_that_the_cache_does_not_answer_reads_one_small_block(tmp_path: Path) -> None:
    engine = RocksEngine(tmp_path, SharedMemory(4 << 20))
    for begin in range(0, 200_000, 10_000):
        engine.write([(b"key-%d" % number, os.urandom(100)) for number in range(begin, begin + 10_000)], at(begin))
    into_one_file(engine)
    keys = [b"key-%d" % number for number in range(0, 200_000, 77)]
    before = bytes_read()
    assert all(engine.get(key) for key in random.Random(1).sample(keys, len(keys)))
    assert (bytes_read() - before) / len(keys) < 8_000
    engine.close()
