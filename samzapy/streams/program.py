"""A program as a container runs it: its code, compiled once, and the task object that each task gets."""

from __future__ import annotations

import linecache
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from types import MappingProxyType
from typing import Any, NoReturn, cast

from samzapy.api.context import MessageCollector, TaskContext, TaskCoordinator
from samzapy.api.envelope import headers_of
from samzapy.api.errors import RecordTooLarge, SamzapyError, SerdeError, TaskError, TransactionAborted
from samzapy.api.serde import Serde
from samzapy.api.task import StreamTask
from samzapy.model.event_time import LARGEST, NEVER, in_ms
from samzapy.model.marks import MARKS_KEY
from samzapy.ports import Message
from samzapy.serde.basic import shown
from samzapy.serde.record_keys import as_key
from samzapy.streams.combiners import called, combiners_of
from samzapy.streams.combining import PARTIAL_HEADER, Combiner, SendBytes, WaitingSums, combined_windows, not_for, without_partial
from samzapy.streams.compile import compiled
from samzapy.streams.compile_parts import checked_kind
from samzapy.streams.compile_through import early, early_time
from samzapy.streams.compiled import FILE, Compiled
from samzapy.streams.graph import FlatMap, Graph, Node, Reader, Repartition, Rolling, Sink, Source, To, Way
from samzapy.streams.internal import topics_of
from samzapy.streams.kept_panes import getting, read_panes
from samzapy.streams.kinds import refuse_other_json
from samzapy.streams.operators.window_firing import LATE
from samzapy.streams.partition_choice import partition_names
from samzapy.streams.places import OURS
from samzapy.streams.task_windows import TaskWindows
from samzapy.streams.unchanged import unchanged
from samzapy.streams.unreadable_state import of_tables
from samzapy.streams.walk import makers, readers, sources
from samzapy.streams.window_nodes import Late, WindowAggregate, late_of, windows_of
from samzapy.streams.window_shapes import PANE
from samzapy.streams.window_time import Stage
from samzapy.streams.windowed import pane_json

NONE: Mapping[Node, Combiner] = MappingProxyType({})
OF_TIME = ("moved", "heard", "plain_times", "time_is", "written_at")
Run = Callable[[Sequence[Message], Callable[..., None], list[int]], None]


