"""Windows in a store against a model that keeps all records in a list: random keys, times, orders, watermarks, commits, crashes and undone runs."""

from __future__ import annotations

import json
import operator
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from samzapy.api.errors import RecordTooLarge
from samzapy.model.event_time import END, NEVER
from samzapy.model.stamp import StoreIdentity, StoreStamp
from samzapy.serde.registry import serde_named
from samzapy.store.holding import HoldingStore
from samzapy.store.memory import MemoryEngine
from samzapy.store.rocks import RocksEngine
from samzapy.streams.operators import held, in_place
from samzapy.streams.operators import window_firing as slices
from samzapy.streams.operators.held import Sums
from samzapy.streams.operators.in_place import SlicesInPlace
from samzapy.streams.operators.rows import CURSOR, SLICE
from samzapy.streams.operators.window_firing import LATE
from samzapy.streams.window_shapes import Pane, Window


def _beside(a: dict[str, Any], b: dict[str, Any]) -> dict[str, Any]:
    return {"s": a["s"] + b["s"], "m": b["m"]}


STAMP = StoreStamp(StoreIdentity("job", "1", "Partition 0", "w", "bytes", "bytes"), "topic-id", 0, 0, 0)
COLLECT = Sums(
    lambda old, value, time: [*(old or []), value],
    lambda a, b: [*a, *b],
    lambda a, b: [*a, *b],
    sorted,
    lambda found: b",".join(b"%d" % n for n in found),
    lambda data: [int(n) for n in data.split(b",")],
)
ADD_UP = Sums(  # what is held in memory, until it is beyond 64 bits
    lambda old, value, time: (old or 0) + value, operator.add, operator.add, lambda found: found, lambda found: b"%d" % found, int,
)  # fmt: skip
BESIDE = Sums(  # as `aggregate`, of aggregates that make a new accumulator each
    lambda old, value, time: {"s": (old["s"] if old else 0) + value, "m": [value, 1]}, _beside, _beside,
    lambda found: found["s"], lambda found: json.dumps(found).encode(), json.loads, may_hold=held.is_dict_of_plain, room=256,
)  # fmt: skip
COUNT = Sums(  # as `count`, whose records are counted in place
    lambda old, value, time: 1 if old is None else old + 1, operator.add, operator.add, lambda found: found, lambda found: b"%d" % found, int,
)  # fmt: skip
LARGE = 1 << 61
KEYS = [b"", b"\x00", b"a", b"a\x00", b"ab", b"b", b"\xff", b"\xff\xff"]
Told = list[tuple[bytes, Pane[Any]]]


class Model:
    """All windows of all keys, in dicts."""

    def __init__(self, window: Window, lateness: int, each: bool, sums: Sums = COLLECT) -> None:
        self.window, self.lateness, self.each, self.adds_up = window, lateness, each, sums is not COLLECT
        self.records: list[tuple[bytes, int, int]] = []
        self.at = self.closed = NEVER

    def ends(self, time: int) -> list[int]:
        window = self.window
        first = (time - window.offset_ms) // window.every_ms * window.every_ms + window.offset_ms + window.every_ms
        return list(range(first, first + self.window.size_ms, self.window.every_ms))

    def value(self, key: bytes, end: int) -> list[int]:
        return sorted(value for k, value, time in self.records if k == key and end - self.window.size_ms <= time < end)

    def pane(self, key: bytes, end: int, kind: Any) -> tuple[bytes, Pane[Any]]:
        value = self.value(key, end)
        index = (len(value) - (kind == "early")) if self.each else int(kind == "late")
        return key, Pane(end - self.window.size_ms, end, sum(value) if self.adds_up else value, kind, index)

    def add(self, key: bytes, value: int, time: int, watermark: int) -> Told | Any:
        ends = self.ends(time)
        if all(end + self.lateness <= watermark or end <= self.closed for end in ends):
            return LATE
        self.records.append((key, value, time))
        told = []
        for end in ends:
            if end > watermark and self.each:
                told.append(self.pane(key, end, "early"))
            elif end <= watermark < end + self.lateness and end > self.closed:
                told.append(self.pane(key, end, "late"))
        return told

    def end_of_run(self, fired: int) -> None:
        """What had fired before the end of a bounded run takes no records any more. `fired`: up to when the operator was told of time; it is not
        told where nothing is due."""
        assert fired <= self.at
        assert not any(fired < end <= self.at for _, _, time in self.records for end in self.ends(time))
        self.closed = max(self.closed, fired)

    def fire(self, watermark: int) -> Told:
        due = sorted({end for _, _, time in self.records for end in self.ends(time) if self.at < end <= watermark})
        told = [self.pane(key, end, "on_time") for end in due for key in sorted({r[0] for r in self.records}) if self.value(key, end)]
        self.at = watermark
        if watermark == END:
            self.records = []
        return told


