"""Stores: an engine holds committed bytes, a directory the generations of a local store, a task store is what a task and its container use."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from samzapy.api.store import KeyValueStore, StoreIterator
from samzapy.model.stamp import StoreStamp

Change = tuple[bytes, bytes | None]


class Scan(Protocol):
    """Entries of an engine in key order over a fixed view. `close` releases the view; so does the end."""

    def __iter__(self) -> Iterator[tuple[bytes, bytes]]: ...
    def __next__(self) -> tuple[bytes, bytes]: ...
    def close(self) -> None: ...


class StoreEngine(Protocol):
    """Committed bytes of one store of one task: RocksDB or memory. Keys are in their sorting form."""

    def get(self, key: bytes) -> bytes | None: ...

    def scan(self, from_key: bytes | None = None, to_key: bytes | None = None) -> Scan:
        """from_key <= key < to_key, ascending; None = open."""

    def write(self, changes: Iterable[Change], stamp: StoreStamp) -> None:
        """All changes and the stamp in one atomic batch (None deletes). Not flushed: a crash may lose a suffix of whole batches."""

    def stamp(self) -> StoreStamp | None:
        """The stamp of the newest batch; None in an empty store."""

    def flush(self, wait: bool = True) -> None:
        """Everything written survives a crash when this returns; without `wait`, some time later."""

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Claim:
    """The content of one generation directory: an opened engine with its stamp, or why it cannot be used.

    `locked`: another process has it open. `path` is for messages.
    """

    generation: str
    path: str
    engine: StoreEngine | None
    stamp: StoreStamp | None
    locked: bool = False
    problem: str = ""


class StoreDirectory(Protocol):
    """The generations of one store of one task on this host."""

    def claims(self) -> list[Claim]:
        """Open every generation that is not set aside. The caller closes the engines that it does not use."""

    def create(self) -> tuple[str, StoreEngine]:
        """A new, empty generation: its name and engine."""

    def set_aside(self, claim: Claim, reason: str) -> None:
        """Mark a generation as not to be used again, under its lock if that is free, and close it; the cleaner removes it later."""

    def clean(self) -> None:
        """Remove generations that were set aside and that no process has open."""


class HeldValues(Protocol):
    """Values that an operator holds in memory for a store, and puts into it before a cut. What it holds is the task's newest, as the live overlay is."""

    @property
    def unwritten_bytes(self) -> int:
        """Bytes that are to be put, about."""

    def write_out(self) -> None:
        """Put into the store what it does not have."""

    def trim(self) -> None:
        """Between hooks, when all is put: forget what is too much."""

    def keep(self) -> None:
        """As `TaskStore.keep`."""

    def undo(self) -> None:
        """As `TaskStore.undo`; what it put is undone by the store."""

    def clear(self) -> None:
        """Abort: what was not put does not count."""

    def written(self) -> list[tuple[bytes, bytes | None, bytes | None]]:
        """What changed since the last `keep` and was not put: key, value before, value now."""


class TaskStore(KeyValueStore, Protocol):
    """One store of one task: the task's typed view, over uncommitted overlays (live, frozen) and a read cache, over an engine.

    The methods below are the container's; a task sees only KeyValueStore.

    Attributes:
        called: the store and its task, in words, for errors.
        writes: what `undo` would take back; the same list for ever, so that the hot loop can empty it without a call.
        scans: the iterators that hooks opened since the last `keep`; the same list for ever. While there are any, only `keep` will do.
    """

    __slots__ = ()

    name: str
    called: str
    stamp: StoreStamp | None
    writes: list[Change]
    scans: list[StoreIterator[Any, Any]]

    def written(self, limit: int) -> list[tuple[Any, Any, Any]]:
        """What hooks have written since the last `keep`, at most so many keys: key, value before, value now; None: there is none."""

    @property
    def uncommitted_bytes(self) -> int:
        """Bytes of keys and values in the live overlay, those of flat dicts at most (store/flat.py), and of what is held for it."""

    def limit_memory(self, max_bytes: int) -> None:
        """How many bytes committed entries may take in memory from now on. Called between two records."""

    def hold(self, held: HeldValues) -> int:
        """An operator holds values for this store. Returns the bytes that a key and its value may have together; −1: it must not."""
        return -1

    def write_held(self) -> None:
        """Before a cut, between two records: what is held is put into the live overlay."""
        return

    @property
    def changed(self) -> bool:
        """Whether the live overlay has changes."""

    def keep(self) -> None:
        """The hook returned: its writes stay; iterators it opened are closed."""

    def undo(self) -> None:
        """The hook raised: its writes since the last `keep` are undone; iterators it opened are closed."""

    def freeze(self) -> Sequence[Change]:
        """C0: the live overlay becomes the frozen one. Returns its changes as changelog records: (log key, value), None for a deletion."""

    def apply(self, stamp: StoreStamp) -> None:
        """C5, C6: the frozen overlay is committed, and `stamp` has its changelog position. The engine may get both later."""

    @property
    def unwritten(self) -> int:
        """How many committed entries the engine does not have yet."""

    @property
    def must_write_out(self) -> bool:
        """Whether the committed entries that the engine does not have take too much memory."""

    def write_out(self, max_entries: int | None = None) -> bool:
        """Write committed entries to the engine, at most `max_entries` (None: all). True: the write-out that was under way is done.

        Raises:
            InDoubt, StoreProblem: the engine could not take them; nothing is lost, the changelog has them.
        """

    def expire(self, max_entries: int) -> bool:
        """Delete entries whose time to live is over, between two records, looking at so many at most; True: that was all.

        Raises:
            InDoubt, StoreProblem: as `write_out`.
        """
        return True

    def discard(self) -> None:
        """Abort: drop live and frozen overlays and the read cache; committed changes stay."""

    def load(self, records: Sequence[Change], stamp: StoreStamp) -> None:
        """Restore: write changelog records (log keys) and their position, in one batch."""

    def attach(self, engine: StoreEngine) -> None:
        """Use this engine from now on; an earlier one has been closed."""

    def refuse_writes(self) -> None:
        """From now on put and delete raise StoreClosed (during `close()`)."""

    def flush(self) -> None:
        """Everything applied survives a crash when this returns."""

    def start_flush(self) -> None:
        """Start a flush of the engine without waiting for it."""

    def close(self) -> None:
        """Write out committed changes and close the engine. Closing twice does nothing."""
