"""Commits before their time: what a stage sends into an internal topic is seen by the following stage when it is committed. So a container that has
nothing to read commits at once what others wait for; while it is busy, `commit.interval` decides."""

from __future__ import annotations

from collections.abc import Sequence

from samzapy.container.collector import Collector
from samzapy.container.commits import EARLY, Commits
from samzapy.container.inputs import Inputs
from samzapy.container.marks import Marks
from samzapy.container.spec import ContainerSpec
from samzapy.ports import Clock, Message

EARLY_S = 0.05  # between two commits, at least


class Early:
    """Decides whether a commit comes early.

    Attributes:
        is_on: whether the job has internal topics.
    """

    def __init__(self, spec: ContainerSpec, marks: Marks, inputs: Inputs, collector: Collector, commits: Commits, clock: Clock) -> None:
        self.is_on = marks.is_on
        self._topics = list(spec.between)
        self._marks = marks
        self._inputs = inputs
        self._collector = collector
        self._commits = commits
        self._clock = clock
        self._sent = 0

    def after(self, batch: Sequence[Message]) -> None:
        """After a poll. Raises as `Commits.commit`."""
        if not self.is_on or batch:
            return
        if self._clock.monotonic() - self._commits.last_at < EARLY_S or not self.is_wanted:
            return
        sent = self._sent_now()
        self._commits.commit(EARLY)
        self._sent = sent

    @property
    def is_wanted(self) -> bool:
        """Whether others wait for a commit: for records, or for how far a task is. That it has read on is no reason."""
        if self._sent_now() != self._sent or any(task.held for task in self._inputs.tasks()):
            return True
        return any(self._marks.is_news(task, self._marks.of(task)) for task in self._inputs.tasks())

    def _sent_now(self) -> int:
        return sum(self._collector.sent[topic] for topic in self._topics)
