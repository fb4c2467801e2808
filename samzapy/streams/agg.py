"""Aggregates for `aggregate`: functions that make one result of many values. The store keeps an accumulator for each, as JSON.

`agg.sum(lambda edit: edit["bytes"])` sums what the function returns for each value; without a function it sums the values themselves. The same holds for
the argument `of` of the other functions. All can be merged, so all can be used in windows that overlap.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

from typing_extensions import TypeVar as DefaultTypeVar

from samzapy.api.errors import ConfigurationError
from samzapy.streams.different import in_form, text_of
from samzapy.streams.functions import refuse_no_function
from samzapy.streams.kinds import Kind, keeping, unplain
from samzapy.streams.places import place
from samzapy.streams.ranks import compared, is_less
from samzapy.streams.sums import both, exactly, plus, plus_for_mean, result_of

V = DefaultTypeVar("V", default=Any)
A = DefaultTypeVar("A", default=Any)
R = DefaultTypeVar("R", default=Any)
X = TypeVar("X")
C = TypeVar("C", bound="Comparable")
MAX_COLLECTED, MAX_TOP = 10_000, 1000


class Comparable(Protocol):
    """A number (but nan), a text, or a list or tuple of these. Other values that have an order, such as a datetime, do not come back from a store as they were."""

    def __lt__(self, other: Any, /) -> bool: ...


@dataclass(frozen=True)
class Aggregate(Generic[V, A, R]):
    """How one result is made of many values. This module's functions return aggregates; a program may also define its own.

    Attributes:
        zero: returns the accumulator of no values.
        add: called with an accumulator and a value, returns the new accumulator; it may change the one that it is given. If it has a third
            parameter `time`, that is the record's time, in milliseconds since 1970.
        merge: called with two accumulators of different values, returns one of all; None: they cannot be merged, so windows may not overlap.
        result: called with an accumulator, returns the result.
        state: the type of accumulators, which JSON can hold.
        what: a name for the accumulators' meaning: change it when that changes. It is part of the checkpoint: a changed name is refused while there is state.
        merge_parts: called in place of `merge` where both accumulators are in a store already, so that no record is at fault: of a window's slices, and of
            partial sums that came through a topic. None: `merge`.
        of_kind: called with the kind of the values, returns the aggregate for it; None: the aggregate is the same for every kind.
        keeps: the kind of the values that accumulators keep, which may not change while there is state; None: they keep none, or it is not known.
        counts_each: whether a value that comes twice is in the result twice. Panes that may be corrected are refused for it.
    """

    zero: Callable[[], A]
    add: Callable[..., A]
    merge: Callable[[A, A], A] | None
    result: Callable[[A], R]
    state: Any = dict
    what: str = "own"
    merge_parts: Callable[[A, A], A] | None = None
    of_kind: Callable[[Kind | None], Aggregate[V, Any, R]] | None = None
    keeps: Kind | None = None
    counts_each: bool = False

    def of(self, kind: Kind | None) -> Aggregate[V, Any, R]:
        """This aggregate for values of a kind; None: of an unknown kind."""
        return self if self.of_kind is None else replace(self.of_kind(kind), of_kind=None)


def count() -> Aggregate[Any, int, int]:
    """The number of values."""
    return Aggregate(lambda: 0, lambda n, value: n + 1, _plus, _same, int, "count", counts_each=True)


def sum(of: Callable[[V], float] | None = None, *, exact: bool = False) -> Aggregate[V, Any, Any]:  # noqa: A001 - as the field calls it
    """The sum.

    A value or a sum that a store cannot hold (a whole number beyond 64 bits, a float beyond 1.8e308, nan) raises TaskError at that record; in windows that
    overlap, a sum of several slices is the pane's error. `exact`: the sum
    is rounded only at the end and may grow beyond 64 bits, so it does not depend on the order of the values (Shewchuk's partial sums, 1997, as `math.fsum`);
    the sum of whole numbers is a whole number.
    """
    get = _getter(of)
    if exact:
        return Aggregate(list, lambda parts, value: exactly(parts, get(value)), both, result_of, list, "exact sum", counts_each=True)
    return Aggregate(lambda: 0, lambda total, value: plus(total, get(value)), plus, _same, float, "sum", counts_each=True)


def mean(of: Callable[[V], float] | None = None) -> Aggregate[V, Any, float | None]:
    """The arithmetic mean, as a float; None if there is no value. If the sum of whole numbers exceeds 64 bits, it goes on as a float."""
    get = _getter(of)
    return Aggregate(
        lambda: [0, 0],
        lambda pair, value: [plus_for_mean(pair[0], get(value)), pair[1] + 1],
        lambda a, b: [plus_for_mean(a[0], b[0]), a[1] + b[1]],
        lambda pair: pair[0] / pair[1] if pair[1] else None,
        list,
        "mean",
        counts_each=True,
    )


def min(of: Callable[[V], C] | None = None) -> Aggregate[V, Any, C | None]:  # noqa: A001 - as the field calls it
    """The smallest value; None if there is none. Values that are None are left out; nan, or one that a store cannot hold in an order, raises TaskError."""
    return _extreme(_getter(of), lambda new, old: new < old, is_less, "min")


def max(of: Callable[[V], C] | None = None) -> Aggregate[V, Any, C | None]:  # noqa: A001 - as the field calls it
    """The largest value; None if there is none. Values that are None are left out; nan, or one that a store cannot hold in an order, raises TaskError."""
    return _extreme(_getter(of), lambda new, old: old < new, lambda new, old: is_less(old, new), "max")


def min_by(by: Callable[[V], Comparable]) -> Aggregate[V, Any, V | None]:
    """The value for which `by` returns the smallest result, of equal ones the first; None if there is no value. Raises TaskError as `min`, also for None."""
    return _best(by, lambda new, old: new < old, is_less, "min_by")


def max_by(by: Callable[[V], Comparable]) -> Aggregate[V, Any, V | None]:
    """The value for which `by` returns the largest result, of equal ones the first; None if there is no value. Raises TaskError as `min`, also for None."""
    return _best(by, lambda new, old: old < new, lambda new, old: is_less(old, new), "max_by")


def first(of: Callable[[V], X] | None = None) -> Aggregate[V, Any, X | None]:
    """The value of the record with the earliest time; of equal times, of the record that came first. None if there is no value."""
    return _by_time(of, lambda new, old: new < old, lambda a, b: a if not b or (a and a[0] <= b[0]) else b, "first")


def last(of: Callable[[V], X] | None = None) -> Aggregate[V, Any, X | None]:
    """The value of the record with the latest time; of equal times, of the record that came last. None if there is no value."""
    return _by_time(of, lambda new, old: old <= new, lambda a, b: b if not a or (b and a[0] <= b[0]) else a, "last")


def top(k: int, by: Callable[[V], Comparable]) -> Aggregate[V, Any, list[V]]:
    """A list of the `k` values (1 to 1,000) for which `by` returns the largest results, the largest first; of equal ones those that came first.

    Raises TaskError as `min_by`; ConfigurationError for another `k`.
    """
    _check_size("top", k, MAX_TOP)
    refuse_no_function(by, "agg.top", place())

    def of_kind(kind: Kind | None) -> Aggregate[V, Any, list[V]]:
        keep, give = _forms(kind)

        def add(best: list[Any], value: V) -> list[Any]:
            rank = compared(by(value), "top")
            if len(best) < k or best[-1][0] < rank:
                insort(best, [rank, keep(value)], key=_Falling)
                del best[k:]
            return best

        def merge(a: list[Any], b: list[Any]) -> list[Any]:
            return sorted([*a, *b], key=_Falling)[:k]

        def merge_parts(a: list[Any], b: list[Any]) -> list[Any]:
            return sorted([*a, *b], key=_FallingOfParts)[:k]

        return Aggregate(list, add, merge, lambda best: [give(value) for _, value in best], list, f"top {k}", merge_parts, keeps=kind, counts_each=True)

    return replace(of_kind(None), of_kind=of_kind)


def distinct(of: Callable[[V], Any] | None = None) -> Aggregate[V, Any, int]:
    """How many different values there are, exactly: the accumulator keeps all of them. Numbers are equal by value (1, 1.0 and True), dicts and records
    by their entries; `samzapy.streams.different` has the rules."""
    get = _getter(of)

    def of_kind(kind: Kind | None) -> Aggregate[V, Any, int]:
        kept = kind if of is None else None
        formed = in_form(kept)

        def add(seen: dict[str, Any], value: V) -> dict[str, Any]:
            seen = formed(seen)
            seen[text_of(get(value))] = 1
            return seen

        return Aggregate(dict, add, lambda a, b: {**formed(a), **formed(b)}, lambda seen: len(formed(seen)) - 1, dict, "distinct", keeps=kept)

    return replace(of_kind(None), of_kind=of_kind)


def value_counts(of: Callable[[V], str | Iterable[str]] | None = None) -> Aggregate[V, Any, dict[str, int]]:
    """A dict from each text to how often it came. `of` may return several texts for one value, as a list. Another type raises TypeError."""
    get = _getter(of)

    def add(counts: dict[str, int], value: V) -> dict[str, int]:
        found = get(value)
        if not isinstance(found, Iterable):
            raise TypeError(f"value_counts counts texts, not {type(found).__name__}: give it a function, such as value_counts(str)")
        for item in (found,) if isinstance(found, str) else found:
            if not isinstance(item, str):
                raise TypeError(f"value_counts counts texts, not {type(item).__name__}")
            counts[item] = counts.get(item, 0) + 1
        return counts

    def merge(a: dict[str, int], b: dict[str, int]) -> dict[str, int]:
        return {**a, **{item: a.get(item, 0) + n for item, n in b.items()}}

    return Aggregate(dict, add, merge, _same, dict, "value_counts", counts_each=True)


def collect(of: Callable[[V], X] | None = None, *, limit: int = MAX_COLLECTED) -> Aggregate[V, Any, list[X]]:
    """A list of all values, in the order in which they came. A record beyond `limit` values (at most 10,000; if windows overlap, the values of one `every` count)
    raises ValueError, and `on_error` applies to it."""
    _check_size("collect", limit, MAX_COLLECTED)

    def of_kind(kind: Kind | None) -> Aggregate[V, Any, list[X]]:
        kept = kind if of is None else None
        keep, give = _forms(kept)
        get = _getter(of)

        def add(found: list[Any], value: V) -> list[Any]:
            if len(found) >= limit:
                raise ValueError(f"collect: more than {limit} values of one key; collect(limit=…) takes at most {MAX_COLLECTED}")
            found.append(keep(get(value)))
            return found

        return Aggregate(list, add, _plus, lambda found: [give(value) for value in found], list, "collect", keeps=kept, counts_each=True)

    return replace(of_kind(None), of_kind=of_kind)


# -- inside ----------------------------------------------------------------------------------------------------------------------------


class _Falling:
    """A sort key that puts larger ranks first."""

    __slots__ = ("rank",)

    def __init__(self, entry: Any) -> None:
        self.rank = entry[0]

    def __lt__(self, other: _Falling) -> bool:
        return bool(other.rank < self.rank)


class _FallingOfParts(_Falling):
    """The same for what was accepted apart, and may not compare."""

    __slots__ = ()

    def __lt__(self, other: _Falling) -> bool:
        return is_less(other.rank, self.rank)


def _same(value: X) -> X:
    return value


def _plus(a: Any, b: Any) -> Any:
    return a + b


def _getter(of: Callable[[Any], Any] | None) -> Callable[[Any], Any]:
    if of is None:
        return _same
    refuse_no_function(of, "an aggregate", place())
    return of


def _forms(kind: Kind | None) -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
    """How a value of a kind is put into an accumulator, and made of it again."""
    return (keeping(kind), unplain(kind)) if kind is not None and kind.is_record else (_same, _same)


Better = Callable[[Any, Any], bool]  # whether a new value is to replace the old one


def _extreme(get: Callable[[Any], Any], better: Better, better_of_parts: Better, what: str) -> Aggregate[Any, Any, Any]:
    """`better` raises TypeError where values do not compare; `better_of_parts` never does."""

    def pick(better: Better, old: Any, new: Any) -> Any:
        return new if old is None or (new is not None and better(new, old)) else old

    def add(old: Any, value: Any) -> Any:
        new = get(value)
        return old if new is None else pick(better, old, compared(new, what))

    return Aggregate(lambda: None, add, partial(pick, better), _same, Any, what, partial(pick, better_of_parts))


def _best(by: Callable[[Any], Any], better: Better, better_of_parts: Better, what: str) -> Aggregate[Any, Any, Any]:
    """As `_extreme`."""
    refuse_no_function(by, f"agg.{what}", place())

    def of_kind(kind: Kind | None) -> Aggregate[Any, Any, Any]:
        keep, give = _forms(kind)

        def add(old: list[Any], value: Any) -> list[Any]:
            rank = compared(by(value), what)
            return [rank, keep(value)] if not old or better(rank, old[0]) else old

        def pick(better: Better, a: list[Any], b: list[Any]) -> list[Any]:
            return b if not a or (b and better(b[0], a[0])) else a

        result: Callable[[list[Any]], Any] = lambda best: give(best[1]) if best else None  # noqa: E731
        return Aggregate(list, add, partial(pick, better), result, list, what, partial(pick, better_of_parts), keeps=kind)

    return replace(of_kind(None), of_kind=of_kind)


def _by_time(
    of: Callable[[Any], Any] | None, better: Callable[[int, int], bool], merge: Callable[[list[Any], list[Any]], list[Any]], what: str
) -> Aggregate[Any, Any, Any]:
    def of_kind(kind: Kind | None) -> Aggregate[Any, Any, Any]:
        kept = kind if of is None else None
        keep, give = _forms(kept)
        get = _getter(of)

        def add(old: list[Any], value: Any, time: int) -> list[Any]:
            return [time, keep(get(value))] if not old or better(time, old[0]) else old

        return Aggregate(list, add, merge, lambda found: give(found[1]) if found else None, list, what, keeps=kept)

    return replace(of_kind(None), of_kind=of_kind)


def _check_size(what: str, given: object, most: int) -> None:
    if isinstance(given, bool) or not isinstance(given, int) or not 1 <= given <= most:
        raise ConfigurationError(f"agg.{what}: {given!r} is not a number from 1 to {most}.", "")