class World:
    """An operator over a real store, and the model beside it; both can go back to the last commit."""

    def __init__(self, window: Window, lateness: int, each: bool, engine: Any = MemoryEngine, sums: Sums = COLLECT) -> None:
        self.window, self.lateness, self.each, self.sums = window, lateness, each, sums
        raw = serde_named("bytes", [])
        self.store = HoldingStore("w", engine(), raw, raw, 1 << 20, 1 << 20, "P", 1 << 20)
        self.store.load([], STAMP)
        self.model = Model(window, lateness, each, sums)
        self.watermark = self.committed_watermark = NEVER
        self.told: Told = []
        self.expected: Told = []
        self.committed: tuple[Model, int, Told] = (deepcopy(self.model), NEVER, [])
        self.committed_told: Told = []
        self.changes: list[tuple[bytes, bytes | None]] = []
        self.begin()

    def begin(self) -> None:
        self.slices = SlicesInPlace(
            self.store, self.window, self.sums, bytes, bytes, self, lateness_ms=self.lateness, each=self.each
        )
        self.slices.start()

    @property
    def bound(self) -> int:
        return self.watermark + 3

    def add(self, key: bytes, value: int, time: int) -> None:
        value = 1 if self.sums is COUNT else value
        found = self.taken(key, value, time)
        self.store.keep()
        expected = self.model.add(key, value, time, self.watermark)
        assert (found is LATE) == (expected is LATE)
        if found is not LATE:
            self.told += found or []
            self.expected += expected

    def taken(self, key: bytes, value: int, time: int) -> Any:
        """As the generated code of a program does it."""
        begin, until, slots = self.slices.near()
        if self.sums is COUNT and begin <= time < until:
            entry = slots.get(key)
            if entry is not None:
                if not entry.is_touched:
                    self.slices.touch(slots, key, entry)
                entry.records += 1
                entry.sum += 1
                return None
            if self.slices.fresh(key):
                return None
        return self.slices.add(key, value, time)

    def add_and_undo(self, key: bytes, time: int) -> None:
        for other in (key, b"a", key):
            self.taken(other, 1, time)
        self.store.undo()

    def advance(self, watermark: int, unit: int, stop: Callable[[], bool] = lambda: False) -> bool:
        """Fire in units; True: it was stopped between two of them by a crash."""
        self.watermark = watermark
        if watermark == END and self.slices.is_due(END):
            self.model.end_of_run(self.slices.at)
        self.expected += self.model.fire(watermark)
        return self.go_on(unit, stop)

    def go_on(self, unit: int, stop: Callable[[], bool] = lambda: False) -> bool:
        while self.slices.is_due(self.watermark):
            given, is_done = self.slices.fire(self.watermark, unit)
            self.store.keep()
            self.told += given
            if not is_done and stop():
                return True
        return False

    def commit(self, in_the_middle: bool = False) -> None:
        self.store.write_held()
        self.changes += self.store.freeze()
        self.store.apply(replace(STAMP, position=len(self.changes) + 1))
        self.committed_told = list(self.told)
        if not in_the_middle:
            self.committed = (deepcopy(self.model), self.watermark, list(self.expected))
        self.middle = (deepcopy(self.model), self.watermark, list(self.expected))

    def crash(self) -> None:
        self.store.discard()
        model, self.watermark, expected = self.middle if hasattr(self, "middle") else self.committed
        self.model, self.expected = deepcopy(model), list(expected)
        self.told = list(self.committed_told)
        self.begin()
        self.go_on(1)