class Program:
    """A graph, ready to run.

    Args:
        graph: its operators.
        topics: where its streams really are, by the names that the graph has; what is not there has its own name.
        serde: finds a serde by its name.
        check: whether functions are checked for changing what they are given.

    Attributes:
        graph: its operators.
        compiled: its code.
        runs: of each topic that is read, the number of its operator.
        check: as given.
        combines: whether records may be summed up before they go through an internal topic.
        writers: of each internal topic, the operator that sends to it.
    """

    def __init__(self, graph: Graph, topics: Mapping[str, str], serde: Callable[[str], Serde], *, check: bool = False) -> None:
        self.graph = graph
        self.serde, self.check = serde, check
        self.topics = topics_of(graph, topics)
        self.compiled: Compiled = compiled(graph)
        self.runs = {topics.get(source.topic, source.topic): source.number for source in sources(graph)}
        self.runs |= {topics[reader.name]: reader.number for reader in readers(graph)}
        self._combined, self.combines = combined_windows(graph), True
        self.writers = {topics[reader.name]: reader.writer for reader in readers(graph)}
        self._bound: dict[str, Any] = {
            "no_key": self._no_key, "no_value": self._no_value, "wrong_kind": self._wrong_kind, "milliseconds": self._milliseconds,
            "cannot_read": SerdeError, "no_time": self._no_time, "before_1970": self._before_1970,
            "partial": PARTIAL_HEADER, "no_partial": self._no_partial, "without_partial": without_partial,
            "too_late": LATE, "marks_key": MARKS_KEY, "early": early, "early_time": early_time, "no_new_key": self._no_new_key, "headers_of": headers_of,
        }  # fmt: skip
        for node in graph:
            self._bind(node, topics, serde)
        for name, (node, function) in self.compiled.functions.items():
            self._bound[name] = unchanged(function.call, node) if check else function.call
        space: dict[str, Any] = {}
        exec(self.compiled.code, space)  # the source is ours: no text of the user's is in it
        self._make: Callable[..., dict[int, Run]] = space["make"]
        self._wanted = self._make.__code__.co_varnames[: self._make.__code__.co_argcount]
        self._bound = {name: self._bound[name] for name in self._wanted if name in self._bound}
        source = self.compiled.source
        linecache.cache[FILE] = (len(source), None, source.splitlines(keepends=True), FILE)

    def task(self) -> GraphTask:
        """A new task object."""
        return GraphTask(self)

    def combiners(self, together: dict[str, Any]) -> dict[Node, Combiner]:
        """By its `key_by`, what sums records up before they are sent; of a new task. `together`: what the container's tasks share."""
        if not self.combines:
            return {}
        return combiners_of(self._combined, {node: topic for topic, node in self.writers.items()}, self.serde, together, self.check)

    def functions(self, context: TaskContext, windows: TaskWindows | None = None, combiners: Mapping[Node, Combiner] = NONE) -> dict[int, Run]:
        """The functions of all runs, for a task with these stores, windows and sums."""
        stores = {name: getting(node, context.get_store(node.name)) for name, node in self.compiled.reads.items()}
        puts = {name: context.get_store(node.name).put for name, node in self.compiled.writes.items()}
        turns = partition_names(self.writers, getattr(context, "between", {}), lambda serde: as_key(self.serde(serde)).encode)
        adds: dict[str, Any] = {} if windows is None else {name: getattr(windows, name) for name in OF_TIME} | windows.adds
        nobodys = {name: _no_part for name in self._wanted if name in OF_TIME or name.startswith(("add", "joined", "near", "touch", "fresh"))}
        sums = {name: each for name, each in called(self._combined, combiners).items() if name in self._wanted}
        told = {name: each for name, each in of_tables(self.graph, context).items() if name in self._wanted}
        return self._make(**self._bound, **stores, **puts, **turns, **sums, **told, **nobodys | {name: adds[name] for name in self._wanted if name in adds})

    def at(self, error: BaseException) -> tuple[Node | None, bool]:
        """The operator in which an error was raised, and whether a line of the user's own was being executed."""
        node, users = None, False
        trace = error.__traceback__
        while trace is not None:
            file = trace.tb_frame.f_code.co_filename
            if file == FILE:
                node, users = self.compiled.lines.get(trace.tb_lineno), False
            elif node is not None and not file.startswith(OURS):
                users = True
            trace = trace.tb_next
        return node, users

    def counted(self, counts: Sequence[int]) -> dict[str, dict[str, int]]:
        """What the operators counted, in full: the code counts only where that cannot be told from the operators before."""
        out: dict[Node, int] = {}
        found = {}
        for node in self.graph:
            taken = sum(out[before] for before in node.inputs) if node.inputs else counts[node.number]
            out[node] = given = counts[node.number] if node.drops or not node.inputs or isinstance(node, Reader) else taken
            if isinstance(node, Way | Reader):
                taken = given
            if isinstance(node, WindowAggregate):
                found[node.address] = {"in": taken, "out": given, "late": counts[late_of(self.graph, node).number]}
            if isinstance(node, WindowAggregate | Late):
                continue
            ends = isinstance(node, To | Sink | Repartition)
            rest = {} if ends else {"out": given}
            found[node.address] = {"in": taken, **rest, **({"dropped": taken - given} if node.drops and not isinstance(node, FlatMap | Way) else {})}
        return found

    def _bind(self, node: Node, topics: Mapping[str, str], serde: Callable[[str], Serde]) -> None:
        n = node.number
        if hasattr(node, "topic") and not isinstance(node, To) and node.value is not None:
            for part, of in (("key", serde(node.key.serde)), ("value", serde(node.value.serde))):
                self._bound |= {f"{part}{n}": of.decode, f"quick_{part}{n}": getattr(of, "quick_decode", of.decode)}
            self._bound[f"kinds{n}"] = node.value.is_other[1]
        elif isinstance(node, To):
            self._bound[f"topic{n}"] = topics.get(node.topic, node.topic)
            if node.inputs[0].value == PANE:
                is_aggregate = all(isinstance(maker, WindowAggregate) and maker.how == "aggregate" for maker in makers(node.inputs[0]))
                self._bound[f"json{n}"] = lambda pane, beside=is_aggregate: pane_json(pane, beside)
        elif isinstance(node, Repartition):
            self._bound |= {f"topic{n}": topics[node.name]}
        elif isinstance(node, Reader) and node.writer.value is not None:
            self._bound |= {f"key{n}": serde(node.key.serde).decode, f"value{n}": read_panes(node, serde(node.writer.value.serde).decode)}
        elif isinstance(node, Rolling):
            self._bound |= {f"zero{n}": node.zero, f"result{n}": node.result}
        if (kind := checked_kind(node)) is not None:
            self._bound |= {f"kinds{n}": kind.is_other[1], f"other_json{n}": partial(refuse_other_json, kind)}

    # -- what the code calls -----------------------------------------------------------------------------------------------------------

    def _no_key(self, number: int) -> NoReturn:
        remedy = "Drop such records earlier: .filter(lambda value, key: key is not None). Those of a table: `on_error: {then: skip}` in the job file."
        raise TaskError("the record has no key, and this operator keeps state by key.", remedy)

    def _no_new_key(self, number: int) -> NoReturn:
        raise TaskError("its function gave None, and a record needs a key.", "Drop such records earlier: .filter(…).")

    def _no_value(self, number: int) -> NoReturn:
        raise TaskError("its function gave None, which a table cannot keep.", "Return the new accumulator.")

    def _no_time(self, number: int, given: int) -> NoReturn:
        """Kafka's timestamp is none, or one that cannot be."""
        what = "has no timestamp" if given < 0 else f"has the timestamp {given}, which is no time in milliseconds since 1970"
        raise TaskError(f"the record {what}.", "Say where its time is: time=….")

    def _no_partial(self, number: int) -> NoReturn:
        raise not_for(str(self.graph[number].title))

    def _before_1970(self, number: int, given: int) -> NoReturn:
        """A time that is given to a window, and with which its pane could not be written."""
        said = f"time=… gave {given}, which is before 1970: its window's result could not be written with its time."
        raise TaskError(said, "Drop such records before the window: .filter(lambda value, time: time >= 0); or write the panes with timestamps=\"send\".")

    def _wrong_kind(self, number: int, value: Any) -> NoReturn:
        kind = self.graph[number].value
        raise TaskError(f"the value is {shown(value)} ({type(value).__name__}), not {kind}.", "Fix what writes the topic, or the value=… of the stream.")

    def _milliseconds(self, number: int, given: Any) -> int:
        """A time that is no int, or beyond what a time can be."""
        if isinstance(given, datetime) and given.tzinfo is not None:
            return in_ms(given)
        what = "a datetime without a zone" if isinstance(given, datetime) else f"{shown(given)} ({type(given).__name__})"
        needed = f"it must give milliseconds since 1970, an int of at most {LARGEST}, or a datetime with a zone"
        raise TaskError(f"time=… gave {what}; {needed}.", "Correct the function of `time=` in the program.")


