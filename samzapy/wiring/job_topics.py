"""What a job file says about topics and tasks, derived once: every command, every run and every test asks here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Self

from samzapy.config.schema import Settings
from samzapy.model.job_model import TaskModel
from samzapy.model.names import Job
from samzapy.plan.grouping import group, internal_counts, refuse_left_out
from samzapy.plan.on_error_policy import sets_aside


@dataclass(frozen=True, slots=True, kw_only=True)
class JobTopics:
    """The topics of one job.

    Attributes:
        job: name and id, and the names of the checkpoint and the coordinator topic.
        inputs, outputs: in the order of the job file.
        broadcast: the inputs that every task reads whole.
        internal: topics between the stages of a program, with how many partitions they are to have, if that is said.
        everywhere: those of them with a partition for each task, into which every record is written.
        together: of a program, topics whose records meet by key; None: it is none, and all inputs may.
        changelogs: by store, in the order of the job file; scratch stores have none.
        dead_letters: where failed records are set aside; None: they are not.
        has_stores: whether tasks keep state, so that inputs must have equal partition counts.
    """

    job: Job
    inputs: tuple[str, ...]
    broadcast: frozenset[str]
    outputs: tuple[str, ...]
    internal: Mapping[str, int | None]
    everywhere: frozenset[str]
    together: tuple[tuple[str, ...], ...] | None
    changelogs: Mapping[str, str]
    dead_letters: str | None
    has_stores: bool

    @classmethod
    def of(cls, settings: Settings) -> Self:
        job = job_of(settings)
        stages = settings.stages
        named = {name: store.changelog for name, store in settings.stores.items() if store.changelog is not False}
        return cls(
            job=job,
            inputs=tuple(i.topic for i in settings.inputs),
            broadcast=frozenset(i.topic for i in settings.inputs if i.broadcast),
            outputs=tuple(o.topic for o in settings.outputs),
            internal={} if stages is None else {one.topic: one.partitions for one in stages.internal.values()},
            everywhere=frozenset() if stages is None else frozenset(one.topic for one in stages.internal.values() if one.everywhere),
            together=None if stages is None else stages.together,
            changelogs={name: topic if isinstance(topic, str) else job.changelog_topic(name) for name, topic in named.items()},
            dead_letters=job.dead_letter_topic if sets_aside(settings.on_error.then) else None,
            has_stores=bool(settings.stores),
        )

    @property
    def written(self) -> list[str]:
        """Outputs, internal topics, changelogs, dead letters: what containers write besides checkpoints."""
        return [*self.outputs, *self.internal, *self.changelogs.values(), *([self.dead_letters] if self.dead_letters else [])]

    @property
    def all(self) -> list[str]:
        """Inputs and what is written: the topics whose facts a container needs, besides the checkpoint topic's."""
        return [*self.inputs, *self.written]

    @property
    def read(self) -> list[str]:
        """What tasks read: inputs, and internal topics."""
        return [*self.inputs, *self.internal]

    @property
    def keyed(self) -> list[str]:
        """The topics whose keys decide which task's state a record meets."""
        if not self.has_stores:
            return []
        met = self.inputs if self.together is None else {topic for topics in self.together for topic in topics}
        return [topic for topic in self.read if topic in met and topic not in self.broadcast]

    @property
    def joined(self) -> frozenset[str]:
        """Those of them whose records meet records of others, which must have been placed by the same rule."""
        groups = [self.keyed] if self.together is None else [[topic for topic in topics if topic in self.keyed] for topics in self.together]
        return frozenset(topic for topics in groups if len(topics) > 1 for topic in topics)

    @property
    def is_bound(self) -> bool:
        """Whether the number of the inputs' partitions decides which task has a key's state, so that it must not change. Of a program whose state lies
        behind internal topics it does not: these keep their partitions."""
        return self.has_stores and (self.together is None or not set(self.keyed).isdisjoint(self.inputs))

    @property
    def decide_tasks(self) -> list[str]:
        """The topics of whose partitions there is a task for each: what is read, and, once it is there, the checkpoint topic. Tasks stay, without
        partitions, if the largest input is no longer one: so its offsets are kept, and so is state that other topics' keys have with these tasks. Where
        all inputs' keys have the same state, the inputs alone decide."""
        return [*self.read, *([] if self.has_stores and self.together is None else [self.job.checkpoint_topic])]

    def counts(self, partitions: Mapping[str, int]) -> dict[str, int]:
        """How many partitions each topic has that is read. `partitions`: of those that exist; internal topics that do not are given what they get."""
        inputs = {topic: partitions[topic] for topic in self.inputs}
        missing = {topic: asked for topic, asked in self.internal.items() if topic not in partitions}
        there = {topic: partitions[topic] for topic in self.internal if topic in partitions}
        found = {**inputs, **there, **internal_counts({**inputs, **there}, self.broadcast, missing, self.together or ())}
        tasks = max((n for topic, n in found.items() if topic not in self.broadcast and (topic in there or topic not in self.everywhere)), default=1)
        tasks = max(tasks, self._tasks_so_far(partitions))
        return found | {topic: tasks for topic in missing if topic in self.everywhere}

    def tasks(self, partitions: Mapping[str, int]) -> dict[str, TaskModel]:
        """The job's tasks, where the topics that exist have so many partitions.

        Raises:
            ConfigurationError: unequal partition counts of topics whose records meet by key; a task that has no partition of a topic with one for each.
        """
        counts = self.counts(partitions)
        tasks = group(counts, self.broadcast, self.has_stores, self.together, self.internal, self._tasks_so_far(partitions))
        refuse_left_out({topic: counts[topic] for topic in self.everywhere}, len(tasks))
        return tasks

    def _tasks_so_far(self, partitions: Mapping[str, int]) -> int:
        return partitions.get(self.job.checkpoint_topic, 0) if self.job.checkpoint_topic in self.decide_tasks else 0


def partitions_of(topics: Iterable[str], tasks: Mapping[str, TaskModel]) -> dict[str, int]:
    """How many partitions of each topic the tasks read."""
    return {topic: sum(any(p.topic == topic for p in task.inputs) for task in tasks.values()) for topic in topics}


def job_of(settings: Settings) -> Job:
    return Job(settings.job, settings.id)