@st.composite
def histories(draw: st.DrawFn) -> tuple[Window, int, bool, list[tuple[Any, ...]]]:
    every = draw(st.integers(1, 5))
    window = Window(every * draw(st.integers(1, 4)), every, draw(st.integers(0, every - 1)))
    base = draw(st.sampled_from([0, -37, 1_700_000_000_000, 4_102_444_800_000]))
    time = st.integers(base - 10, base + 40)
    step = st.one_of(
        st.tuples(st.just("add"), st.sampled_from(KEYS), time),
        st.tuples(st.just("add"), st.sampled_from(KEYS), time),
        st.tuples(st.just("undo"), st.sampled_from(KEYS), time),
        st.tuples(st.just("advance"), st.integers(0, 12), st.integers(1, 4), st.booleans()),
        st.tuples(st.just("commit")),
        st.tuples(st.just("crash")),
        st.tuples(st.just("end"), st.integers(1, 4), st.booleans()),
    )
    return window, draw(st.sampled_from([0, 0, 1, 7, 30])), draw(st.booleans()), [("at", base - 10), *draw(st.lists(step, max_size=60))]


def replay(history: tuple[Window, int, bool, list[tuple[Any, ...]]], engine: Any = MemoryEngine, sums: Sums = COLLECT) -> World:
    window, lateness, each, steps = history
    w = World(window, lateness, each, engine, sums)
    for number, step in enumerate(steps):
        what = step[0]
        if what == "at":
            w.advance(step[1], 10)
            w.commit()
        elif what == "add":
            w.add(step[1], number if sums is COLLECT or number % 4 else number + LARGE, step[2])
        elif what == "undo":
            w.add_and_undo(step[1], step[2])
        elif what == "advance":
            if w.advance(w.watermark + step[1], step[2], lambda crashes=step[3]: crashes):  # type: ignore[misc]
                w.commit(in_the_middle=True)
                w.crash()
        elif what == "commit":
            w.commit()
        elif what == "crash":
            w.crash()
        else:
            before = w.watermark
            if w.advance(END, step[1], lambda crashes=step[2]: crashes):  # type: ignore[misc]
                w.commit(in_the_middle=True)
                w.crash()  # still in the bounded run: the watermark of the checkpoint is never END, the cursor knows more
            w.watermark = w.model.at = before
            w.commit()
            w.crash()
        assert w.told == w.expected, what
    w.advance(END, 3)
    assert w.told == w.expected
    w.commit()
    assert [key for key, _ in w.store.all()] in ([], [CURSOR])
    return w


@given(histories())
@settings(max_examples=200, deadline=None)
def test_windows_do_what_the_model_does(history: Any) -> None:
    replay(history)


@given(histories(), st.sampled_from([0, 2, held.MOST_HELD]), st.sampled_from([ADD_UP, BESIDE, COUNT]))
@settings(max_examples=100, deadline=None)
def test_the_same_with_numbers_that_are_held_in_memory(history: Any, most: int, sums: Sums) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(held, "MOST_HELD", most)
        replay(history, sums=sums)


@given(histories(), st.sampled_from([COLLECT, ADD_UP, BESIDE, COUNT]))
@settings(max_examples=100, deadline=None)
def test_the_same_where_few_keys_are_remembered(history: Any, sums: Sums) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(slices, "MOST_KEYS", 2)
        patch.setattr(in_place, "MOST_KEYS", 2)
        replay(history, sums=sums)


def test_the_same_on_rocksdb(tmp_path: Path) -> None:
    numbers = iter(range(1000))

    @given(histories())
    @settings(max_examples=10, deadline=None)
    def replays(history: Any) -> None:
        w = replay(history, lambda: RocksEngine(tmp_path / str(next(numbers))))
        w.store.close()

    replays()


def test_windows_that_open_and_close_between_two_commits_write_nothing() -> None:
    w = World(Window(10, 10), 0, False)
    for time in range(1000):
        w.add(b"%d" % (time % 7), time, time)
        w.advance(time, 256)
    w.advance(2000, 256)
    w.commit()
    assert [key for key, _ in w.changes] == [CURSOR]  # up to when windows have fired
    assert len(w.told) == 700


@pytest.mark.parametrize("others", [10, 2000])
def test_expiry_touches_what_expires(others: int) -> None:
    """Rows that are read, written or passed when a window of 20 keys fires and goes, however many keys others have."""
    w = World(Window(10, 10), 0, False)
    for n in range(others):
        w.slices.add(b"other %d" % n, n, 100)
    for n in range(20):
        w.slices.add(b"%d" % n, n, 5)
    w.store.keep()
    w.commit()
    touched = 0

    def counted(call: Callable[..., Any]) -> Callable[..., Any]:
        def count(*arguments: Any) -> Any:
            nonlocal touched
            touched += 1
            return call(*arguments)

        return count

    class Counted:
        get, put = staticmethod(counted(w.store.get)), staticmethod(counted(w.store.put))

    w.slices._put = counted(w.slices._put)
    w.slices._held._rows = Counted()
    given, is_done = w.slices.fire(10, 1000)
    assert (len(given), is_done) == (20, True)
    assert touched == 41  # and what says up to when windows have fired


