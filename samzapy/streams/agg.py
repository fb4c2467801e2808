"""Aggregates: what `aggregate` makes of many values. Each keeps an accumulator in the store, as JSON, and can merge two of them.

`agg.sum(lambda edit: edit["bytes"])` sums what the function gives; without a function it takes the values themselves.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Generic, Protocol, TypeVar

from typing_extensions import TypeVar as DefaultTypeVar

from samzapy.api.errors import ConfigurationError
from samzapy.streams.different import in_form, text_of
from samzapy.streams.kinds import Kind, plain, unplain
from samzapy.streams.ranks import compared
from samzapy.streams.sums import both, exactly, plus, plus_for_mean, result_of

V = DefaultTypeVar("V", default=Any)
A = DefaultTypeVar("A", default=Any)
R = DefaultTypeVar("R", default=Any)
X = TypeVar("X")
C = TypeVar("C", bound="Comparable")
MAX_COLLECTED, MAX_TOP = 10_000, 1000


class Comparable(Protocol):
    """What has an order: a number, a text, or a list or tuple of these. What else there is (a datetime, for example) no store gives back as it was."""

    def __lt__(self, other: Any, /) -> bool: ...


@dataclass(frozen=True)
class Aggregate(Generic[V, A, R]):
    """An aggregate of a user's own, or one of this module's.

    Attributes:
        zero: makes the accumulator of nothing.
        add: accumulator and value to accumulator; it may change the one it is given. A third parameter `time` gets the record's time.
        merge: two accumulators of different records to one; None: cannot be merged.
        result: what an accumulator says.
        state: what accumulators are: a type that JSON can hold.
        what: a name that changes when accumulators change their meaning; it is part of the checkpoint.
        of_kind: makes the aggregate for values of a kind; None: it is the same for all.
    """

    zero: Callable[[], A]
    add: Callable[..., A]
    merge: Callable[[A, A], A] | None
    result: Callable[[A], R]
    state: Any = dict
    what: str = "own"
    of_kind: Callable[[Kind | None], Aggregate[V, Any, R]] | None = None

    def of(self, kind: Kind | None) -> Aggregate[V, Any, R]:
        """This aggregate over values of a kind."""
        return self if self.of_kind is None else replace(self.of_kind(kind), of_kind=None)


def count() -> Aggregate[Any, int, int]:
    """How many there are."""
    return Aggregate(lambda: 0, lambda n, value: n + 1, _plus, _same, int, "count")


def sum(of: Callable[[V], float] | None = None, *, exact: bool = False) -> Aggregate[V, Any, Any]:  # noqa: A001 - as the field calls it
    """The sum. `exact`: without rounding on the way and without a limit of 64 bits, the same in whatever order the values come; of whole numbers it
    is a whole number."""
    get = _getter(of)
    if exact:
        return Aggregate(list, lambda parts, value: exactly(parts, get(value)), both, result_of, list, "exact sum")
    return Aggregate(lambda: 0, lambda total, value: plus(total, get(value)), plus, _same, float, "sum")


def mean(of: Callable[[V], float] | None = None) -> Aggregate[V, Any, float | None]:
    """The arithmetic mean; None of nothing."""
    get = _getter(of)
    return Aggregate(
        lambda: [0, 0],
        lambda pair, value: [plus_for_mean(pair[0], get(value)), pair[1] + 1],
        lambda a, b: [plus_for_mean(a[0], b[0]), a[1] + b[1]],
        lambda pair: pair[0] / pair[1] if pair[1] else None,
        list,
        "mean",
    )


def min(of: Callable[[V], C] | None = None) -> Aggregate[V, Any, C | None]:  # noqa: A001 - as the field calls it
    """The smallest; None of nothing."""
    return _extreme(_getter(of), lambda new, old: new < old, "min")


def max(of: Callable[[V], C] | None = None) -> Aggregate[V, Any, C | None]:  # noqa: A001 - as the field calls it
    """The largest; None of nothing."""
    return _extreme(_getter(of), lambda new, old: old < new, "max")


def min_by(by: Callable[[V], Comparable]) -> Aggregate[V, Any, V | None]:
    """The value of which `by` is smallest, of equal ones the first."""
    return _best(by, lambda new, old: new < old, "min_by")


def max_by(by: Callable[[V], Comparable]) -> Aggregate[V, Any, V | None]:
    """The value of which `by` is largest, of equal ones the first."""
    return _best(by, lambda new, old: old < new, "max_by")


def first(of: Callable[[V], X] | None = None) -> Aggregate[V, Any, X | None]:
    """Of the record with the smallest time, of equal ones the first that came."""
    return _by_time(of, lambda new, old: new < old, lambda a, b: a if not b or (a and a[0] <= b[0]) else b, "first")


def last(of: Callable[[V], X] | None = None) -> Aggregate[V, Any, X | None]:
    """Of the record with the largest time, of equal ones the last that came."""
    return _by_time(of, lambda new, old: old <= new, lambda a, b: b if not a or (b and a[0] <= b[0]) else a, "last")


def top(k: int, by: Callable[[V], Comparable]) -> Aggregate[V, Any, list[V]]:
    """The `k` values of which `by` is largest, the largest first; of equal ones those that came first."""
    _check_size("top", k, MAX_TOP)

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

        return Aggregate(list, add, merge, lambda best: [give(value) for _, value in best], list, f"top {k}")

    return replace(of_kind(None), of_kind=of_kind)


def distinct(of: Callable[[V], Any] | None = None) -> Aggregate[V, Any, int]:
    """How many different ones there are. All of them are kept. What is different: `samzapy.streams.different`."""
    get = _getter(of)

    def of_kind(kind: Kind | None) -> Aggregate[V, Any, int]:
        formed = in_form(kind if of is None else None)

        def add(seen: dict[str, Any], value: V) -> dict[str, Any]:
            seen = formed(seen)
            seen[text_of(get(value))] = 1
            return seen

        return Aggregate(dict, add, lambda a, b: {**formed(a), **formed(b)}, lambda seen: len(formed(seen)) - 1, dict, "distinct")

    return replace(of_kind(None), of_kind=of_kind)


def value_counts(of: Callable[[V], str | Iterable[str]] | None = None) -> Aggregate[V, Any, dict[str, int]]:
    """How often each text comes. A function may give several texts of one value, as a list."""
    get = _getter(of)

    def add(counts: dict[str, int], value: V) -> dict[str, int]:
        found = get(value)
        for item in (found,) if isinstance(found, str) else found:
            if not isinstance(item, str):
                raise TypeError(f"value_counts counts texts, not {type(item).__name__}")
            counts[item] = counts.get(item, 0) + 1
        return counts

    def merge(a: dict[str, int], b: dict[str, int]) -> dict[str, int]:
        return {**a, **{item: a.get(item, 0) + n for item, n in b.items()}}

    return Aggregate(dict, add, merge, _same, dict, "value_counts")


def collect(of: Callable[[V], X] | None = None, *, limit: int = MAX_COLLECTED) -> Aggregate[V, Any, list[X]]:
    """All of them, in the order in which they came; more than `limit` are the record's error."""
    _check_size("collect", limit, MAX_COLLECTED)

    def of_kind(kind: Kind | None) -> Aggregate[V, Any, list[X]]:
        keep, give = _forms(kind if of is None else None)
        get = _getter(of)

        def add(found: list[Any], value: V) -> list[Any]:
            if len(found) >= limit:
                raise ValueError(f"collect: more than {limit} values of one key; collect(limit=…) takes at most {MAX_COLLECTED}")
            found.append(keep(get(value)))
            return found

        return Aggregate(list, add, _plus, lambda found: [give(value) for value in found], list, "collect")

    return replace(of_kind(None), of_kind=of_kind)


