"""The read cache: bounded, and never older than what was put last."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from samzapy.store.read_cache import ENTRY_BYTES, ReadCache

ABSENT = object()


def test_knows_values_and_absences() -> None:
    cache = ReadCache(10_000)
    cache.add(b"a", b"1")
    cache.add(b"b", None)
    assert (cache.get(b"a", ABSENT), cache.get(b"b", ABSENT), cache.get(b"c", ABSENT)) == (b"1", None, ABSENT)
    cache.clear()
    assert cache.get(b"a", ABSENT) is ABSENT


def test_keeps_what_is_asked_for_and_forgets_the_rest() -> None:
    cache = ReadCache(20 * (ENTRY_BYTES + 10))
    cache.add(b"often", b"x")
    for number in range(1000):
        cache.add(b"%05d" % number, b"12345")
        assert cache.get(b"often", ABSENT) == b"x"
    assert cache.get(b"00001", ABSENT) is ABSENT


def test_a_bound_of_nothing_keeps_nothing() -> None:
    cache = ReadCache(0)
    cache.add(b"a", b"1")
    cache.take_in({b"b": b"2", b"c": b"3"}, 4)
    assert [cache.get(k, ABSENT) for k in (b"a", b"b", b"c")] == [ABSENT] * 3


@given(
    st.integers(0, 2000),
    st.lists(
        st.dictionaries(st.sampled_from([b"a", b"b", b"c", b"d", b"e"]), st.none() | st.binary(max_size=300), min_size=1), max_size=30
    ),
)
def test_stays_within_its_bound_and_never_tells_an_older_value(bound: int, batches: list[dict[bytes, bytes | None]]) -> None:
    cache = ReadCache(bound)
    newest: dict[bytes, bytes | None] = {}
    for number, batch in enumerate(batches):
        if number % 2:
            cache.take_in(batch, sum(len(k) + len(v or b"") for k, v in batch.items()))
        else:
            for key, value in batch.items():
                cache.add(key, value)
        newest.update(batch)
        if number % 5 == 4:
            bound = (bound * 7 + 500) % 2001
            cache.limit(bound)
        held = {k: v for k in newest if (v := cache.get(k, ABSENT)) is not ABSENT}
        assert held == {k: newest[k] for k in held}
        largest = ENTRY_BYTES + 301
        entries = {**cache._old, **cache._young}
        assert sum(ENTRY_BYTES + len(k) + len(v or b"") for k, v in entries.items()) <= bound + largest