def test_a_row_that_is_made_and_goes_between_two_commits_is_never_a_row_of_the_store() -> None:
    w = World(Window(10, 10), 0, False, sums=ADD_UP)
    for time in range(1000):
        w.add(b"%d" % (time % 7), time, time)
        w.advance(time, 256)
    assert not [key for key in w.store._live if key != CURSOR]
    w.advance(985, 256)
    w.commit()
    assert [key[:1] for key, _ in w.changes] == [CURSOR] + 7 * [SLICE]  # the window that is still open


def test_what_is_held_counts_until_it_is_cut_and_is_put_once() -> None:
    w = World(Window(10, 10), 0, False, sums=ADD_UP)
    before = w.store.uncommitted_bytes
    w.add(b"a", 1, 5)
    w.add(b"a", 2, 5)
    assert w.store.uncommitted_bytes > before
    w.commit()
    assert w.store.uncommitted_bytes == 0
    assert len(w.changes) == 1
    w.commit()
    assert len(w.changes) == 1


def test_a_trace_shows_what_is_held() -> None:
    w = World(Window(10, 10), 0, False, sums=ADD_UP)
    w.slices.add(b"a", 1, 5)
    [(key, before, now)] = w.store.written(10)
    assert (key[-1:], before, now and now[4:]) == (b"a", None, b"1")
    w.store.keep()
    w.slices.add(b"a", 2, 5)
    [(_, before, now)] = w.store.written(10)
    assert (before and before[4:], now and now[4:]) == (b"1", b"3")


def test_a_key_that_the_stores_topic_does_not_take_fails_in_its_hook() -> None:
    w = World(Window(10, 10), 0, False, sums=ADD_UP)
    with pytest.raises(RecordTooLarge):
        w.slices.add(b"k" * (1 << 20), 1, 5)


# -- planted bugs of what is held ----------------------------------------------------------------------------------------------------------


def _an_undone_record_and_one_that_stays(w: World) -> None:
    w.add(b"a", 1, 5)
    w.add_and_undo(b"a", 5)
    w.advance(20, 10)


def _a_commit_and_a_crash(w: World) -> None:
    w.add(b"a", 1, 5)
    w.commit()
    w.crash()
    w.advance(20, 10)


def _a_row_that_the_store_has_goes(w: World) -> None:
    w.add(b"a", 1, 5)
    w.commit()
    w.advance(30, 10)
    w.commit()
    assert [key for key, _ in w.store.all()] == [CURSOR]


def _a_row_that_only_the_store_has_goes(w: World) -> None:
    w.add(b"a", 1, 5)
    w.commit()
    w.crash()
    w.add(b"b", 1, 5)
    w.advance(30, 10)
    w.commit()
    assert [key for key, _ in w.store.all()] == [CURSOR]


def _all_rows_leave_the_memory_between_two_records_of_a_slice(w: World) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(held, "MOST_HELD", 2)
        for key in (b"a", b"b", b"a"):
            w.add(key, 1, 5)
        w.commit()
        w.add(b"a", 2, 5)
        w.advance(20, 10)


def _the_second_of_two_rows_comes_back_to_the_memory(w: World) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(held, "MOST_HELD", 2)
        for key in (b"a", b"b"):
            w.add(key, 1, 5)
        w.commit()
        w.add(b"b", 2, 5)
        w.advance(20, 10)


def _cleared_but_for_the_slots_at_hand(rows: held.HeldRows) -> None:
    kept = {end: dict(slots) for end, slots in rows.slots.items()}
    at_hand = list(rows.slots.items())
    CLEAR(rows)
    for end, slots in at_hand:
        slots.update(kept[end])


def _taken_from_memory_alone(rows: held.HeldRows, end: int, key: bytes, row: bytes) -> tuple[int, Any] | None:
    entry = rows.slots.get(end, {}).pop(key, None)
    return None if entry is None else (entry.records, entry.sum)


def _all_taken_from_memory_alone(rows: held.HeldRows, end: int, count: int, most: int) -> Any:
    slots = rows.slots.get(end, {})
    taken = sorted(slots.items())
    slots.clear()
    return taken if len(taken) == count else None