class GraphTask(StreamTask):
    """The task object of a program's task.

    Attributes:
        takes_raw_records: it is given Kafka's records, and decodes what it needs of them.
        counts: by operator, how many records it gave on; only of those that the code counts.
        taken: how many of the last run's records it took: it stops where a window is due.
        marks: how many of these were marks, which are no records of anybody's.
        windows: its windows; None: no input has a time.
        failed_at: the operator whose function of the user's raised last, in words; "" if none did, or where the error itself names the operator.
    """

    takes_raw_records = True

    def __init__(self, program: Program) -> None:
        self._program = program
        self.counts = [0] * len(program.graph)
        self._runs: dict[str, Run] = {}
        self._of_windows: dict[int, Run] = {}
        self.windows: TaskWindows | None = None
        self.taken = self.marks = 0
        self.failed_at = ""
        self._combiners: dict[Node, Combiner] = {}
        self._waiting: dict[str, WaitingSums] = {}  # by internal topic, of all tasks of the container

    def init(self, context: TaskContext) -> None:
        """Binds the code to the task's stores."""
        if (time := getattr(context, "time", None)) is not None:
            self.windows = TaskWindows(self._program, time, context.get_store, context.task_name)
        self._waiting = getattr(context, "together", {})
        self._combiners = self._program.combiners(self._waiting)
        functions = self._program.functions(context, self.windows, self._combiners)
        self.counts = cast(Any, context).counts.of(len(self.counts))
        self._runs = {topic: functions[number] for topic, number in self._program.runs.items()}
        self._of_windows = {node.number: functions[node.number] for node in windows_of(self._program.graph)}

    @property
    def is_due(self) -> bool:
        """Whether a window is to be fired."""
        return self.windows is not None and self.windows.is_due

    def reached(self, topic: str, stage: Stage) -> tuple[int, bool]:
        """How far it is with what it sends to an internal topic, in this stage; and whether windows before that have still to fire."""
        if self.windows is None:
            return NEVER, False
        return self.windows.reached(self._program.writers[topic], stage)

    def still_to_come(self, topic: str) -> int | None:
        """The time of the first pane that its open windows will send to an internal topic, if no record comes any more; None: there is none."""
        return None if self.windows is None else self.windows.still_to_come(topic)

    @property
    def late(self) -> dict[str, int]:
        """By window, how many records were too late for it."""
        graph = self._program.graph
        return {node.name: self.counts[late_of(graph, node).number] for node in windows_of(graph)}

    def fire(self, collector: MessageCollector, alone: bool = False) -> None:
        """Windows that are due: one unit of them; or one pane alone."""
        if self.windows is not None:
            with self._errors():
                self.windows.fire(self._of_windows, collector.send, self.counts, alone)

    @property
    def held(self) -> int:
        """How many sums wait for a commit, of all tasks of the container."""
        return sum(sums.held for sums in self._waiting.values())

    def keep(self) -> None:
        """What was summed up since the last `keep` or `undo` stands."""
        for combiner in self._combiners.values():
            combiner.keep()

    def undo(self) -> None:
        for combiner in self._combiners.values():
            combiner.undo()

    def before_commit(self, send_bytes: SendBytes) -> None:
        """Sends what was summed up.

        Raises:
            TransactionAborted: it cannot be sent; from the next start of the task on, records go alone.
        """
        try:
            for combiner in self._combiners.values():
                combiner.flush(send_bytes)
        except TransactionAborted:
            self._program.combines = False
            raise

    def operators(self) -> dict[str, dict[str, int]]:
        """By operator, how many records it took, gave on, and dropped."""
        return self._program.counted(self.counts)

    def process_batch(self, envelopes: Sequence[Any], collector: MessageCollector, coordinator: TaskCoordinator) -> None:
        """Takes records of one partition through the program, up to the first after which a window is due."""
        topic, windows = envelopes[0].topic(), self.windows
        self.taken, self.marks = len(envelopes), 0
        partition = None if windows is None else windows.partition(topic, envelopes[0].partition())
        if partition is None or windows is None:
            with self._errors():
                self._runs[topic](envelopes, collector.send, self.counts)
            return
        counts, saved = list(self.counts), windows.save()
        try:
            with self._errors():
                self.taken = self._runs[topic](envelopes, collector.send, self.counts, partition)  # type: ignore[call-arg,assignment]
        except BaseException:
            self.counts[:] = counts
            windows.go_back(saved)
            raise
        self.marks = windows.marks
        if windows.is_due:
            coordinator.fire()  # type: ignore[attr-defined]

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Errors are told with the operator in which they were raised."""
        self.failed_at = ""
        try:
            yield
        except Exception as error:
            node, is_users = self._program.at(error)
            self.failed_at = node.title if node is not None and is_users else ""
            if node is None or is_users:
                raise
            placed = _placed(node, error)
            if placed is error:
                raise
            raise placed from error


def _no_part(*given: Any) -> NoReturn:
    raise AssertionError("a record of a stage in which this task has no part")


def _placed(node: Node, error: Exception) -> Exception:
    """The error with its operator, where no line of the user's says it."""
    where = f"{node.title} ({node.where})" if not isinstance(node, Source) else node.title
    if isinstance(error, SamzapyError) and not isinstance(error, SerdeError | RecordTooLarge | TaskError):
        return error
    placed: SamzapyError = TaskError(f"{where}: {type(error).__name__}: {error}.")
    if isinstance(error, SamzapyError):
        placed = type(error)(f"{where}: {error.message}", error.remedy)
    placed.where = where
    return placed
