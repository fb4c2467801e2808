"""The rows of windows in memory between commits: a record that adds to a window costs an entry of a dict, not a row of the store.

A row is held here as its accumulator and written to the store before a commit is cut and before the store is scanned. Held are only
accumulators that nobody changes unseen and that can always be written: numbers, and dicts of them of aggregates that make new ones. All others go
through the store with each record. A row that is made and deleted between two commits never reaches the store.

What a hook changed is recorded until it has returned (`keep`), so that it can be undone with the store's own writes (`undo`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import isfinite
from operator import attrgetter
from typing import Any, Protocol

from samzapy.api.errors import SerdeError, StateUnreadable, check, shortened, unreadable_state
from samzapy.ports import HeldValues

MOST_HELD = 20_000  # rows
MANY = 4  # times as many rows as are taken at once
ROOM = 64  # bytes that a held number, or a key, takes at most in the store
LARGEST = (1 << 63) - 1
COUNT_BYTES = 4
MOST_RECORDS = (1 << 8 * COUNT_BYTES) - 1
KEY_TYPES = (str, bytes, int)  # of which equal ones are the same key, if they are exactly of the type


class Entry:
    """A row that is held.

    Attributes:
        records, sum: how many records, and their accumulator.
        row: its key in the store.
        is_dirty: whether it is to be written.
        is_stored: whether the store has a row of this key.
        is_touched: whether the log has it as it was before the hook under way, and it is dirty: then it may be changed.
    """

    __slots__ = ("is_dirty", "is_stored", "is_touched", "records", "row", "sum")

    def __init__(self, records: int, sum_: Any, row: bytes, is_stored: bool) -> None:
        self.records, self.sum, self.row = records, sum_, row
        self.is_dirty, self.is_stored, self.is_touched = True, is_stored, True


State = tuple[int, Any, bool, bool]
state_of: Callable[[Entry], State] = attrgetter("records", "sum", "is_dirty", "is_stored")  # all of an entry that changes
Slots = dict[Any, Entry]


def row_of(slot: tuple[Any, Entry]) -> bytes:
    """The key in the store of an entry in its slot."""
    return slot[1].row


Logged = tuple[Slots, Any, Entry, State | None]  # an entry and its state before; None: there was none


class Rows(Protocol):
    """A store of bytes. `called`: it and its task, in words."""

    called: str

    def get(self, key: bytes, /) -> bytes | None: ...
    def put(self, key: bytes, value: bytes | None, /) -> None: ...
    def range(self, from_key: bytes, to_key: bytes, /) -> Any: ...
    def hold(self, held: HeldValues, /) -> int: ...


def is_plain(value: Any) -> bool:
    """Whether an accumulator may be held: it cannot be changed, and every serde that takes its like takes it."""
    if type(value) is int:
        return -LARGEST <= value <= LARGEST
    return type(value) is float and isfinite(value)


def is_plain_int(value: Any) -> bool:
    """As `is_plain`, for the serde of whole numbers."""
    return type(value) is int and -LARGEST <= value <= LARGEST


def is_never_plain(value: Any) -> bool:
    """As `is_plain`, for serdes that may refuse any number: each accumulator is encoded in the hook that made it, so that a refusal is its record's."""
    return False


def is_dict_of_plain(values: dict[str, Any]) -> bool:
    """As `is_plain`, of the accumulators of several aggregates that make new ones and change none: numbers, None, and lists of numbers."""
    for value in values.values():
        if type(value) is list:
            if not all(map(is_plain, value)):
                return False
        elif value is not None and not is_plain(value):
            return False
    return True


@dataclass(frozen=True, slots=True)
class Sums:
    """How values become a result.

    Attributes:
        add: accumulator (None: of nothing), value and time to accumulator.
        merge: two accumulators, the earlier slice's first, to one. `merge_parts`: of two that are in a store already, or came through a topic.
        result: accumulator to result.
        encode, decode: accumulators to bytes and back.
        may_hold: whether an accumulator may be held: nobody changes it, and every serde that takes its like takes it.
        room: the bytes that such a one takes at most in the store.
    """

    add: Callable[[Any, Any, int], Any]
    merge: Callable[[Any, Any], Any]
    merge_parts: Callable[[Any, Any], Any]
    result: Callable[[Any], Any]
    encode: Callable[[Any], bytes]
    decode: Callable[[bytes], Any]
    may_hold: Callable[[Any], bool] = is_plain
    room: int = ROOM


