"""The windows of a program's task, and the time that they go by: which are due after a record, and firing them in units, in the graph's order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from samzapy.api.serde import Serde
from samzapy.model.event_time import END, NEVER
from samzapy.serde.basic import shown
from samzapy.streams.graph import Graph, Node
from samzapy.streams.operators.slices import Slices, Sums
from samzapy.streams.windowed import WindowAggregate, windows_of
from samzapy.streams.windows import Pane

UNIT = 256  # panes and deletions between which a commit, a heartbeat or a stop may come


class Lane(Protocol):
    """The time of one input partition, as the container keeps it.

    Attributes:
        partition: topic and partition.
        quiet: a record of at most this time does not move it.
        now_ms: the wall clock.
    """

    partition: Any
    quiet: int

    @property
    def watermark(self) -> int: ...
    def now_ms(self) -> int: ...
    def advance(self, time: int) -> None: ...


class Stage(Protocol):
    """The event time of a task, as the container keeps it."""

    lanes: Sequence[Lane]

    @property
    def watermark(self) -> int: ...
    @property
    def kept(self) -> int: ...
    def save(self) -> Any: ...
    def go_back(self, saved: Any) -> None: ...


class Now:
    """The time of windows that are fed by records.

    Attributes:
        bound: the watermark is not beyond this.
    """

    __slots__ = ("_stage", "bound")

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self.bound = NEVER

    @property
    def watermark(self) -> int:
        return self._stage.watermark


class Held:
    """The time of windows that are fed by other windows: it moves when those have fired."""

    __slots__ = ("slices",)

    def __init__(self) -> None:
        self.slices: Slices | None = None

    @property
    def watermark(self) -> int:
        return NEVER if self.slices is None else self.slices.at

    bound = watermark


class Watched(list[Any]):
    """Panes that are given on; `last`: the one under way, for errors."""

    last: Any = None

    def __iter__(self) -> Iterator[Any]:
        for self.last in super().__iter__():
            yield self.last


class TaskWindows:
    """The windows of one task.

    Args:
        stage: the task's event time.
        store: gives a store by its name.
        serde: gives a serde by its name.
    """

    def __init__(self, graph: Graph, stage: Stage, store: Callable[[str], Any], serde: Callable[[str], Serde]) -> None:
        self._stage = stage
        self._now = Now(stage)
        self._lanes = {(lane.partition.topic, lane.partition.partition): lane for lane in stage.lanes}
        self._lane: Lane | None = None
        self.failed = ""  # the pane with which firing failed, in words
        self._windows: list[tuple[WindowAggregate, Slices]] = []
        for node in windows_of(graph):
            key = serde(node.key.serde)
            is_fed = any(isinstance(before, WindowAggregate) for before in _before(node))
            held = Held()
            slices = Slices(
                store(node.name), node.window, sums_of(node, serde), key.encode, key.decode, held if is_fed else self._now,
                lateness_ms=node.lateness_ms, each=node.emit.each,
            )  # fmt: skip
            held.slices = slices
            slices.start()
            self._windows.append((node, slices))

    @property
    def adds(self) -> dict[str, Callable[..., Any]]:
        """By the name in the source, what takes a record into a window."""
        return {f"add{node.number}": slices.add for node, slices in self._windows}

    def written_at(self, time: int) -> int:
        """The time that a pane's record is written with: the pane's own, or now where that is still to come, since Kafka refuses records that are
        far ahead. At least 1, the first time that a record can have."""
        return max(1, min(time, self._stage.lanes[0].now_ms()))

    def lane(self, topic: str, partition: int) -> Lane | None:
        """The time of a partition whose records are next; None: it has none."""
        lane = self._lane = self._lanes.get((topic, partition))
        if lane is not None:
            self._now.bound = max(self._stage.kept, lane.watermark)
        return lane

    def save(self) -> Any:
        """The time as it is, for `go_back` if a run fails."""
        return self._stage.save()

    def go_back(self, saved: Any) -> None:
        self._stage.go_back(saved)

    def moved(self, time: int) -> bool:
        """A record of this time was processed, and its lane moves. Returns whether a window is due."""
        lane = self._lane
        if lane is None:
            return False
        lane.advance(time)
        reached, now = lane.watermark, self._now
        if reached > now.bound:
            now.bound = reached
        return reached >= self.wake and self.is_due

    @property
    def wake(self) -> int:
        """The watermark at which something is to be done."""
        return min([slices.wake for _, slices in self._windows], default=END)

    @property
    def is_due(self) -> bool:
        """Whether a window is to be fired."""
        return self.wake <= self._stage.watermark

    def fire(self, runs: Mapping[int, Callable[..., Any]], send: Callable[..., None], counts: list[int]) -> None:
        """One unit: of the first windows that are due, since what they give may be for those behind them."""
        watermark = self._stage.watermark
        for node, slices in self._windows:
            if slices.is_due(watermark):
                given, _ = slices.fire(watermark, UNIT)
                if given:
                    watched = Watched(given)
                    try:
                        runs[node.number](watched, send, counts)
                    except Exception:
                        self.failed = _told(node.name, *watched.last) if watched.last is not None else ""
                        raise
                return


def _told(name: str, key: Any, pane: Pane[Any]) -> str:
    return f"the pane of {name!r} for key {shown(key)}, {pane.start} to {pane.end} (ms since 1970)"


def sums_of(node: WindowAggregate, serde: Callable[[str], Serde]) -> Sums:
    """How a window's values become its result."""
    kept = serde(node.kept.serde)
    return Sums(_adding(node), node.merge or _no_merge, node.result or _same, kept.encode, kept.decode)


def _adding(node: WindowAggregate) -> Callable[[Any, Any, int], Any]:
    if node.add is None:
        return lambda sum_, value, time: 1 if sum_ is None else sum_ + 1
    add, zero = node.add.call, node.zero
    if zero is None:
        return lambda sum_, value, time: value if sum_ is None else add(sum_, value)
    if node.add.asks:
        return lambda sum_, value, time: add(zero() if sum_ is None else sum_, value, time=time)
    return lambda sum_, value, time: add(zero() if sum_ is None else sum_, value)


def _no_merge(a: Any, b: Any) -> Any:
    raise AssertionError("a window of one slice merges nothing")


def _same(value: Any) -> Any:
    return value


def _before(node: Node) -> set[Node]:
    """All operators whose records, or what was made of them, an operator takes."""
    return {each for before in node.inputs for each in (before, *_before(before))}
