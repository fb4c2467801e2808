"""The graph as Python source: one function for each topic that is read, in which chains of operators are straight lines.

Nothing that the user wrote is in the source: operators are numbers there, and functions, names and topics are bound by the name of their operator's
number. The source nests at most `MAX_DEPTH` deep and runs straight for `MAX_STRAIGHT` operators; what comes below is a local function, and so is an
operator that takes several streams. Such a function of a run gets (v, k, t, h): value, key, time, headers, as far as it needs them.

    f1   the function of operator 1          get4, put4   the store of operator 4
    v1   its value                           n2           how many records operator 2 gave on, if that is not what it took
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from samzapy.model.event_time import LARGEST
from samzapy.streams.combining import combined_windows, counts, partial_windows
from samzapy.streams.compile_parts import NAMES, PARTS, Scope, decoding, functions_of, other_kind_lines, parts_needed, result_lines
from samzapy.streams.compile_through import PLAIN_KEYS, near_sums_line, reader_lines, reader_names, writer_lines, writer_names
from samzapy.streams.compile_windows import (
    MOVES,
    MOVES_SELDOM,
    NEWEST,
    PLAIN,
    counting_lines,
    counts_in_place,
    head_of_run,
    made_of_panes,
    moves_seldom,
    near_line,
    window_lines,
    written_with_time,
)
from samzapy.streams.compiled import FILE, Compiled
from samzapy.streams.functions import Function
from samzapy.streams.graph import (
    Branch,
    Filter,
    FilterMap,
    FlatMap,
    Graph,
    Keeps,
    Lookup,
    Map,
    Merge,
    Node,
    Peek,
    Reader,
    Repartition,
    Rolling,
    Sink,
    Source,
    TableSource,
    To,
    Way,
)
from samzapy.streams.lookup_join import FOUND, lookup_lines
from samzapy.streams.walk import takers
from samzapy.streams.window_nodes import Late, WindowAggregate, late_of
from samzapy.streams.window_shapes import PANE

MAX_DEPTH, MAX_STRAIGHT = 8, 40  # Python allows 20 blocks in each other


def compiled(graph: Graph) -> Compiled:
    """The code of a graph: a function `make(…)` that gives, by the number of a source, the function of its runs."""
    return _Writer(graph).write()


def function_name(source: Node) -> str:
    """What the function of a source's runs is called."""
    return f"run_{source.number}"


