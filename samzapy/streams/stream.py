"""`Stream`: the operators of a program. Each method adds an operator to the program's graph and returns the stream, or table, of its results."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, overload

from samzapy.streams import lookup_join, stateful, through
from samzapy.streams.agg import Aggregate
from samzapy.streams.emit_option import FINAL, Emit
from samzapy.streams.familiar import no_operator
from samzapy.streams.functions import OfBoth, OfHeaders, OfKey, OfTime, function
from samzapy.streams.graph import Branch, Filter, FilterMap, FlatMap, Map, Merge, Node, Peek, Sink, Way
from samzapy.streams.kinds import Kind, kind_of, returned_kind
from samzapy.streams.places import place, refused
from samzapy.streams.window_shapes import Duration, Window

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
    """A stream of records, each with a key, a value, a time and headers. Methods do not change the stream: it may be used many times.

    A function that is given to an operator gets the value. To get more, it has parameters without default named `key`, `time` (milliseconds since
    1970) or `headers`. It must not change what it is given. If it raises, `on_error` applies to the record.

    `label` is shown with the operator by `samzapy plan --graph`. `name` is the name of a store or an internal topic. Kinds (`key`, `value`) are types or
    the names of serdes. Each method raises ConfigurationError, with file and line, for wrong arguments.
    """

    def __init__(self, app: App, node: Node) -> None:
        self.app = app
        self.node = node

    if not TYPE_CHECKING:  # which know the operators, and tell of others themselves

        def __getattr__(self, name):
            raise AttributeError(no_operator(self, name), name=name, obj=self)

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
        """A record with what the function returns for each value; key, time and headers stay. `value`: the kind of that, if the function has no annotation."""
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
        """As `map`, but a record for which the function returns None is dropped, and counted as dropped."""
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
        """A record for each item that the function returns (or yields) for a value, in order; key, time and headers stay."""
        return self._made(FlatMap, fn, value, label, returned_kind(fn, items=True), may_yield=True)

    @overload
    def filter(self, fn: Callable[[V], bool], /, *, label: str = ...) -> Stream[K, V]: ...
    @overload
    def filter(self, fn: Named[V, K, bool], /, *, label: str = ...) -> Stream[K, V]: ...
    def filter(self, fn: Any, /, *, label: str = "") -> Stream[K, V]:
        """The records for which the function returns true; the others are dropped, and counted as dropped."""
        return self._made(Filter, fn, None, label, self.node.value)

    @overload
    def peek(self, fn: Callable[[V], object], /, *, label: str = ...) -> Stream[K, V]: ...
    @overload
    def peek(self, fn: Named[V, K, object], /, *, label: str = ...) -> Stream[K, V]: ...
    def peek(self, fn: Any, /, *, label: str = "") -> Stream[K, V]:
        """The same records; the function is called with each value first, for example to log it. What it returns is ignored."""
        return self._made(Peek, fn, None, label, self.node.value)

    def branch(self, *tests: Test[V, K]) -> tuple[Stream[K, V], ...]:
        """One stream for each test and one more: a record goes to the stream of the first test that returns true, or to the last stream if none does."""
        if not tests:
            raise refused("branch takes at least one function")
        where = place()
        found = tuple(function(test, "branch", where) for test in tests)
        node = self.app.add(Branch, inputs=(self.node,), key=self.node.key, value=self.node.value, tests=found)
        ways = [self.app.add(Way, inputs=(node,), key=node.key, value=node.value, index=index) for index in range(len(tests) + 1)]
        return tuple(Stream(self.app, way) for way in ways)

    def merge(self, *others: Stream[K, V]) -> Stream[K, V]:
        """The records of this stream and of the others, which must have keys of one kind. Records of different streams come in no particular order."""
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
        self, fn: Any, name: str, /, *, key: Any = None, value: Any = None, partitions: int | None = None, combine: bool = True
    ) -> Stream[Any, V]:
        """The same records with a new key. All records of a key are then processed by one task.

        They go through an internal topic, which samzapy creates; the tasks of the following stage read it.

        Args:
            fn: returns the new key; if that is None, `on_error` applies to the record.
            name: the topic is `<job>-<id>-<name>`. Checkpoints remember the name: renaming it is refused.
            key, value: the kinds of keys and values; `value` only if it is not known.
            partitions: how many the topic has. Default: as many as the topics that are used together with it, or as the largest input.
            combine: True: if the only next operator is a window with FINAL panes, no `allowed_lateness` and unused `.late`, of `count()` or of an `aggregate`
                of `agg` functions other than `agg.collect` and your own `Aggregate`, each container sends one partial sum per key, slice and
                commit instead of each record. False: each record goes through the topic.
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
        """The same records with the same keys, distributed anew over the tasks of the following stage through an internal topic.

        Args:
            name, value, partitions: as for `key_by`.
            by: "key": the key chooses the partition. "round_robin": records go to the partitions in turn. A function: returns the number of the partition.
            choices: with `by="key"`: among how many partitions the records of a key are spread; each goes to the one of these that this task has sent
                the fewest records to ("partial key grouping", Nasir et al., ICDE 2015). Operators that keep state by key may follow only after `by="key"` with 1.
        """
        return through.repartition(self, name, by, value, partitions, choices)

    def broadcast(self, name: str, /, *, value: Kinds[V] = None) -> Stream[K, V]:
        """Every record to every task, through an internal topic with one partition for each task. `name` and `value`: as for `key_by`.

        After it each task keeps its own state of all records, so the results of that state come once from each task.
        """
        return through.broadcast(self, name, value)

    # -- with state ------------------------------------------------------------------------------------------------------------------

    def count(self, name: str, /) -> Table[K, int]:
        """A table of how many records each key has had. `name`: of the store."""
        return stateful.count(self, name)

    def reduce(self, name: str, fn: Callable[[V, V], V], /, *, value: Kinds[V] = None) -> Table[K, V]:
        """A table: for each key the first value, then `fn(old, next value)` for each further one. `value`: the kind of the values, if it is not known."""
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
        """A table: for each key `zero()`, then `add(old, value)` for each record. If `add` has a parameter `time`, that is the record's time.

        Args:
            name: of the store.
            value: the kind of what is kept.
            initial: a table with keys and values of the same kinds; a key that it has begins with its value there instead of `zero()`.
        """
        return stateful.fold(self, name, zero, add, value, initial)

    def aggregate(self, name: str, /, **aggregates: Aggregate[V, Any, Any]) -> Table[K, dict[str, Any]]:
        """A table: for each key a dict with the result of each aggregate (`samzapy.streams.agg`) under its name: `edits=agg.count()`."""
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
        """A record with the pair (value, what the table has now for the record's key) for each record.

        Args:
            table: with keys of the same kind, and the same number of partitions, or a broadcast table.
            on: returns the key to look up instead of the record's own; for a broadcast table only.
            how: if the table does not have the key. "left": the pair is (value, None); "inner": the record is dropped.
        """
        return Stream(self.app, lookup_join.lookup(self, table, on, how))

    def window(self, window: Window, /, *, allowed_lateness: Duration = "0s", emit: Emit = FINAL) -> Windowed[K, V]:
        """Divide the records of each key into windows of event time. `count`, `reduce` and so on then say what is made of a window.

        Args:
            window: `tumbling(…)` or `hopping(…)`.
            allowed_lateness: how long after its end (in event time) a window still takes records, as text or timedelta; each gives a corrected pane.
            emit: FINAL: a pane when event time passes the end of the window. `updates()`: also one after each record.
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
            key, value: the kinds to write, if not the stream's own; values of no known kind are written as JSON.
            partition: a function that returns the number of the partition; by default the key chooses it.
            partitions: how many the topic gets if samzapy creates it.
            timestamps: "time": each record has its own time; "send": the time of sending. The time of a pane, and of what is made of panes or merged with
                them, is the last millisecond of its window, or the time of sending if that is earlier: Kafka refuses times that are far ahead.
        """
        self.app.send(self.node, topic, key, value, partition, partitions, timestamps)

    @overload
    def sink(self, fn: Callable[[V], object], /, *, label: str = ...) -> None: ...
    @overload
    def sink(self, fn: Named[V, K, object], /, *, label: str = ...) -> None: ...
    def sink(self, fn: Any, /, *, label: str = "") -> None:
        """Call a function with each value, for an effect outside of Kafka. After a crash or an abort it may be called again with the same value."""
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
