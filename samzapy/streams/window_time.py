"""The time that a task's windows go by: what the container keeps of it, as they see it, and the watermark of a window that other windows feed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from samzapy.api.serde import Serde
from samzapy.model.event_time import NEVER
from samzapy.streams.graph import Graph, Node
from samzapy.streams.operators.window_firing import Slices


class TimedPartition(Protocol):
    """The time of one input partition, as the container keeps it.

    Attributes:
        topic_partition: topic and partition.
        quiet: a record of at most this time does not move it.
        now_ms: the wall clock.
    """

    topic_partition: Any
    quiet: int

    @property
    def watermark(self) -> int: ...
    def now_ms(self) -> int: ...
    def advance(self, time: int) -> None: ...
    def plain_times(self) -> tuple[int, int]: ...


class Stage(Protocol):
    """The event time of a stage of a task, as the container keeps it.

    Attributes:
        is_held: whether windows are open for which others wait whose time is not known here.
    """

    name: str
    partitions: Sequence[TimedPartition]
    is_held: Callable[[], bool]

    @property
    def is_idle(self) -> bool: ...
    @property
    def watermark(self) -> int: ...
    @property
    def kept(self) -> int: ...
    def go_on(self, time: int) -> None: ...


class Times(Protocol):
    """The event time of a task, as the container keeps it."""

    partitions: Sequence[TimedPartition]
    stages: Sequence[Stage]

    def of(self, topics: Sequence[str]) -> Stage | None: ...
    def save(self) -> Any: ...
    def go_back(self, saved: Any) -> None: ...


class Timed(Protocol):
    """A program, as its windows see it.

    Attributes:
        topics: by operator, the topic that it reads.
        writers: of each internal topic, the operator that sends to it.
        serde: gives a serde by its name.
        check: whether functions are checked for changing what they are given.
    """

    graph: Graph
    serde: Callable[[str], Serde]
    check: bool

    @property
    def topics(self) -> Mapping[Node, str]: ...
    @property
    def writers(self) -> Mapping[str, Node]: ...


class Now:
    """The time of windows that are fed by records.

    Attributes:
        stage: what it is the time of.
        bound: the watermark is not beyond this.
    """

    __slots__ = ("bound", "stage")

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.bound = NEVER

    @property
    def watermark(self) -> int:
        return self.stage.watermark


class Held:
    """The time of windows that are fed by other windows: it moves when those have fired."""

    __slots__ = ("slices",)

    def __init__(self) -> None:
        self.slices: Slices | None = None

    @property
    def watermark(self) -> int:
        return NEVER if self.slices is None else self.slices.at

    @property
    def bound(self) -> int:
        return NEVER if self.slices is None else self.slices.at


class HeldOrNow(Held):
    """The time of windows that are fed by records and by other windows. Records are judged as where no window is before: all that was due has fired.

    Attributes:
        is_firing: whether other windows give their panes now, the time of which may be past.
    """

    __slots__ = ("_now", "is_firing")

    def __init__(self, now: Now) -> None:
        super().__init__()
        self._now = now
        self.is_firing = False

    @property
    def watermark(self) -> int:
        at = NEVER if self.slices is None else self.slices.at
        return at if self.is_firing else max(at, self._now.watermark)

    @property
    def bound(self) -> int:
        at = NEVER if self.slices is None else self.slices.at
        return at if self.is_firing else max(at, self._now.bound)
