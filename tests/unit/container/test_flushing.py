"""When stores are written out and flushed."""

from __future__ import annotations

from samzapy.container.flushing import FLUSH_COSTS, MIN_PART, Flushing


class Store:
    """A store that counts: `unwritten` entries, and how often it was flushed."""

    def __init__(self, unwritten: int = 0, is_full: bool = False) -> None:
        self.unwritten = unwritten
        self.must_write_out = is_full
        self.parts: list[int] = []
        self.flushes = 0

    def write_out(self, max_entries: int | None = None) -> bool:
        part = self.unwritten if max_entries is None else min(self.unwritten, max_entries)
        self.parts.append(part)
        self.unwritten -= part
        self.must_write_out = False
        return self.unwritten == 0

    def start_flush(self) -> None:
        self.flushes += 1


def turns(flushing: Flushing, stores: list[Store], start: float, count: int, changes: int = 0) -> None:
    for turn in range(count):
        flushing.step(start + turn / 10, changes, stores)


def test_nothing_is_written_before_the_interval_is_over() -> None:
    store, flushing = Store(100), Flushing(10.0, 1000)
    flushing.begin(0.0)
    turns(flushing, [store], 0.0, 99)
    assert ([], 0) == (store.parts, store.flushes)

    turns(flushing, [store], 10.0, 1)
    assert ([100], 1) == (store.parts, store.flushes)


def test_so_many_changes_flush_before_the_interval_is_over() -> None:
    store, flushing = Store(100), Flushing(10.0, 1000)
    flushing.begin(0.0)
    turns(flushing, [store], 0.0, 5, changes=999)
    assert 0 == store.flushes

    turns(flushing, [store], 0.5, 5, changes=1000)
    assert 1 == store.flushes, "once for these thousand"


def test_a_large_store_is_written_in_parts_and_flushed_when_it_is_done() -> None:
    store, flushing = Store(10 * MIN_PART), Flushing(10.0, 10**9)
    flushing.begin(0.0)
    turns(flushing, [store], 10.0, 9)
    assert ([MIN_PART] * 9, 0) == (store.parts, store.flushes)

    turns(flushing, [store], 10.9, 1)
    assert ([MIN_PART] * 10, 1) == (store.parts, store.flushes)


def test_a_huge_store_is_done_long_before_the_next_interval() -> None:
    store, flushing = Store(1_000_000), Flushing(10.0, 10**9)
    flushing.begin(0.0)
    turns(flushing, [store], 10.0, 50)
    assert (0, 1) == (store.unwritten, store.flushes)
    assert max(store.parts) < 50_000


def test_many_small_stores_share_a_turn() -> None:
    stores, flushing = [Store(10) for _ in range(300)], Flushing(10.0, 10**9)
    flushing.begin(0.0)
    turns(flushing, list(stores), 10.0, 1)
    done = sum(store.flushes for store in stores)
    assert MIN_PART // (FLUSH_COSTS + 10) <= done <= MIN_PART // FLUSH_COSTS + 1

    turns(flushing, list(stores), 10.1, 20)
    assert {1} == {store.flushes for store in stores}


def test_a_store_that_takes_too_much_memory_is_written_at_once() -> None:
    store, flushing = Store(50_000, is_full=True), Flushing(10.0, 10**9)
    flushing.begin(0.0)
    turns(flushing, [store], 0.0, 1)
    assert ([50_000], 0) == (store.parts, store.flushes)


def test_a_store_that_was_given_back_is_left_alone() -> None:
    gone, there, flushing = Store(10 * MIN_PART), Store(10 * MIN_PART), Flushing(10.0, 10**9)
    flushing.begin(0.0)
    turns(flushing, [there, gone], 10.0, 3)
    written = gone.unwritten
    turns(flushing, [there], 10.3, 12)
    assert written == gone.unwritten
    assert (0, 1) == (there.unwritten, there.flushes)
