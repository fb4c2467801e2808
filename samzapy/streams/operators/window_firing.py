"""Windows of event time in a store that is in the order of time: which fire at a watermark, and which records are too late for them.

The watermark comes from container/task_watermark.py. A record is kept once, in its *slice*: the span of `every` that it lies in. A window is a whole
number of slices, which are merged when it gives a pane. The rows of the store:

    00                      up to when windows have fired; in the middle of firing, how far that is
    10 T(slice end) key  →  4 bytes: how many records; then the accumulator

The store is its own queue: when the watermark goes from a to b, the windows that end in (a, b] fire, by end and then by key. Each fires once,
because what has fired is in the store too: a commit may come between the moment at which time moves and the firing of each operator. A slice is
deleted when its last window takes no more late records.

In memory are the ends of the slices (few, however many keys there are) and, as long as they are few enough, the keys of each slice. Both may
hold what is not in the store, after a record was taken back; the store is what counts. A slice whose keys are not known is scanned.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Callable, Iterator, Sequence
from heapq import merge as in_order
from itertools import islice
from typing import Any, Final, Protocol

import msgspec

from samzapy.api.errors import SerdeError, StateUnreadable
from samzapy.model.event_time import END, NEVER
from samzapy.model.layout import time_bytes, time_of
from samzapy.streams.lateness import is_closed, is_too_late
from samzapy.streams.operators.held import KEY_TYPES, HeldRows, Rows, Slots, Sums
from samzapy.streams.operators.rows import CURSOR, KEY_AT, SLICE, SLICES_END, Cursor, different, first_key
from samzapy.streams.window_shapes import Pane, Window, pane

MOST_KEYS = 200_000  # that are remembered, of all slices of a store together
LATE: Final[Any] = object()
FIRE, EXPIRE = "fire", "expire"
Given = tuple[Any, Pane[Any]]  # key, pane


class Time(Protocol):
    """The time of an operator. `bound`: its watermark is not beyond this; it is asked for only where that may matter."""

    @property
    def bound(self) -> int: ...
    @property
    def watermark(self) -> int: ...


class Slices:
    """The windows of one operator of one task.

    Args:
        encode_key, decode_key: keys to bytes and back.
        now: the operator's time.
        lateness_ms: how long after its end a window still takes records.
        each: whether it gives a pane after each record.

    Attributes:
        touch: see HeldRows.
        at: all windows that end before or at this have fired.
        wake: the watermark at which something is to be done.
    """

    def __init__(
        self, rows: Rows, window: Window, sums: Sums, encode_key: Callable[[Any], bytes], decode_key: Callable[[bytes], Any], now: Time, *,
        lateness_ms: int = 0, each: bool = False,
    ) -> None:  # fmt: skip
        self._get, self._put, self._range = rows.get, rows.put, rows.range
        self._held = HeldRows(rows, sums)
        self._slots, self.touch, self._add = self._held.slots, self._held.touch, sums.add
        self._size, self._every, self._offset = window.size_ms, window.every_ms, window.offset_ms
        self._sums, self._may_hold, self._encode_key, self._decode_key = sums, sums.may_hold, encode_key, decode_key
        self._now, self._lateness, self._each = now, lateness_ms, each
        self._stays = window.size_ms - window.every_ms + lateness_ms  # how long a slice is kept after its end
        self._is_alone = self._stays == 0  # a slice is a window, and goes when that fires
        self._ends: list[int] = []
        self._keys: dict[int, set[bytes] | None] = {}  # by the end of a slice; None: not known
        self._known = 0
        self._last_end, self._last_prefix = NEVER, b""
        self._near_end, self._near = NEVER, Slots()  # the slice of the record before, which the next one mostly shares, and its slots
        self._work: tuple[str, int] | None = None
        self._key = b""  # the last one that is done with, of the work
        self._has_key = False
        self._list: list[bytes] | None = None  # the keys of the work, if they are known
        self._gone = 0  # of its rows that were taken from memory at once
        self._to = NEVER  # firing that a crash interrupted leads to this
        self._closed = NEVER  # as in the cursor: it outlives a lateness that is raised later
        self.at = self.wake = NEVER

    def start(self) -> None:
        """What the store holds at a start of the task."""
        low = SLICE
        while (first := first_key(self._range(low, SLICES_END))) is not None:
            end = time_of(first[len(SLICE) :])
            self._ends.append(end)
            self._keys[end] = None
            low = SLICE + time_bytes(end + 1)
        row = self._get(CURSOR)
        if row is not None:
            cursor = msgspec.msgpack.decode(row, type=Cursor)
            self.at, self._to, self._key, self._closed = cursor.at, cursor.to, cursor.key, cursor.closed
            is_gone = cursor.what == EXPIRE and cursor.end not in self._keys
            self._work = (cursor.what, cursor.end) if cursor.what and not is_gone else None
            self._has_key = True
        self._look()

    def _write(self) -> None:
        what, end = self._work or ("", NEVER)
        if self.at != NEVER and self._to != END:
            self._closed = max(self._closed, self.at - self._lateness)
        self._put(CURSOR, msgspec.msgpack.encode(Cursor(self.at, self._to, what, end, self._key, self._closed)))

    # -- records ---------------------------------------------------------------------------------------------------------------------

    def add(self, key: Any, value: Any, time: int) -> Any:
        """A record. Returns None, or the panes that it gives at once as (key, pane); LATE: it is too late for all of its windows, and nothing was
        done."""
        end, slots = self._near_end, self._near
        if not end - self._every <= time < end:
            end = self._near_end = (time - self._offset) // self._every * self._every + self._offset + self._every
            slots = self._near = self._slots.get(end, {})
        is_late = end <= self._now.bound
        watermark = NEVER
        if is_late:
            watermark = self._now.watermark
            if self.is_too_late(end, watermark, self._lateness):
                return LATE
            is_late = end <= watermark
        entry = slots.get(key) if type(key) in KEY_TYPES else None
        if entry is not None:
            sum_ = self._add(entry.sum, value, time)
            row = entry.row
            if self._may_hold(sum_):
                if not entry.is_touched:
                    self.touch(slots, key, entry)
                entry.records += 1
                entry.sum = sum_
            else:
                self._held.write(end, key, row, entry.records + 1, sum_, False)
            return self._at_once(key, row[KEY_AT:], end, watermark, value, time) if is_late or self._each else None
        data = self._encode_key(key)
        row = self._prefix(end) + data
        keys = self._keys.get(end, ())
        found = None if keys is not None and data not in keys else self._held.find(end, key, row)
        if found is None:
            self._note(end, data)
            self._held.write(end, key, row, 1, self._add(None, value, time), True)
        else:
            self._held.write(end, key, row, found[0] + 1, self._add(found[1], value, time), False)
        self._near = self._slots.get(end, {})  # they may be other ones now
        return self._at_once(key, data, end, watermark, value, time) if is_late or self._each else None

    def is_too_late(self, end: int, watermark: int, lateness_ms: int) -> bool:
        """Whether no window with the slice that ends here takes a record of it any more. If one does, it is kept first which windows have fired: nothing
        was due until then, so they were not told of."""
        if is_too_late(end, end + self._size - self._every, watermark, lateness_ms, self._closed):
            return True
        self.at = max(self.at, watermark)
        self._write()
        return False

    def _at_once(self, key: Any, data: bytes, end: int, watermark: int, value: Any, time: int) -> list[Given] | None:
        """The panes of a late record's windows that have fired and take it; with `each` also those of its other windows."""
        given: list[Given] = []
        try:
            for window_end in range(end, end + self._size, self._every):
                if window_end > watermark:
                    if self._each:
                        given += self._pane(key, data, window_end, "early")
                elif not is_closed(window_end, watermark, self._lateness, self._closed):
                    given += self._pane(key, data, window_end, "late")
        except StateUnreadable:
            self._sums.result(self._add(None, value, time))  # if this fails too, it is the record's own value that cannot be read
            raise
        return given or None

    def _pane(self, key: Any, data: bytes, window_end: int, kind: Any) -> list[Given]:
        """The pane of a window and key, from its slices; [] if they have nothing of the key."""
        records, sum_ = 0, None
        for end in range(window_end - self._size + self._every, window_end + 1, self._every):
            if end not in self._keys:
                continue
            found = self._held.find(end, key, self._prefix(end) + data)
            if found is not None:
                sum_ = self._sums.merge_parts(sum_, found[1]) if records else found[1]
                records += found[0]
        return [(key, self._made(window_end, key, kind, records, sum_))] if records else []

    def _made(self, window_end: int, key: Any, kind: Any, records: int, sum_: Any) -> Pane[Any]:
        index = (records if kind != "early" else records - 1) if self._each else int(kind == "late")
        try:
            return pane(window_end - self._size, window_end, self._sums.result(sum_), kind, index)
        except SerdeError as error:
            raise self._held.unreadable(key, error) from error

    # -- firing ----------------------------------------------------------------------------------------------------------------------

    def is_due(self, watermark: int) -> bool:
        """Whether there is something to do at this watermark."""
        return watermark >= self.wake

    def fire(self, watermark: int, limit: int) -> tuple[list[Given], bool]:
        """Windows that the watermark has passed, in order, and deletions: `limit` steps at most. Returns the panes, and whether that was all."""
        to = max(watermark, self._to)
        if to == END and self._to != END:
            self._closed = max(self._closed, self.at)  # their slices go with those of the windows that the end of the run closes
        given: list[Given] = []
        while limit > 0:
            if self._work is None:
                self._work = self._next(to)
                self._key, self._has_key, self._list, self._gone = b"", False, None, 0
                if self._work is None:
                    break
            what, end = self._work
            before = limit
            limit -= self._take_first(end, limit, given) if what == FIRE and self._is_alone else 0
            if limit != before:
                continue
            keys = self._some_keys(what, end, limit)
            for data in keys:
                key = self._decode_key(data)
                if what == FIRE and self._is_alone:
                    found = self._held.take(end, key, self._prefix(end) + data)
                    if found is not None:
                        given.append((key, self._made(end, key, "on_time", *found)))
                elif what == FIRE:
                    given += self._pane(key, data, end, "on_time")
                else:
                    self._held.delete(end, key, self._prefix(end) + data)
            if len(keys) < limit:
                self._done(what, end)
            else:
                self._key, self._has_key = keys[-1], True
            limit -= len(keys) or 1
        is_done = self._work is None and self._next(to) is None
        if not is_done:
            self._to = to
            self._write()
        else:
            # After the end of a bounded run there is no slice any more. A later run begins anew the windows that had not fired before that.
            self.at, self._to = watermark if to < END else self._closed, NEVER
            self._write()
            self.at = watermark
        self._look()
        return given, is_done

    def _take_first(self, end: int, most: int, given: list[Given]) -> int:
        """Of a window that is a slice the first panes, if all that are left of it are in memory. Returns how many steps that took; 0: they are not."""
        keys = self._keys.get(end)
        taken = None if keys is None else self._held.take_first(end, len(keys) - self._gone, most)
        if keys is None or taken is None:
            return 0
        given += [(key, self._made(end, key, "on_time", entry.records, entry.sum)) for key, entry in taken]
        self._gone += len(taken)
        if self._gone == len(keys):
            self._done(FIRE, end)
        else:
            self._key, self._has_key = taken[-1][1].row[KEY_AT:], True
        return len(taken) or 1

    def _next(self, to: int) -> tuple[str, int] | None:
        """What is to be done next: a window that ends, or a slice that nobody needs any more."""
        fires = self.still_to_fire
        goes = self._ends[0] + self._stays if self._ends else END + 1
        if min(fires, goes) > to:
            return None
        return (FIRE, fires) if fires <= goes else (EXPIRE, self._ends[0])

    @property
    def still_to_fire(self) -> int:
        """The first end of a window that has not fired; beyond END: all have."""
        return min((self._fires(end) for end in self._ends), default=END + 1)

    def _fires(self, end: int) -> int:
        """The first end of a window with this slice that has not fired; beyond END: all have."""
        if end > self.at:
            return end
        later = (self.at - self._offset) // self._every * self._every + self._offset + self._every
        return later if later < end + self._size else END + 1

    def _done(self, what: str, end: int) -> None:
        if what == FIRE:
            self.at = max(self.at, end)
            if self._is_alone and self._keys.get(end) is not None:
                self._forget_keys(end)
                self._keys[end] = set()
        else:
            self._forget_keys(end)
            del self._keys[end]
            self._ends.remove(end)
        self._work = None

    def _look(self) -> None:
        due = min(self.still_to_fire, self._ends[0] + self._stays) if self._ends else END + 1
        self.wake = due if self._to == NEVER else NEVER

    # -- rows ------------------------------------------------------------------------------------------------------------------------

    def _prefix(self, end: int) -> bytes:
        if end != self._last_end:
            self._last_end, self._last_prefix = end, SLICE + time_bytes(end)
        return self._last_prefix

    def _note(self, end: int, key: bytes) -> None:
        """A key that a slice has not had: a slice that is new has no other keys than those that are noted from now on."""
        if end not in self._keys:
            self._keys[end] = set()
            insort(self._ends, end)
            self._look()
        keys = self._keys[end]
        if keys is not None and key not in keys:
            if self._known >= MOST_KEYS:
                self._forget_keys(end)
                self._keys[end] = None
            else:
                keys.add(key)
                self._known += 1

    def _forget_keys(self, end: int) -> None:
        keys = self._keys[end]
        self._known -= 0 if keys is None else len(keys)

    def _some_keys(self, what: str, end: int, limit: int) -> Sequence[bytes]:
        """The next keys of the work, in order."""
        ends = [end] if what == EXPIRE else [e for e in self._ends if end - self._size < e <= end]
        if self._list is None and all(self._keys[e] is not None for e in ends):
            self._list = sorted(set().union(*(self._keys[e] or () for e in ends)))
        if self._list is not None:
            at = bisect_right(self._list, self._key) if self._has_key else 0
            return self._list[at : at + limit]
        return list(islice(different(in_order(*(self._keys_of(e) for e in ends))), limit))

    def _keys_of(self, end: int) -> Iterator[bytes]:
        """The keys of a slice after the one that is done with, in order."""
        keys = self._keys[end]
        if keys is not None:
            yield from sorted(key for key in keys if not self._has_key or key > self._key)
            return
        prefix = SLICE + time_bytes(end)
        low = prefix + self._key + b"\x00" if self._has_key else prefix
        self._held.write_out()
        rows = self._range(low, SLICE + time_bytes(end + 1))
        try:
            for row, _ in rows:
                yield row[KEY_AT:]
        finally:
            rows.close()
