"""The RocksDB engine, and the only place that knows rocksdict.

Data and stamp go into one column family in one write batch without a write-ahead log. RocksDB flushes a column family's batches in order
and whole, so after a crash the store holds an exact prefix of the batches, and its stamp says which: the changelog has the rest. (Several
column families would tear it, even with atomic flush.) Everything is opened in raw mode: otherwise rocksdict unpickles what it reads.

Keys: 0x01 + the sorting form of a data key; 0x00 + a name for our own (the stamp).

If a read shows damage, the directory is marked as set aside, under the lock that this engine holds, and InDoubt is raised: the container
starts its tasks again, and they are restored.
"""

from __future__ import annotations

import logging
import weakref
from collections.abc import Generator, Iterable, Iterator
from pathlib import Path

from rocksdict import (
    BlockBasedIndexType,
    BlockBasedOptions,
    Cache,
    DBCompressionType,
    Options,
    Rdict,
    RdictIter,
    ReadOptions,
    WriteBatch,
    WriteBufferManager,
    WriteOptions,
)

from samzapy import failpoints
from samzapy.api.errors import InDoubt, SamzapyError
from samzapy.model.stamp import StoreStamp, stamp_from_bytes
from samzapy.ports import Change, Scan
from samzapy.store.problems import StoreCorrupt, StoreDiskFull, StoreProblem, mark_set_aside, problem

LOG = logging.getLogger("samzapy.store")
DATA, DATA_END = b"\x01", b"\x02"
STAMP_KEY = b"\x00stamp"
DEFAULT_BUDGET_BYTES = 64 << 20
MIN_BUDGET_BYTES = 4 << 20
MAX_WRITE_BUFFER_BYTES = 32 << 20
MAX_OPEN_FILES = 256  # of one store
METADATA_BYTES = 16 << 10  # of a part of an index or a filter
BLOCK_BYTES = 4 << 10  # what a get that the cache does not answer reads and decompresses
FILTER_SHARE, PIECE_SHARE = 64, 16  # what a store's write buffer begins with, and grows by, as parts of what the store has
MAX_PIECE_BYTES = 1 << 20