# -- inside ----------------------------------------------------------------------------------------------------------------------------


class _Falling:
    """A sort key that puts larger ranks first."""

    __slots__ = ("rank",)

    def __init__(self, entry: Any) -> None:
        self.rank = entry[0]

    def __lt__(self, other: _Falling) -> bool:
        return bool(other.rank < self.rank)


def _same(value: X) -> X:
    return value


def _plus(a: Any, b: Any) -> Any:
    return a + b


def _getter(of: Callable[[Any], Any] | None) -> Callable[[Any], Any]:
    return _same if of is None else of


def _forms(kind: Kind | None) -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
    """How a value of a kind is put into an accumulator, and made of it again."""
    return (plain, unplain(kind)) if kind is not None and kind.is_record else (_same, _same)


def _extreme(get: Callable[[Any], Any], better: Callable[[Any, Any], bool], what: str) -> Aggregate[Any, Any, Any]:
    def pick(old: Any, new: Any) -> Any:
        return new if old is None or (new is not None and better(new, old)) else old

    def add(old: Any, value: Any) -> Any:
        new = get(value)
        return old if new is None else pick(old, compared(new, what))

    return Aggregate(lambda: None, add, pick, _same, Any, what)


def _best(by: Callable[[Any], Any], better: Callable[[Any, Any], bool], what: str) -> Aggregate[Any, Any, Any]:
    def of_kind(kind: Kind | None) -> Aggregate[Any, Any, Any]:
        keep, give = _forms(kind)

        def add(old: list[Any], value: Any) -> list[Any]:
            rank = compared(by(value), what)
            return [rank, keep(value)] if not old or better(rank, old[0]) else old

        def merge(a: list[Any], b: list[Any]) -> list[Any]:
            return b if not a or (b and better(b[0], a[0])) else a

        return Aggregate(list, add, merge, lambda best: give(best[1]) if best else None, list, what)

    return replace(of_kind(None), of_kind=of_kind)


def _by_time(
    of: Callable[[Any], Any] | None, better: Callable[[int, int], bool], merge: Callable[[list[Any], list[Any]], list[Any]], what: str
) -> Aggregate[Any, Any, Any]:
    def of_kind(kind: Kind | None) -> Aggregate[Any, Any, Any]:
        keep, give = _forms(kind if of is None else None)
        get = _getter(of)

        def add(old: list[Any], value: Any, time: int) -> list[Any]:
            return [time, keep(get(value))] if not old or better(time, old[0]) else old

        return Aggregate(list, add, merge, lambda found: give(found[1]) if found else None, list, what)

    return replace(of_kind(None), of_kind=of_kind)


def _check_size(what: str, given: object, most: int) -> None:
    if isinstance(given, bool) or not isinstance(given, int) or not 1 <= given <= most:
        raise ConfigurationError(f"agg.{what}: {given!r} is not a number from 1 to {most}.", "")


