"""Commits before their time: what a stage sends into an internal topic is seen by the following stage when it is committed. So a container that has
nothing to read commits at once what others wait for; while it is busy, `commit.interval` decides."""

from __future__ import annotations

from collections.abc import Sequence

from samzapy.container.collector import Collector
from samzapy.container.commit_due import due, is_due_early
from samzapy.container.commits import Commits
from samzapy.container.inputs import Inputs
from samzapy.container.marks import Marks
from samzapy.container.spec import ContainerSpec
from samzapy.ports import Clock, Message


class Early:
    """Commits early where commit_due.py says so.

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
        if not self.is_on:
            return
        sent, passed_s = self._sent_now(), self._clock.monotonic() - self._commits.last_at
        if why := due(is_early=is_due_early(bool(batch), passed_s, sent != self._sent, self._inputs.tasks(), self._marks)):
            self._commits.commit(why)
            self._sent = sent

    def _sent_now(self) -> int:
        return sum(self._collector.sent[topic] for topic in self._topics)