class SharedMemory:
    """One memory budget for the blocks and write buffers of all stores of a container. Write buffers take at most half of it.

    `stores`: how many are to share it.
    """

    def __init__(self, budget_bytes: int, stores: int = 1) -> None:
        self.budget_bytes = max(budget_bytes, MIN_BUDGET_BYTES)
        self.write_buffer_bytes = min(MAX_WRITE_BUFFER_BYTES, self.budget_bytes // 4)
        self.filter_bytes = self.budget_bytes // stores // FILTER_SHARE
        self.piece_bytes = min(self.budget_bytes // stores // PIECE_SHARE, MAX_PIECE_BYTES)
        self.cache = Cache(self.budget_bytes)
        self.buffers = WriteBufferManager.new_write_buffer_manager_with_cache(self.budget_bytes // 2, False, self.cache)


class RocksScan:
    """Entries in key order over the view that the RocksDB iterator pinned when it was made. Closing drops it: only then the lock can go."""

    __slots__ = ("__weakref__", "_entries")

    def __init__(self, entries: Generator[tuple[bytes, bytes], None, None]) -> None:
        self._entries = entries

    def __iter__(self) -> Iterator[tuple[bytes, bytes]]:
        return self._entries

    def __next__(self) -> tuple[bytes, bytes]:
        return next(self._entries)

    def close(self) -> None:
        self._entries.close()  # frees the cursor that it holds


class RocksEngine:
    """A StoreEngine over the RocksDB in the directory `path`, which is made if it is empty.

    Raises:
        StoreLocked, StoreCorrupt, StoreDiskFull, StoreProblem: when it cannot be opened.
    """

    def __init__(self, path: Path, memory: SharedMemory | None = None) -> None:
        self.path = path
        self._in_doubt = False
        self._told: type[StoreProblem] | None = None  # what the last failure in use was
        self._closed = False
        self._unlogged = WriteOptions()
        self._unlogged.disable_wal = True  # type: ignore[method-assign,assignment]  # a property; its stub says method
        self._scans: weakref.WeakSet[RocksScan] = weakref.WeakSet()
        try:
            self._db = Rdict(str(path), _options(memory or SharedMemory(DEFAULT_BUDGET_BYTES)))
        except Exception as error:  # rocksdict raises bare Exception
            raise problem(path, "opening", str(error)) from error
        self._get = self._db.get
        try:
            self._stamp = self._read_stamp()
        except SamzapyError:
            self._db.close()
            raise

    def get(self, key: bytes) -> bytes | None:
        try:
            return self._get(DATA + key)
        except Exception as error:
            raise self._failed("reading", error) from error

    def scan(self, from_key: bytes | None = None, to_key: bytes | None = None) -> Scan:
        try:
            end = _up_to(DATA_END if to_key is None else DATA + to_key)
            cursor = self._db.iter(end)  # pins the view
            cursor.seek(DATA + (from_key or b""))
        except Exception as error:
            raise self._failed("scanning", error) from error
        scan = RocksScan(self._entries(cursor, end))
        self._scans.add(scan)
        return scan

    def write(self, changes: Iterable[Change], stamp: StoreStamp) -> None:
        batch = WriteBatch(raw_mode=True)
        put, delete = batch.put, batch.delete
        for key, value in changes:
            if value is None:
                delete(DATA + key)
            else:
                put(DATA + key, value)
        put(STAMP_KEY, stamp.to_bytes())
        try:
            self._db.write(batch, self._unlogged)
        except Exception as error:
            raise self._failed("writing", error) from error
        self._stamp = stamp

    def stamp(self) -> StoreStamp | None:
        return self._stamp

    def flush(self, wait: bool = True) -> None:
        """Releases the interpreter lock while it waits for the disk."""
        failpoints.hit("store.flush.before")
        try:
            self._db.flush(wait)
        except Exception as error:
            raise self._failed("flushing", error) from error
        failpoints.hit("store.flush.after")

    def close(self) -> None:
        """Closes every scan that is still open, and RocksDB, which flushes. Closing twice does nothing. Damage that shows only now is no error:
        the store is set aside, or has been deleted."""
        if self._closed:
            return
        self._closed = True
        for scan in list(self._scans):
            scan.close()
        try:
            self._db.close()
        except Exception as error:
            found = problem(self.path, "closing", str(error))
            if isinstance(found, StoreCorrupt) and self.path.is_dir():
                mark_set_aside(self.path, found.message)
            elif not self._in_doubt and not isinstance(found, StoreCorrupt):
                raise found from error
            if type(found) is not self._told:  # no loss: what it held is committed, and restored from the changelog
                LOG.warning("%s", found)

    def _entries(self, cursor: RdictIter, end: ReadOptions) -> Generator[tuple[bytes, bytes], None, None]:
        """The cursor's entries. `end` is only held: RocksDB reads the bound from its memory (measured:
        test_bounds_hold_while_memory_is_used_for_other_things).

        Not rocksdict's `items`: that ends at damage as it ends at the end (measured: test_items_ends_at_damage_as_it_ends_at_the_end).
        """
        valid, key, value, step = cursor.valid, cursor.key, cursor.value, cursor.next
        try:
            while valid():
                yield key()[1:], value()
                step()
            cursor.status()
        except Exception as error:
            raise self._failed("scanning", error) from error

    def _read_stamp(self) -> StoreStamp | None:
        try:
            data = self._get(STAMP_KEY)
        except Exception as error:
            raise problem(self.path, "opening", str(error)) from error
        if data is None:
            return None
        try:
            return stamp_from_bytes(data)
        except ValueError as error:
            raise problem(self.path, "opening", f"Corruption: its stamp cannot be read: {error}") from None

    def _failed(self, doing: str, error: Exception) -> SamzapyError:
        """What a failure in use means: no room to write stops the job; anything else leaves this store in doubt."""
        found: StoreProblem = problem(self.path, doing, str(error))
        self._told = type(found)
        if isinstance(found, StoreDiskFull) and doing in ("writing", "flushing"):
            self._in_doubt = True  # it stops the job: closing, which flushes again, must not hide that it was this
            return found
        if isinstance(found, StoreCorrupt):
            mark_set_aside(self.path, found.message)
        self._in_doubt = True
        return InDoubt(found.message, "The task starts again; the damaged store is restored from the changelog.")


def _up_to(end: bytes) -> ReadOptions:
    options = ReadOptions()
    options.set_iterate_upper_bound(end)  # the lower bound is `from_key`: rocksdict's set_iterate_lower_bound sets the upper one
    return options


def _options(memory: SharedMemory) -> Options:
    table = BlockBasedOptions()
    table.set_block_cache(memory.cache)
    table.set_bloom_filter(10, False)
    table.set_cache_index_and_filter_blocks(True)
    table.set_pin_l0_filter_and_index_blocks_in_cache(True)
    # In parts: the cache does not take a block that is larger than its smallest unit, so the filter of a large file would be read anew at each get
    # (measured: test_a_get_in_a_large_store_reads_a_part_of_its_filter).
    table.set_index_type(BlockBasedIndexType.two_level_index_search())
    table.set_partition_filters(True)
    table.set_metadata_block_size(METADATA_BYTES)
    table.set_pin_top_level_index_and_filter(True)
    table.set_block_size(BLOCK_BYTES)
    table.set_format_version(5)
    options = Options(raw_mode=True)
    options.create_if_missing(True)
    options.set_block_based_table_factory(table)
    options.set_write_buffer_manager(memory.buffers)
    options.set_write_buffer_size(memory.write_buffer_bytes)
    options.set_arena_block_size(memory.piece_bytes)
    # A Bloom filter: most gets are of keys that are not in the write buffer.
    options.set_memtable_prefix_bloom_ratio(memory.filter_bytes / memory.write_buffer_bytes)
    options.set_memtable_whole_key_filtering(True)
    options.set_max_write_buffer_number(3)
    options.set_compression_type(DBCompressionType.lz4())
    options.set_level_compaction_dynamic_level_bytes(True)
    options.set_max_background_jobs(2)
    options.set_max_open_files(MAX_OPEN_FILES)
    options.set_bytes_per_sync(1 << 20)
    options.set_keep_log_file_num(2)
    options.set_max_log_file_size(1 << 20)
    options.set_manifest_preallocation_size(64 << 10)
    options.set_stats_dump_period_sec(0)
    options.set_stats_persist_period_sec(0)
    return options