def _all_that_are_held(rows: held.HeldRows, end: int, count: int, most: int) -> Any:
    there = len(rows.slots.get(end, ()))
    return TAKE_FIRST(rows, end, there, most) if there else None


def _touched_without_a_log(rows: held.HeldRows, slots: Any, key: bytes, entry: held.Entry) -> None:
    entry.is_touched = entry.is_dirty = True


def _fresh_whatever_the_store_has(slices: SlicesInPlace, key: bytes) -> bool:
    (slices._keys.get(slices._near_end) or set()).discard(key)
    return FRESH(slices, key)


def _begun_without_a_log(rows: held.HeldRows, end: int, slots: Any, key: bytes, row: bytes, sum_: Any) -> bool:
    done = BEGIN(rows, end, slots, key, row, sum_)
    if done:
        rows.log.pop()
    return done


def _an_undone_record_of_a_new_key(w: World) -> None:
    w.add(b"b", 1, 5)
    w.add_and_undo(b"a", 5)
    w.advance(20, 10)


CLEAR, TAKE_FIRST = held.HeldRows.clear, held.HeldRows.take_first
FRESH, BEGIN = SlicesInPlace.fresh, held.HeldRows.begin
HELD_BUGS: dict[str, tuple[type, str, Any, Callable[[World], None]]] = {
    "it is not undone": (held.HeldRows, "undo", held.HeldRows.keep, _an_undone_record_and_one_that_stays),
    "it is not put before a cut": (HoldingStore, "write_held", lambda store: None, _a_commit_and_a_crash),
    "the store's own row stays": (held.HeldRows, "take_first", _all_taken_from_memory_alone, _a_row_that_the_store_has_goes),
    "the store's own row stays, where not all are held": (held.HeldRows, "take", _taken_from_memory_alone, _a_row_that_only_the_store_has_goes),
    "rows that the store has and the memory has not are forgotten": (
        held.HeldRows, "take_first", _all_that_are_held, _the_second_of_two_rows_comes_back_to_the_memory,
    ),
    "the store's own row stays, of a window that may be late": (
        held.HeldRows, "delete", lambda rows, end, key, row: rows.slots.get(end, {}).pop(key, None), _a_row_that_the_store_has_goes,
    ),
    "what was there before a hook is not logged": (held.HeldRows, "touch", _touched_without_a_log, _an_undone_record_and_one_that_stays),
    "a row that the store has is begun again, where records are counted": (
        SlicesInPlace, "fresh", _fresh_whatever_the_store_has, _all_rows_leave_the_memory_between_two_records_of_a_slice,
    ),
    "a new row is not logged, where records are counted": (held.HeldRows, "begin", _begun_without_a_log, _an_undone_record_of_a_new_key),
    "slots that are cleared are used": (held.HeldRows, "clear", _cleared_but_for_the_slots_at_hand, _all_rows_leave_the_memory_between_two_records_of_a_slice),
}


@pytest.mark.parametrize("bug", HELD_BUGS)
def test_a_planted_bug_of_what_is_held_is_noticed(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    owner, name, wrong, history = HELD_BUGS[bug]

    def told_what_it_must() -> None:
        w = World(Window(10, 10), 5 if "late" in bug else 0, False, sums=COUNT if "counted" in bug else ADD_UP)
        history(w)
        assert w.told == w.expected

    told_what_it_must()
    monkeypatch.setattr(owner, name, wrong)
    with pytest.raises(AssertionError):
        told_what_it_must()


def test_a_slice_that_was_taken_is_there_again_when_the_hook_raised() -> None:
    w = World(Window(10, 10), 0, False, sums=ADD_UP)
    for key in (b"b", b"a"):
        w.add(key, 2, 5)
    rows = w.slices._held
    assert rows.take_first(10, 3, 9) is None, "one of three is not held"
    assert rows.take_first(10, 2, 0) is None, "many more than may be taken at once"
    taken = rows.take_first(10, 2, 1), rows.take_first(10, 1, 1)
    assert [(key, entry.sum) for found in taken for key, entry in found or ()] == [(b"a", 2), (b"b", 2)]
    assert (rows.slots[10], rows.unwritten_bytes) == ({}, 0)
    w.store.undo()
    assert {key: entry.sum for key, entry in rows.slots[10].items()} == {b"a": 2, b"b": 2}
    assert rows.unwritten_bytes > 0
    w.advance(20, 10)
    assert w.told == w.expected != []
