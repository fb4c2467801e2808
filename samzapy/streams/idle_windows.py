"""Windows of inputs that are idle, and for whose panes others wait.

Time goes on without an idle input: the time of those that take the panes of its windows, too. So that these panes do not come too late there, the windows
fire before that: as soon as the time of those who wait has come to the end of one, the idle stage goes on to that time. Who waits is a stage of the same
task that has other inputs besides, or the tasks that write the same internal topic. Where nobody moves, the windows stay open.

A task knows the time of these other tasks from the partition of the internal topic that it reads. If it reads none, or if windows after the topic take
other inputs besides, it does not know who waits; then the idle stage goes on at the speed of the clock until these windows have fired.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from samzapy.model.event_time import END, NEVER
from samzapy.streams.graph import Node
from samzapy.streams.operators.partials import SlicesOfSums
from samzapy.streams.window_time import Stage, TimedPartition, Times


class IdleWindows:
    """What is to be done for the windows of a task while what feeds them is idle.

    Args:
        task: its name.
        windows: each with its stage.
        writers: by internal topic what writes it, with its stage.
        before: all operators of its stage before an operator.
        times: the task's event time.
        shared: internal topics after which others wait that do not write them (`shared_topics`).
    """

    def __init__(
        self, task: str, windows: Mapping[Node, tuple[SlicesOfSums, Stage]], writers: Mapping[str, tuple[Node, Stage]], before: Callable[[Node], set[Node]],
        times: Times, shared: Collection[str],
    ) -> None:  # fmt: skip
        partitions: dict[str, Any] = {partition.topic_partition.topic: partition for partition in times.partitions}
        self._task = task
        self._open: dict[str, list[SlicesOfSums]] = {}
        self._topics: list[tuple[Stage, list[SlicesOfSums], Any]] = []
        for topic, (writer, stage) in writers.items():
            found = self._open[topic] = [windows[node][0] for node in before(writer) if node in windows]
            if found and topic in partitions:
                self._topics.append((stage, found, partitions[topic]))
            if found and (topic not in partitions or topic in shared):
                _hold(stage, found)
        self._joined: list[tuple[Stage, list[SlicesOfSums], Stage]] = []
        for node, stage in (*((node, stage) for node, (_, stage) in windows.items()), *writers.values()):
            for fed in {id(other): other for feeding in before(node) if feeding in windows and (other := windows[feeding][1]) is not stage}.values():
                self._joined.append((fed, [windows[one][0] for one in before(node) if one in windows and windows[one][1] is fed], stage))
        self._joined.sort(key=lambda joined: -joined[2].name.count("+"))  # what has most inputs feeds nothing of the others

    def go_on(self) -> None:
        """Idle stages go on to the time of those who wait, where that has come to the end of a window."""
        for stage, found, partition in self._topics:
            if stage.is_idle and first_end(found) <= (time := partition.others(self._task)):
                stage.go_on(time)
        for stage, found, waiting in self._joined:
            if stage.is_idle and first_end(found) <= (time := waiting.watermark) and time != END:
                stage.go_on(time)

    def moved_by(self, partition: TimedPartition) -> list[SlicesOfSums]:
        """Windows of idle stages that fire by the time of those who wait, which this partition moves."""
        return [slices for stage, found, waiting in self._joined if partition in waiting.partitions and stage.is_idle for slices in found]

    def still_to_come(self, topic: str) -> int | None:
        """The time of the first pane that open windows will send into an internal topic, without further records; None: there is none."""
        end = first_end(self._open.get(topic, ()))
        return None if end > END else end - 1


def first_end(windows: Sequence[SlicesOfSums]) -> int:
    """The first end of a window that has records and has not fired; beyond END: there is none."""
    return min((slices.still_to_fire for slices in windows), default=END + 1)


def shared_topics(fed: Mapping[str, Collection[str]], stages: Collection[Collection[str]]) -> set[str]:
    """The internal topics that feed, through others or not, a stage that has other inputs besides. `fed`: what each internal topic is made of; `stages`:
    what each stage reads."""
    found = {topic for topic in fed for read in stages if topic in read and len(read) > 1}
    while more := {topic for fed_one in found & fed.keys() for topic in fed[fed_one] if topic in fed} - found:
        found |= more
    return found


def _hold(stage: Stage, windows: Sequence[SlicesOfSums]) -> None:
    before = stage.is_held
    stage.is_held = lambda: before() or NEVER < first_end(windows) <= END