class HeldRows:
    """The rows of one operator's windows of one task: by the end of a slice and the key.

    Args:
        rows: their store.
        sums: how accumulators become bytes and come back.

    Attributes:
        slots: by the end of a slice, what is held. Who changes an entry calls `touch` first, unless it is touched.
        log: what `undo` would take back: each entry as it was before the hook under way.
    """

    __slots__ = ("_dirty", "_limit", "_may_hold", "_rows", "_size", "_sums", "log", "slots")

    def __init__(self, rows: Rows, sums: Sums) -> None:
        self._rows, self._sums = rows, sums
        self._may_hold, self._limit = sums.may_hold, rows.hold(self) - sums.room
        self.slots: dict[int, Slots] = {}
        self.log: list[Logged] = []
        self._size = 0  # entries, at most
        self._dirty = 0  # of them that are to be written, at most

    # -- for the operator --------------------------------------------------------------------------------------------------------------

    def find(self, end: int, key: Any, row: bytes) -> tuple[int, Any] | None:
        """How many records a row has, and their accumulator; None: there is no such row."""
        slots = self.slots.get(end)
        if slots is not None and type(key) in KEY_TYPES:
            entry = slots.get(key)
            if entry is not None:
                return entry.records, entry.sum
        return self._stored(key, row)

    def _stored(self, key: Any, row: bytes) -> tuple[int, Any] | None:
        """As `find`, of a row that is not held."""
        found = self._rows.get(row)
        try:
            return None if found is None else (int.from_bytes(found[:COUNT_BYTES], "big"), self._sums.decode(found[COUNT_BYTES:]))
        except SerdeError as error:
            raise self.unreadable(key, error) from error

    def unreadable(self, key: Any, error: SerdeError) -> StateUnreadable:
        """The error that a key's accumulator cannot be read."""
        return unreadable_state(self._rows.called, f"key {shortened(key)}", error)

    def write(self, end: int, key: Any, row: bytes, records: int, sum_: Any, is_new: bool) -> None:
        """A row's new value. `is_new`: the store does not have the row."""
        slots = self.slots.get(end)
        entry = None if slots is None else slots.get(key)
        may_hold = self._may_hold(sum_) and type(key) in KEY_TYPES and len(row) <= self._limit
        if may_hold and slots is not None and entry is not None:
            self.touch(slots, key, entry)
            entry.records, entry.sum = records, sum_
        elif may_hold and self._size < MOST_HELD:
            if slots is None:
                slots = self.slots[end] = {}
            entry = slots[key] = Entry(records, sum_, row, not is_new)
            self.log.append((slots, key, entry, None))
            self._size += 1
            self._dirty += 1
        else:
            # The store asks its engine, and knows then that there is nothing to delete if the row goes before the next commit.
            check(not is_new or self._rows.get(row) is None, f"a new row of {self._rows.called} is not in the store")
            self._rows.put(row, self._encode(records, sum_))
            if slots is not None and entry is not None:
                self._drop(slots, key, entry)

    def begin(self, end: int, slots: Slots, key: Any, row: bytes, sum_: Any) -> bool:
        """A row of one record that the store does not have, of an accumulator that may be held; False: it cannot be held in these slots."""
        if self._size >= MOST_HELD or len(row) > self._limit or self.slots.get(end) is not slots:
            return False
        entry = slots[key] = Entry(1, sum_, row, False)
        self.log.append((slots, key, entry, None))
        self._size += 1
        self._dirty += 1
        return True

    def touch(self, slots: Slots, key: Any, entry: Entry) -> None:
        """An entry is about to change."""
        if not entry.is_touched:
            self.log.append((slots, key, entry, state_of(entry)))
            entry.is_touched = True
            if not entry.is_dirty:
                entry.is_dirty = True
                self._dirty += 1

    def _drop(self, slots: Slots, key: Any, entry: Entry) -> None:
        """An entry goes."""
        self.log.append((slots, key, entry, state_of(entry)))
        self._dirty -= entry.is_dirty
        del slots[key]

    def _encode(self, records: int, sum_: Any) -> bytes:
        return min(records, MOST_RECORDS).to_bytes(COUNT_BYTES, "big") + self._sums.encode(sum_)

    def delete(self, end: int, key: Any, row: bytes) -> None:
        """Remove a row, if it is there."""
        slots = self.slots.get(end)
        entry = slots.get(key) if slots is not None and type(key) in KEY_TYPES else None
        if slots is not None and entry is not None:
            self._drop(slots, key, entry)
        if entry is None or entry.is_stored:
            self._rows.put(row, None)

    def take(self, end: int, key: Any, row: bytes) -> tuple[int, Any] | None:
        """As `find`; and then there is no such row any more."""
        slots = self.slots.get(end)
        entry = slots.get(key) if slots is not None and type(key) in KEY_TYPES else None
        if slots is not None and entry is not None:
            self._drop(slots, key, entry)
            if entry.is_stored:
                self._rows.put(row, None)
            return entry.records, entry.sum
        found = self._stored(key, row)
        if found is not None:
            self._rows.put(row, None)
        return found

    def take_first(self, end: int, count: int, most: int) -> list[tuple[Any, Entry]] | None:
        """As `take`, of the `count` rows of a slice the first so many, if all are held, and not so many that it takes long to order them; None: else."""
        slots = self.slots.get(end)
        if slots is None or not len(slots) == count <= MANY * most:
            return None
        taken = sorted(slots.items(), key=row_of)[:most]
        self.log += [(slots, key, entry, state_of(entry)) for key, entry in taken]
        for key, entry in taken:
            self._dirty -= entry.is_dirty
            if entry.is_stored:
                self._rows.put(entry.row, None)
            del slots[key]
        return taken

    # -- for the store -----------------------------------------------------------------------------------------------------------------

    @property
    def unwritten_bytes(self) -> int:
        """What is to be written at the next cut, in bytes of keys and values, about."""
        return self._dirty * (ROOM + self._sums.room)

    def write_out(self) -> None:
        """Put into the store what it does not have. Within a hook it can be undone as everything else."""
        if not self._dirty:
            return
        for slots in self.slots.values():
            for key, entry in slots.items():
                if entry.is_dirty:
                    self._rows.put(entry.row, self._encode(entry.records, entry.sum))
                    self.log.append((slots, key, entry, state_of(entry)))
                    entry.is_dirty, entry.is_stored, entry.is_touched = False, True, False
        self._dirty = 0

    def keep(self) -> None:
        """The hook returned."""
        for _, _, entry, _ in self.log:
            entry.is_touched = False
        self.log.clear()

    def trim(self) -> None:
        """Between hooks, when all is written: slices that are gone go, and all rows if they are too many; those that are asked for come again."""
        for end in [end for end, slots in self.slots.items() if not slots]:
            del self.slots[end]
        self._size = sum(map(len, self.slots.values()))
        if self._size >= MOST_HELD:
            self.clear()

    def undo(self) -> None:
        """The hook raised: all is as it was when the hook before it had returned."""
        for slots, key, entry, before in reversed(self.log):
            if before is None:
                slots.pop(key, None)
            else:
                slots[key] = entry
                entry.records, entry.sum, entry.is_dirty, entry.is_stored = before
                entry.is_touched = False
        self.log.clear()
        self._dirty = sum(entry.is_dirty for slots in self.slots.values() for entry in slots.values())

    def clear(self) -> None:
        """Nothing that was not written counts. The slots are emptied too: an operator may have those of a slice at hand."""
        for slots in self.slots.values():
            slots.clear()
        self.slots.clear()
        self.log.clear()
        self._size = self._dirty = 0

    def written(self) -> list[tuple[bytes, bytes | None, bytes | None]]:
        """What the hook changed and the store does not know: the row's key, its value before and now."""
        first = {(id(slots), key): (slots, entry, before) for slots, key, entry, before in reversed(self.log)}
        found = []
        for (_, key), (slots, entry, before) in first.items():
            now = slots.get(key)
            if now is not None or before is not None:
                old = self._rows.get(entry.row) if before is None else self._encode(before[0], before[1])
                found.append((entry.row, old, None if now is None else self._encode(now.records, now.sum)))
        return found
