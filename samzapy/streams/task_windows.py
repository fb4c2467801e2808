"""The windows of a program's task, and the time that they go by: which are due after a record, and firing them in units, in the graph's order."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from samzapy.api.errors import SerdeError, TaskError, check
from samzapy.model.event_time import NEVER
from samzapy.model.failed_pane import FailedPane
from samzapy.serde.basic import JsonSerde, shown
from samzapy.serde.record_keys import as_key
from samzapy.streams.combining import partial_windows, records_of
from samzapy.streams.graph import Node, Reader
from samzapy.streams.idle_windows import IdleWindows, shared_topics
from samzapy.streams.operators.partials import SlicesOfSums
from samzapy.streams.walk import roots_of
from samzapy.streams.window_nodes import WindowAggregate, windows_of
from samzapy.streams.window_shapes import Pane
from samzapy.streams.window_sums import sums_of
from samzapy.streams.window_time import Held, HeldOrNow, Now, Stage, Timed, TimedPartition, Times
from samzapy.streams.windowed import pane_json

FOREIGN_MARK = (
    "Find out who writes into the topic: samzapy alone may. With `on_error: {then: dead_letter}` such a record is set aside, and time goes on without it."
)
UNIT = 256  # panes and deletions between which a commit, a heartbeat or a stop may come


class TaskWindows:
    """The windows of one task.

    Args:
        times: the task's event time.
        store: gives a store by its name.
        task: its name.
    """

    def __init__(self, program: Timed, times: Times, store: Callable[[str], Any], task: str) -> None:
        graph, topics, serde = program.graph, program.topics, program.serde
        self._times = times
        self._now_ms = times.partitions[0].now_ms
        self._seen_ms = NEVER  # the wall clock, when it was last asked in the run or unit under way
        self._partitions = {(partition.topic_partition.topic, partition.topic_partition.partition): partition for partition in times.partitions}
        self._nows: dict[int, Now] = {}  # by the identity of a stage
        self._fed: list[Now] = []  # the times that the partition under way moves
        self._moving: list[SlicesOfSums] = []  # the windows of these
        self._partition: TimedPartition | None = None
        self.marks = 0  # that were heard in the run under way
        self.failed: FailedPane | None = None  # with which firing one alone failed
        self._windows: list[tuple[WindowAggregate, SlicesOfSums, Now]] = []
        self._both: list[HeldOrNow] = []
        self._partial = partial_windows(graph)
        for node in windows_of(graph):
            stage = times.of(sorted({topics[root] for root in roots_of(node)}))
            if stage is None:
                continue  # this task has no part in what feeds it
            now = self._nows.setdefault(id(stage), Now(stage))
            held = HeldOrNow(now) if takes_records(node) else Held()
            key = as_key(serde(node.key.serde))
            is_fed = any(isinstance(before, WindowAggregate) for before in before_of(node))
            slices = SlicesOfSums(
                store(node.name), node.window, sums_of(node, serde, program.check), key.encode, key.decode, held if is_fed else now,
                lateness_ms=node.lateness_ms, each=node.emit.each,
            )  # fmt: skip
            held.slices = slices
            if is_fed and isinstance(held, HeldOrNow):
                self._both.append(held)
            slices.start()
            self._windows.append((node, slices, now))
        reads = {node: sorted({topics[root] for root in roots_of(node)}) for node in (*windows_of(graph), *program.writers.values())}
        writers = {topic: (node, stage) for topic, node in program.writers.items() if (stage := times.of(reads[node])) is not None}
        shared = shared_topics({topic: reads[node] for topic, node in program.writers.items()}, reads.values())
        staged: dict[Node, tuple[SlicesOfSums, Stage]] = {node: (slices, now.stage) for node, slices, now in self._windows}
        self._idle = IdleWindows(task, staged, writers, before_of, times, shared)

    @property
    def adds(self) -> dict[str, Callable[..., Any]]:
        """By the name in the source, what takes a record into a window, and what is asked for where it counts in place."""
        in_place = {f"{name}{node.number}": getattr(slices, name) for node, slices, _ in self._windows for name in ("near", "touch", "fresh")}
        return in_place | {f"add{node.number}": slices.add for node, slices, _ in self._windows} | {
            f"joined{reader.number}": _joined(node, slices) for reader, node in self._partial.items() for of, slices, _ in self._windows if of is node
        }

    def written_at(self, time: int) -> int:
        """The time that a pane's record is written with: the pane's own, or now where that is still to come, since Kafka refuses records that are
        far ahead. At least 1, the first time that a record can have."""
        if 1 <= time <= self._seen_ms:
            return time
        self._seen_ms = self._now_ms()
        return max(1, min(time, self._seen_ms))

    def partition(self, topic: str, number: int) -> TimedPartition | None:
        """The time of a partition whose records are next; None: it has none."""
        partition = self._partition = self._partitions.get((topic, number))
        self.marks, self._seen_ms = 0, NEVER
        if partition is not None:
            self._fed = [now for now in self._nows.values() if partition in now.stage.partitions]
            self._moving = [slices for _, slices, now in self._windows if now in self._fed] + self._idle.moved_by(partition)
            for now in self._fed:
                now.bound = max(now.stage.kept, partition.watermark)
        return partition

    def save(self) -> Any:
        """The time as it is, and how far each window is, for `go_back` if a run fails."""
        return self._times.save(), [slices.place for _, slices, _ in self._windows]

    def go_back(self, saved: Any) -> None:
        times, places = saved
        self._times.go_back(times)
        for (_, slices, _), place in zip(self._windows, places, strict=True):
            slices.come_back(place)

    def plain_times(self) -> tuple[int, int]:
        """Two times: after a record whose time is after the first and before the second no window is due. Such a time need be told only before a record
        is added to a window, and at the end of the run: the newest of them."""
        partition = self._partition
        if partition is None:
            return NEVER, NEVER
        newest, until = partition.plain_times()
        for slices in self._moving:
            until = min(until, slices.wake + newest - partition.watermark)
        return newest, until

    def moved(self, time: int) -> bool:
        """A record of this time was processed, and the time of its partition moves. Returns whether a window is due."""
        partition = self._partition
        if partition is None:
            return False
        partition.advance(time)
        return self._has_come(partition)

    def time_is(self, time: int) -> None:
        """As `moved`, of a time that `plain_times` allows."""
        if self.moved(time):
            check(False, f"no window is due at {time}, which plain_times allowed")

    def heard(self, data: bytes | None) -> bool:
        """A mark in an internal topic. Returns whether a window is due."""
        partition, self.marks = self._partition, self.marks + 1
        if partition is None:
            return False
        try:
            partition.heard(data)  # type: ignore[attr-defined]  # that of an internal topic
        except ValueError as error:
            raise TaskError(f"{error}.", FOREIGN_MARK) from None
        return self._has_come(partition)

    def _has_come(self, partition: TimedPartition) -> bool:
        reached = partition.watermark
        for now in self._fed:
            if reached > now.bound:
                now.bound = reached
        for slices in self._moving:
            if reached >= slices.wake:  # without it nothing is to be done, whatever the stage's watermark is
                return self.is_due
        return False

    @property
    def is_due(self) -> bool:
        """Whether a window is to be fired."""
        self._idle.go_on()
        return any(slices.is_due(now.stage.watermark) for _, slices, now in self._windows)

    def still_to_come(self, topic: str) -> int | None:
        """The time of the first pane that open windows will send into an internal topic, if no record comes any more; None: there is none."""
        return self._idle.still_to_come(topic)

    def reached(self, node: Node, stage: Stage) -> tuple[int, bool]:
        """How far an operator of a stage is that gives on what windows before it may give: all from there on is still to come; and whether
        they have still to fire."""
        watermark, at, is_firing = stage.watermark, stage.kept, False
        before = before_of(node)
        for window, slices, _ in self._windows:
            if window in before and slices.is_due(watermark):
                at, is_firing = min(at, slices.at), True
        return at, is_firing

    def fire(self, runs: Mapping[int, Callable[..., Any]], send: Callable[..., None], counts: list[int], alone: bool = False) -> None:
        """One unit: of the first windows that are due, since what they give may be for those that follow them. If it raises, nothing has fired here; the
        stores' rows are for the caller to undo. `alone`: one pane; `failed` then says which, if it raises."""
        self._seen_ms = NEVER
        due = self._first_due()
        if due is None:
            return
        node, slices, watermark = due
        saved, counted, given = slices.save(), list(counts), list[Any]()
        pane = slices.next_pane(watermark) if alone else None
        try:
            given, _ = slices.fire(watermark, 1 if alone else UNIT)
            if given:
                self._fires(True)
                runs[node.number](given, send, counts)
        except BaseException:
            counts[:] = counted
            slices.go_back(saved)
            self.failed = None if pane is None else self._failed(node, slices, given, *pane)
            raise
        finally:
            self._fires(False)

    def _fires(self, is_firing: bool) -> None:
        for held in self._both:
            held.is_firing = is_firing

    def pass_by(self) -> None:
        """The pane that `fire` failed with is not fired."""
        due = self._first_due()
        if due is not None:
            due[1].pass_by(due[2])

    def _first_due(self) -> tuple[WindowAggregate, SlicesOfSums, int] | None:
        due = ((node, slices, now.stage.watermark) for node, slices, now in self._windows)
        return next((each for each in due if each[1].is_due(each[2])), None)

    def _failed(self, node: WindowAggregate, slices: SlicesOfSums, given: Sequence[Any], key: bytes, start: int, end: int) -> FailedPane:
        try:
            told = shown(slices.decode_key(key))
        except SerdeError:
            told = shown(key)
        return FailedPane(node.name, key, told, start, end, _as_json(node, given[0][1]) if given else b"")


def _joined(node: WindowAggregate, slices: SlicesOfSums) -> Callable[..., int]:
    """What takes the sum of several records into a window, and says how many of them are too late."""

    def joined(key: Any, data: bytes | None, time: int, headers: Any) -> int:
        return slices.join(key, data or b"", time, records_of(node, headers))

    return joined


def _as_json(node: WindowAggregate, pane: Pane[Any]) -> bytes:
    """A pane as its topic has it; b"" if JSON does not hold it."""
    try:
        return JsonSerde.encode(pane_json(pane, node.how == "aggregate"))
    except Exception:  # noqa: BLE001  its value may be any object of the user's
        return b""


def takes_records(node: Node) -> bool:
    """Whether a window takes records that no window was before."""
    return any(isinstance(each, Reader) or not each.inputs or (not isinstance(each, WindowAggregate) and takes_records(each)) for each in node.inputs)


def before_of(node: Node) -> set[Node]:
    """All operators of its stage whose records, or what was made of them, an operator takes."""
    if isinstance(node, Reader):
        return set()
    return {each for before in node.inputs for each in (before, *before_of(before))}
