"""`Stream`: the operators of a program. Each method adds an operator to the program's graph and gives a stream of what the operator gives on."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, overload

from samzapy.streams import stateful, through
from samzapy.streams.agg import Aggregate
from samzapy.streams.emit import FINAL, Emit
from samzapy.streams.functions import OfBoth, OfHeaders, OfKey, OfTime, function
from samzapy.streams.graph import Branch, Filter, FilterMap, FlatMap, Map, Merge, Node, Peek, Sink, Way
from samzapy.streams.kinds import Kind, kind_of, returned_kind
from samzapy.streams.places import place, refused
from samzapy.streams.windows import Duration, Window

if TYPE_CHECKING:
    from samzapy.streams.app import App
    from samzapy.streams.table import Table
    from samzapy.streams.windowed import Windowed

K = TypeVar("K")
V = TypeVar("V")
W = TypeVar("W")
L = TypeVar("L")
A = TypeVar("A")
Named = OfKey[V, K, W] | OfTime[V, W] | OfBoth[V, K, W] | OfHeaders[V, W]
Test = Callable[[V], bool] | Named[V, K, bool]
Kinds = type[W] | str | None


class Stream(Generic[K, V]):
    """Records with a key, a value, a time and headers. A stream is a value: it may be used many times.

    A function that an operator takes gets the value; what else it wants it names as a parameter without default: `key`, `time` (milliseconds
    since 1970), `headers`. It must not change what it is given.
    """

    def __init__(self, app: App, node: Node) -> None:
        self.app = app
        self.node = node

    # -- without state ---------------------------------------------------------------------------------------------------------------

    @overload
    def map(self, fn: Callable[[V], W], /, *, value: Kinds[W] = ..., label: str = ...) -> Stream[K, W]: ...
    @overload
    def map(self, fn: OfKey[V, K, W], /, *, value: Kinds[W] = ..., label: str = ...) -> Stream[K, W]: ...
    @overload
    def map(self, fn: OfTime[V, W], /, *, value: Kinds[W] = ..., label: str = ...) -> Stream[K, W]: ...
    @overload
    def map(self, fn: OfBoth[V, K, W], /, *, value: Kinds[W] = ..., label: str = ...) -> Stream[K, W]: ...
    @overload
    def map(self, fn: OfHeaders[V, W], /, *, value: Kinds[W] = ..., label: str = ...) -> Stream[K, W]: ...
    def map(self, fn: Any, /, *, value: Any = None, label: str = "") -> Stream[K, Any]:
        """What the function gives for each value. `value`: its kind, where the function's annotation does not say it."""
        return self._made(Map, fn, value, label, returned_kind(fn))

    @overload
    def filter_map(self, fn: Callable[[V], W | None], /, *, value: Kinds[W] = ..., label: str = ...) -> Stream[K, W]: ...
    @overload
    def filter_map(self, fn: OfKey[V, K, W | None], /, *, value: Kinds[W] = ..., label: str = ...) -> Stream[K, W]: ...
    @overload
    def filter_map(self, fn: OfTime[V, W | None], /, *, value: Kinds[W] = ..., label: str = ...) -> Stream[K, W]: ...
    @overload
    def filter_map(self, fn: OfBoth[V, K, W | None], /, *, value: Kinds[W] = ..., label: str = ...) -> Stream[K, W]: ...
    @overload
    def filter_map(self, fn: OfHeaders[V, W | None], /, *, value: Kinds[W] = ..., label: str = ...) -> Stream[K, W]: ...
    def filter_map(self, fn: Any, /, *, value: Any = None, label: str = "") -> Stream[K, Any]:
        """What the function gives for each value; where that is None the record is dropped, and counted."""
        return self._made(FilterMap, fn, value, label, returned_kind(fn, optional=True))

    @overload
    def flat_map(self, fn: Callable[[V], Iterable[W]], /, *, value: Kinds[W] = ..., label: str = ...) -> Stream[K, W]: ...
    @overload
    def flat_map(self, fn: OfKey[V, K, Iterable[W]], /, *, value: Kinds[W] = ..., label: str = ...) -> Stream[K, W]: ...
    @overload
    def flat_map(self, fn: OfTime[V, Iterable[W]], /, *, value: Kinds[W] = ..., label: str = ...) -> Stream[K, W]: ...
    @overload
    def flat_map(self, fn: OfBoth[V, K, Iterable[W]], /, *, value: Kinds[W] = ..., label: str = ...) -> Stream[K, W]: ...
    @overload
    def flat_map(self, fn: OfHeaders[V, Iterable[W]], /, *, value: Kinds[W] = ..., label: str = ...) -> Stream[K, W]: ...
    def flat_map(self, fn: Any, /, *, value: Any = None, label: str = "") -> Stream[K, Any]:
        """Each of what the function gives for a value, in order."""
        return self._made(FlatMap, fn, value, label, returned_kind(fn, items=True), may_yield=True)

    @overload
    def filter(self, fn: Callable[[V], bool], /, *, label: str = ...) -> Stream[K, V]: ...
    @overload
    def filter(self, fn: Named[V, K, bool], /, *, label: str = ...) -> Stream[K, V]: ...
    def filter(self, fn: Any, /, *, label: str = "") -> Stream[K, V]:
        """The records for which the function gives true."""
        return self._made(Filter, fn, None, label, self.node.value)

    @overload
    def peek(self, fn: Callable[[V], object], /, *, label: str = ...) -> Stream[K, V]: ...
    @overload
    def peek(self, fn: Named[V, K, object], /, *, label: str = ...) -> Stream[K, V]: ...
    def peek(self, fn: Any, /, *, label: str = "") -> Stream[K, V]:
        """The records as they are; each value is given to the function first, to be looked at."""
        return self._made(Peek, fn, None, label, self.node.value)

    def branch(self, *tests: Test[V, K]) -> tuple[Stream[K, V], ...]:
        """A stream for each test, of the records for which it is the first that holds; the last stream has the rest."""
        if not tests:
            raise refused("branch takes at least one function")
        where = place()
        found = tuple(function(test, "branch", where) for test in tests)
        node = self.app.add(Branch, inputs=(self.node,), key=self.node.key, value=self.node.value, tests=found)
        ways = [self.app.add(Way, inputs=(node,), key=node.key, value=node.value, index=index) for index in range(len(tests) + 1)]
        return tuple(Stream(self.app, way) for way in ways)

    def merge(self, *others: Stream[K, V]) -> Stream[K, V]:
        """The records of this stream and of the others; between them there is no order."""
        nodes = [self.node, *(self.app.own(other.node, other.app, "merge") for other in others)]
        for node in nodes:
            if node.key != self.node.key:
                raise refused(f"merge: keys are {self.node.key} in one stream and {node.key} in another", "Merge streams with keys of one kind.")
        same = all(node.value == self.node.value for node in nodes)
        return Stream(self.app, self.app.add(Merge, inputs=tuple(nodes), key=self.node.key, value=self.node.value if same else None))

    # -- through a topic of the job's own ----------------------------------------------------------------------------------------------

    @overload
    def key_by(
        self, fn: Callable[[V], L] | Named[V, K, L], name: str, /, *, key: type[L], value: Kinds[V] = ..., partitions: int | None = ...,
        combine: bool = ...,
    ) -> Stream[L, V]: ...
    @overload
    def key_by(
        self, fn: Callable[[V], Any] | Named[V, K, Any], name: str, /, *, key: str, value: Kinds[V] = ..., partitions: int | None = ...,
        combine: bool = ...,
    ) -> Stream[Any, V]: ...
    def key_by(
        self, fn: Any, name: str, /, *, key: Any, value: Any = None, partitions: int | None = None, combine: bool = True
    ) -> Stream[Any, V]:
        """The same records under the key that the function gives; what follows has all records of a key in one task.

        They go through an internal topic, which samzapy makes, and are read there by the tasks of the following stage.

        Args:
            fn: gives the new key; None is the record's error.
            name: of the topic: `<job>-<id>-<name>`. Each checkpoint remembers it.
            key, value: the kinds of keys and values; `value` where it is not known.
            partitions: how many the topic has; by default as many as the topics that it is used together with, or as the largest input.
            combine: where nothing but a window of `count()` or `agg.…` follows, one that gives final panes and of which nobody takes what is late, records
                are summed up before the topic, by commit. False: each goes through it.
        """
        return through.key_by(self, fn, name, key, value, partitions, combine)

    def repartition(
        self,
        name: str,
        /,
        *,
        by: Literal["key", "round_robin"] | Callable[[V], int] | Named[V, K, int] = "key",
        choices: int = 1,
        value: Kinds[V] = None,
        partitions: int | None = None,
    ) -> Stream[K, V]:
        """The same records through an internal topic, where the key, a function, or each partition in turn says which task has them next.

        With `choices` of 2 or more the records of a key go to so many partitions, each to the one that has got least. Only with `by="key"` and one
        choice may operators that keep state by key follow. Otherwise as `key_by`.
        """
        return through.repartition(self, name, by, value, partitions, choices)

    def broadcast(self, name: str, /, *, value: Kinds[V] = None) -> Stream[K, V]:
        """The same records in every task: each gets all of them, through an internal topic with a partition for each task.

        State by key behind it is each task's own, of all records: so what is made of it there comes once from each task. Otherwise as `key_by`.
        """
        return through.broadcast(self, name, value)

    # -- with state ------------------------------------------------------------------------------------------------------------------

    def count(self, name: str, /) -> Table[K, int]:
        """How many records each key has had. `name`: of the store."""
        return stateful.count(self, name)

    def reduce(self, name: str, fn: Callable[[V, V], V], /, *, value: Kinds[V] = None) -> Table[K, V]:
        """Of each key the first value, and then what the function makes of the old and the next one."""
        return stateful.reduce(self, name, fn, value)

    def fold(
        self,
        name: str,
        zero: Callable[[], A],
        add: Callable[[A, V], A],
        /,
        *,
        value: type[A] | str = dict,  # type: ignore[assignment]
        initial: Table[K, A] | None = None,
    ) -> Table[K, A]:
        """Of each key what `zero` makes, or what `initial` has for it, and then what `add` makes of that and the next value.

        `value`: the kind of what is kept.
        """
        return stateful.fold(self, name, zero, add, value, initial)

    def aggregate(self, name: str, /, **aggregates: Aggregate[V, Any, Any]) -> Table[K, dict[str, Any]]:
        """Of each key several aggregates (`samzapy.streams.agg`), under the names that they are given."""
        return stateful.aggregate(self, name, aggregates)

    @overload
    def lookup(
        self, table: Table[L, W], /, *, on: Callable[[V], L] | Named[V, K, L] | None = ..., how: Literal["left"] = ...
    ) -> Stream[K, tuple[V, W | None]]: ...
    @overload
    def lookup(
        self, table: Table[L, W], /, *, on: Callable[[V], L] | Named[V, K, L] | None = ..., how: Literal["inner"]
    ) -> Stream[K, tuple[V, W]]: ...
    def lookup(self, table: Any, /, *, on: Any = None, how: str = "left") -> Stream[K, Any]:
        """Pairs of the value and what a table has now for the record's key, or for the key that `on` gives (of a broadcast table only).

        Where it has nothing: None in its place, or with `how="inner"` no pair.
        """
        return Stream(self.app, stateful.lookup(self, table, on, how))

    def window(self, window: Window, /, *, allowed_lateness: Duration = "0s", emit: Emit = FINAL) -> Windowed[K, V]:
        """Cut into windows of event time, by key: `tumbling(…)` or `hopping(…)`.

        Args:
            window: the windows.
            allowed_lateness: how long after its end a window still takes records; each gives a corrected pane.
            emit: FINAL, a pane when time passes the end of a window; `updates()`, one after each record as well.
        """
        from samzapy.streams.windowed import windowed

        return windowed(self, window, allowed_lateness, emit)

    # -- ends ------------------------------------------------------------------------------------------------------------------------

    def to(
        self,
        topic: str,
        /,
        *,
        key: type[Any] | str | None = None,
        value: type[Any] | str | None = None,
        partition: Callable[[V], int] | Named[V, K, int] | None = None,
        partitions: int | None = None,
        timestamps: Literal["time", "send"] = "time",
    ) -> None:
        """Send each record to a topic, with its key and headers.

        Args:
            topic: its name.
            key, value: how they are written, where it is not known; values of no known kind are written as JSON.
            partition: gives the number of the partition; by default the key chooses it.
            partitions: how many the topic gets if it is created.
            timestamps: "time": each record has its own time; "send": the time of sending. A pane, what is made of panes and what is merged with
                them is written with the last millisecond of its window, or with the time of sending if that is earlier: Kafka refuses records that are far ahead.
        """
        self.app.send(self.node, topic, key, value, partition, partitions, timestamps)

    @overload
    def sink(self, fn: Callable[[V], object], /, *, label: str = ...) -> None: ...
    @overload
    def sink(self, fn: Named[V, K, object], /, *, label: str = ...) -> None: ...
    def sink(self, fn: Any, /, *, label: str = "") -> None:
        """Give each value to a function, for an effect outside of Kafka. After a crash, or an error of a later record, it may come again."""
        self._made(Sink, fn, None, label, self.node.value)

    # -- inside ----------------------------------------------------------------------------------------------------------------------

    def _made(
        self, node: Any, fn: Any, value: Any, label: str, kind: Kind | None, *, may_yield: bool = False
    ) -> Stream[K, Any]:
        """The stream of a new operator with one function. `value`: the kind that is asked for; `kind`: the one that is known otherwise."""
        word = {FilterMap: "filter_map", FlatMap: "flat_map"}.get(node, node.__name__.lower())
        found = function(fn, word, place(), may_yield=may_yield)
        kind = kind if value is None else kind_of(value, f"{word}(value=…)")
        return Stream(self.app, self.app.add(node, inputs=(self.node,), key=self.node.key, value=kind, label=label, function=found))