class _Writer:
    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._takers = takers(graph)
        self._needs = parts_needed(graph)
        self._partial, self._combined = partial_windows(graph), combined_windows(graph)
        self._of_panes, self._with_time = made_of_panes(graph), written_with_time(graph)
        self._functions: dict[str, tuple[Node, Function]] = {}
        self._reads: dict[str, Keeps] = {}
        self._writes: dict[str, Keeps] = {}
        self._bound: set[str] = set()
        self._scope = Scope()
        self._apart: list[Node] = []  # operators that get a function of their own in the run that is being written
        self._moves_seldom = False  # whether the run that is being written tells of the time only where that matters
        self._near: list[str] | None = None  # what the run looks up first, for what counts in place; None: it is no run in which anything may
        self._node: Node = graph[0]
        self._write: Mapping[type[Node], Callable[[Any, str], None]] = {
            Map: self._map, Peek: self._peek, Filter: self._filter, FilterMap: self._filter_map, FlatMap: self._flat_map, Branch: self._branch,
            Merge: self._merge, Rolling: self._rolling, Lookup: self._lookup, To: self._to, Sink: self._sink,
            WindowAggregate: self._window, Repartition: self._repartition,
        }  # fmt: skip

    def write(self) -> Compiled:
        first = [node for node in self._graph if isinstance(node, Source | TableSource | Reader | WindowAggregate | Late)]
        body = [line for source in first for line in self._run(source)]
        names = sorted({*self._bound, *self._functions, *self._reads, *self._writes})
        text = [f"def make({', '.join(names)}):"]
        runs = ", ".join(f"{source.number}: {function_name(source)}" for source in first)
        text += [line for line, _ in body] + [f"    return {{{runs}}}", ""]
        lines = {number: node for number, (_, node) in enumerate(body, 2)}
        source = "\n".join(text)
        return Compiled(source, compile(source, FILE, "exec"), self._functions, self._reads, self._writes, lines)

    # -- a run -------------------------------------------------------------------------------------------------------------------------

    def _run(self, source: Node) -> list[tuple[str, Node]]:
        """The function of a source's runs: counters, local functions, the loop, and the counts at its end."""
        self._apart, counters = [], set[str]()
        loop = self._scope = Scope(depth=1)
        self._node = source
        moves_time = isinstance(source, Source) and source.timing is not None
        is_timed = moves_time or isinstance(source, Reader)
        each = "for r in left:" if is_timed else "for r in records:"  # a count of each record would take longer
        if isinstance(source, Source | TableSource):
            self._take(source)
        elif isinstance(source, Reader):
            self._scope.counters.add(f"n{source.number}")
            late = None if (window := self._partial.get(source)) is None else late_of(self._graph, window).number
            self._lines(reader_lines(source, late), reader_names(source, late))
        else:
            each, of_each = head_of_run(source)
            self._lines(of_each, ())
        self._near = [] if moves_time else None
        self._moves_seldom = moves_time and moves_seldom(source, self._takers)
        self._keep_and_give(source)
        near, self._near = self._near or [], None
        if moves_time:
            self._lines(*(MOVES_SELDOM if self._moves_seldom else MOVES))
        before, after = (PLAIN, NEWEST) if self._moves_seldom else ([], [])
        local: list[tuple[str, Node]] = []
        written: set[Node] = set()
        while self._apart:
            node = self._apart.pop()
            if node not in written:
                written.add(node)
                local += self._local(node, counters)
        counters |= loop.counters
        zero = [(f"{' = '.join(sorted(counters, key=lambda n: int(n[1:])))} = 0", source)] if counters else []
        ends = [] if isinstance(source, Reader) else [(f"counts[{source.number}] += {'i' if is_timed else 'len(records)'}", source)]
        ends += [(f"counts[{name[1:]}] += {name}", source) for name in sorted(counters, key=lambda n: int(n[1:]))]
        ends += [("return i", source)] if is_timed else []
        head = [(f"    def {function_name(source)}(records, send, counts{', partition' if is_timed else ''}):", source)]
        left, taken = (["left = iter(records)"], ["i = len(records) - left.__length_hint__()"]) if is_timed else ([], [])
        begin, end = ([(line, source) for line in lines] for lines in ((*near, *before, *left), (*after, *taken)))
        inside = [*zero, *local, *begin, (each, source), *loop.lines, *end, *ends]
        return [*head, *((f"        {line}", node) for line, node in inside)]

    def _local(self, node: Node, counters: set[str]) -> list[tuple[str, Node]]:
        scope = self._scope = Scope(depth=1)
        self._one(node, "v")
        counters |= scope.counters
        head = [(f"def op_{node.number}({', '.join(self._arguments(node))}):", node)]
        shared = [(f"    nonlocal {', '.join(sorted(scope.counters))}", node)] if scope.counters else []
        return [*head, *shared, *scope.lines]

    def _take(self, source: Source | TableSource) -> None:
        """Of a Kafka record the parts that somebody needs."""
        n = source.number
        needs = frozenset(part for taker in self._takers[source] for part in self._needs[taker])
        if isinstance(source, TableSource):
            needs |= {"k", "v"}
        is_timed = isinstance(source, Source) and source.timing is not None
        needs |= {"t"} if is_timed else frozenset()
        by_value = isinstance(source, Source) and source.time is not None and "t" in needs
        if "k" in needs:
            self._lines(*decoding("k", "key", source.key.serde, n))
        if "v" in needs or by_value:
            self._lines(*decoding(f"v{n}", "value", "" if source.value is None else source.value.serde, n))
            if source.value is not None and source.value.is_checked:
                self._line(f"if type(v{n}) {source.value.is_other[0]} {self._bind(f'kinds{n}')} and v{n} is not None: {self._bind('wrong_kind')}({n}, v{n})")
        if by_value and isinstance(source, Source) and source.time is not None:
            self._functions[f"time{n}"] = source, source.time
            self._line(f"t = time{n}(v{n})")
            self._line(f"if type(t) is not int or not {-LARGEST} <= t <= {LARGEST}: t = {self._bind('milliseconds')}({n}, t)")
        elif isinstance(source, Source) and source.by_clock and is_timed:
            self._line("t = partition.newest")
        elif "t" in needs:
            self._line("t = r.timestamp()[1]")
            if is_timed:
                self._line(f"if not 0 <= t <= {LARGEST}: {self._bind('no_time')}({n}, t)")
        if "h" in needs:
            self._line(f"h = {self._bind('headers_of')}(r)")

    def _repartition(self, node: Repartition, value: str) -> None:
        called = "" if node.function is None else self._call(node, value)
        window = self._combined.get(node)
        in_place = window is not None and counts(window) and self._near is not None and node.key.serde in PLAIN_KEYS
        if self._near is not None and in_place:
            self._near.append(near_sums_line(node))
        self._lines(*other_kind_lines(node, value))
        lines = writer_lines(node, value, called, "h" in self._needs[self._takers[node][0]], window is not None, in_place, window in self._with_time)
        self._lines(lines, writer_names(node, window is not None, in_place))

    def _keep_and_give(self, source: Node) -> None:
        n = source.number
        if isinstance(source, TableSource):
            self._line(f"if k is None: {self._bind('no_key')}({n})")
            self._writes[f"put{n}"] = source
            self._line(f"put{n}(k, v{n})")
        self._give(source, f"v{n}")
        if not self._scope.lines:
            self._line("pass")

    # -- operators ---------------------------------------------------------------------------------------------------------------------

    def _give(self, node: Node, value: str) -> None:
        """Give a value to all who take an operator's records."""
        for taker in self._takers[node]:
            if isinstance(taker, Late):
                continue  # it is given what is too late, where that is found
            scope = self._scope
            if len(taker.inputs) > 1 or scope.depth >= MAX_DEPTH or scope.straight >= MAX_STRAIGHT:
                self._line(f"op_{taker.number}({', '.join(value if part == 'v' else part for part in self._arguments(taker))})")
                self._apart.append(taker)
            else:
                self._one(taker, value)

    def _one(self, node: Node, value: str) -> None:
        before, self._node = self._node, node
        self._scope.straight += 1
        self._write[type(node)](node, value)
        self._node = before

    def _map(self, node: Map, value: str) -> None:
        self._line(f"v{node.number} = {self._call(node, value)}")
        self._give(node, f"v{node.number}")

    def _peek(self, node: Peek, value: str) -> None:
        self._line(self._call(node, value))
        self._give(node, value)

    def _sink(self, node: Sink, value: str) -> None:
        self._line(self._call(node, value))

    def _filter(self, node: Filter, value: str) -> None:
        self._block(f"if {self._call(node, value)}:", node, value)

    def _filter_map(self, node: FilterMap, value: str) -> None:
        self._line(f"v{node.number} = {self._call(node, value)}")
        self._block(f"if v{node.number} is not None:", node, f"v{node.number}")

    def _flat_map(self, node: FlatMap, value: str) -> None:
        self._block(f"for v{node.number} in {self._call(node, value)}:", node, f"v{node.number}")

    def _branch(self, node: Branch, value: str) -> None:
        ways = {way.index: way for way in self._takers[node] if isinstance(way, Way)}
        for index in range(len(node.tests)):
            self._block(f"{'el' if index else ''}if {self._call(node, value, f'_{index}')}:", ways[index], value)
        self._block("else:", ways[len(node.tests)], value)

    def _merge(self, node: Merge, value: str) -> None:
        self._give(node, value)

    def _rolling(self, node: Rolling, value: str) -> None:
        n = node.number
        self._line(f"if k is None: {self._bind('no_key')}({n})")
        self._reads[f"get{n}"] = self._writes[f"put{n}"] = node
        if node.how == "count":
            self._line(f"a = get{n}(k, 0) + 1")
        else:
            self._line(f"a = get{n}(k)")
            if node.initial is not None:
                self._reads[f"get{n}_0"] = node.initial
                self._line(f"if a is None: a = get{n}_0(k)")
            if node.zero is not None:
                self._line(f"if a is None: a = {self._bind(f'zero{n}')}()")
            added = self._call(node, f"a, {value}")
            self._line(f"a = {added}" if node.zero is not None else f"a = {value} if a is None else {added}")
            self._line(f"if a is None: {self._bind('no_value')}({n})")
        self._lines(*other_kind_lines(node, "a"))
        self._line(f"put{n}(k, a)")
        if self._takers[node]:
            self._lines(*result_lines(n, None if node.result is None else self._call(node, f"zero{n}(), {value}")))
            self._give(node, f"v{n}")

    def _window(self, node: WindowAggregate, value: str) -> None:
        n = node.number
        lines = window_lines(node, value, late_of(self._graph, node), "h" in self._needs[node], node in self._with_time)
        if self._near is not None and counts_in_place(node):
            self._near.append(near_line(node))
            lines = counting_lines(node, lines, self._moves_seldom)
            self._lines((), [f"near{n}", f"touch{n}", f"fresh{n}"])
        self._lines(lines, ["no_key", f"add{n}", "too_late", "before_1970"])

    def _lookup(self, node: Lookup, value: str) -> None:
        n = node.number
        self._reads[f"get{n}"] = node.table
        self._lines(*lookup_lines(node, value, None if node.on is None else self._call(node, value)))
        if node.inner:
            self._block(FOUND, node, f"v{n}")
        else:
            self._give(node, f"v{n}")

    def _to(self, node: To, value: str) -> None:
        n = node.number
        at = f"{self._bind('written_at')}(t)" if node in self._of_panes else "t"
        time = f", timestamp={at}" if node.timestamps == "time" else ""
        partition = f", partition={self._call(node, value)}" if node.partition is not None else ""
        if node.inputs[0].value == PANE:
            value = f"{self._bind(f'json{n}')}({value})"
        self._lines(*other_kind_lines(node, value))
        self._line(f"send({self._bind(f'topic{n}')}, {value}, k{partition}{time}, headers=h)")

    # -- lines -------------------------------------------------------------------------------------------------------------------------

    def _block(self, head: str, node: Node, value: str) -> None:
        """A block whose records are counted, and given to those who take the node's."""
        self._line(head)
        self._scope.depth += 1
        self._scope.counters.add(f"n{node.number}")
        self._line(f"n{node.number} += 1")
        self._give(node, value)
        self._scope.depth -= 1

    def _call(self, node: Node, values: str, which: str = "") -> str:
        """The call of an operator's function; what it asks for by name is given."""
        name = f"f{node.number}{which}"
        function = functions_of(node)[name]
        if function is None:
            raise AssertionError(f"operator {node.number} has no function {name}")
        self._functions[name] = node, function
        named = [f", {asked}={NAMES[asked]}{' or []' if asked == 'headers' else ''}" for asked in function.asks]
        return f"{name}({values}{''.join(named)})"

    def _arguments(self, node: Node) -> list[str]:
        return [part for part in PARTS if part in self._needs[node]] or ["v"]

    def _bind(self, name: str) -> str:
        self._bound.add(name)
        return name

    def _lines(self, lines: Iterable[str], names: Iterable[str]) -> None:
        for name in names:
            self._bind(name)
        for line in lines:
            self._line(line)

    def _line(self, text: str) -> None:
        self._scope.lines.append(("    " * self._scope.depth + text, self._node))
