"""The event time of a task: its lanes, and its stages. A plain task has one stage, of all its inputs with a time. A program has one for each set of
inputs that feeds windows or an internal topic: what comes after an internal topic must not hold up what comes before it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from samzapy.container.watermark import Lane, StageTime, stage_name
from samzapy.model.event_time import NEVER


class TaskTime:
    """The times of one task.

    Attributes:
        lanes: of each input partition that has a time, and of each internal one.
        stages: in the order of their names.
    """

    def __init__(self) -> None:
        self.lanes: list[Lane] = []
        self.stages: list[StageTime] = []

    def begin(self, lanes: Sequence[Lane], sets: Collection[Sequence[str]] | None, known: dict[str, int]) -> None:
        """Its lanes, the topics of each of its stages (None: one of all), and the watermarks of the checkpoint by stage."""
        self.lanes = list(lanes)
        all_topics = [lane.partition.topic for lane in lanes]
        names = sorted({stage_name(topics) for topics in ([all_topics] if sets is None else sets)})
        for name in names:
            of = set(name.split("+"))
            fed = [lane for lane in lanes if lane.partition.topic in of]
            if fed:  # a task has no part in a topic with fewer partitions
                alike = max((at for other, at in known.items() if not of.isdisjoint(other.split("+"))), default=NEVER)
                stage = StageTime(name, known.get(name, alike))  # of a program that has changed, time does not go back under state that stands
                stage.lanes.extend(fed)
                self.stages.append(stage)

    def before_return(self) -> None:
        """A lane that was idle is about to count again (`StageTime.before_return`)."""
        for stage in self.stages:
            stage.before_return()

    def of(self, topics: Collection[str]) -> StageTime | None:
        """The stage that is fed by these topics."""
        name = stage_name(list(topics))
        return next((stage for stage in self.stages if stage.name == name), None)

    @property
    def watermark(self) -> int:
        """How far all of the task has come."""
        return min((stage.watermark for stage in self.stages), default=NEVER)

    @property
    def is_by_clock(self) -> bool:
        """Whether all of it is the clock's time."""
        return all(stage.is_by_clock for stage in self.stages)

    @property
    def kept(self) -> dict[str, int]:
        """What the checkpoint keeps, by stage; without those of which nothing is known yet."""
        return {stage.name: at for stage in self.stages if (at := stage.kept) != NEVER}

    def save(self) -> Any:
        """The times as they are, for `go_back`."""
        return [stage.save_own() for stage in self.stages], [lane.save() for lane in self.lanes]

    def go_back(self, saved: Any) -> None:
        """What was processed since `save` was undone, and will come again."""
        stages, lanes = saved
        for stage, own in zip(self.stages, stages, strict=True):
            stage.go_back_own(own)
        for lane, one in zip(self.lanes, lanes, strict=True):
            lane.go_back(one)

    def status(self, now_s: float, now_ms: int) -> dict[str, object]:
        """For people, by stage (`StageTime.status`)."""
        return {name: told for stage in self.stages for name, told in stage.status(now_s, now_ms).items()}
