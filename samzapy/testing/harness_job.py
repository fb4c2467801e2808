"""A harness's job: what its file or class says, and its topics."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from samzapy.api.errors import ConfigurationError, TopicMisconfigured
from samzapy.api.task import StreamTask
from samzapy.config.document import settings_from_document
from samzapy.config.errors import ConfigError, Problem
from samzapy.config.overrides import apply_set
from samzapy.config.schema import Settings
from samzapy.config.tree import dotted, from_plain, plain
from samzapy.config.units import parse_duration
from samzapy.plan.internal_topics import INTERNAL, what_is_wrong
from samzapy.ports import Log, SchemaRegistry, TopicSpec
from samzapy.serde.registered import RegistrySerde
from samzapy.serde.registry import NamedSerde
from samzapy.streams.app import App
from samzapy.streams.expand import sections as sections_of
from samzapy.wiring.growing_topics import growing
from samzapy.wiring.job_file import load_program
from samzapy.wiring.job_topics import JobTopics
from samzapy.wiring.program import expand, job_in
from samzapy.wiring.serdes import Serdes
from samzapy.wiring.tasks import Tasks, tasks_of

AnyJob = str | Path | Mapping[str, Any] | type[StreamTask] | App
MEMORY = {"bootstrap.servers": "memory:9092"}
COMPACTED = {"cleanup.policy": "compact"}
T = TypeVar("T")


@dataclass(frozen=True)
class HarnessJob:
    """A job as a harness runs it.

    Attributes:
        document: the job file, as a dict.
        folders: where its modules are looked for.
        user: gives new task objects.
    """

    document: Mapping[str, Any]
    settings: Settings
    topics: JobTopics
    folders: Sequence[Path]
    user: Tasks
    serdes: Serdes

    @classmethod
    def of(
        cls, job: AnyJob, sets: Sequence[str], sections: Mapping[str, Any], registry: SchemaRegistry, before: HarnessJob | None = None
    ) -> HarnessJob:
        """A job file, a document or a class, with sections that replace its own. `before`: the job that it is a change of, if it is one.

        Raises:
            ConfigError: with all problems of the file at once.
        """
        environ = {"KAFKA_BOOTSTRAP": "memory:9092", **os.environ}
        folders: Sequence[Path] = (Path.cwd(),) if before is None else before.folders
        document: dict[str, Any]
        if isinstance(job, str | Path):
            loaded = load_program([Path(job)], sets, environ)
            folders = loaded.folders
            document = {**loaded.document, **sections}
        elif isinstance(job, Mapping):
            document = _with_sets({**job, **sections}, sets)
        elif isinstance(job, App):
            document = _with_sets({"job": "test", "app": "program:app", "kafka": MEMORY, **sections}, sets)
            said = sections_of(job.graph, document.get("streams", {}), document.get("stores", {}), job_in(document)).to_json()
            document |= {name: section for name, section in said.items() if name == "stores" or name not in sections}
        else:
            document = _with_sets({"job": "test", "task": f"{job.__module__}:{job.__name__}", "kafka": MEMORY, **sections}, sets)
        if isinstance(job, Mapping) and document.get("app") is not None and not document.get("inputs"):
            document |= _of_program(document, folders)
        settings = settings_from_document(document, environ)
        serdes = Serdes(settings, folders, lambda: registry)
        if isinstance(job, type):
            user = Tasks(job)
        elif before is not None and not isinstance(job, App | str | Path) and (before.settings.task, before.settings.app) == (settings.task, settings.app):
            user = before.user
        else:
            user = tasks_of(settings, folders, job if isinstance(job, App) else None, check=True, serdes=serdes)
        return cls(document, settings, JobTopics.of(settings), folders, user, serdes)

    def writing(self, name: str, topic: str, part: str) -> NamedSerde:
        """A serde that may write: what it needs in the registry is registered there."""
        serde = self.serdes.of(name, topic, part)
        if isinstance(serde, RegistrySerde):
            serde.ready(register=True)
        return serde

    def create_topics(self, log: Log, tasks: int) -> list[str]:
        """Create those of the job's topics that are not there yet, inputs with `tasks` partitions. Returns the names of all.

        Raises:
            TopicMisconfigured: the program says another number of partitions for an internal topic than it has.
            StateMismatch: the job would have more tasks than its state was kept by.
        """
        inputs = self.settings.inputs
        with log.admin() as admin:
            there = admin.topics(self.topics.decide_tasks)
            asked = {topic: TopicSpec(topic, n, INTERNAL) for topic, n in self.topics.internal.items() if n is not None and topic in there}
            if wrong := [f"{topic} {what}" for topic, spec in asked.items() if (what := what_is_wrong(spec, there[topic]))]:
                raise TopicMisconfigured("; ".join(wrong) + ".", "samzapy never changes the settings of an existing topic: change them with Kafka's own tools.")
            known = {i.topic: tasks for i in inputs} | {topic: facts.partitions for topic, facts in there.items()}
            between = {topic: partitions for topic, partitions in self.topics.counts(known).items() if topic in self.topics.internal}
            counts = [known[i.topic] for i in inputs if not i.broadcast]
            job, logs = self.topics.job, self.topics.changelogs.values()
            count = max([*counts, *between.values(), known.get(job.checkpoint_topic, 0)]) or tasks
            specs = [TopicSpec(i.topic, tasks) for i in inputs]
            specs += [TopicSpec(o.topic, o.partitions or tasks) for o in self.settings.outputs]
            specs += [TopicSpec(topic, partitions, INTERNAL) for topic, partitions in between.items()]
            specs += [TopicSpec(topic, count, COMPACTED) for topic in [*logs, job.checkpoint_topic]]
            specs += [TopicSpec(job.dead_letter_topic, count), TopicSpec(job.coordinator_topic, 1, COMPACTED)]
            wanted = {spec.name: spec for spec in reversed(specs)}
            there = admin.topics(wanted)
            admin.create([spec for name, spec in wanted.items() if name not in there])
            for topic in growing(self.settings, {**admin.topics(self.topics.read), **there}, count):
                admin.grow(topic, count)
        return list(wanted)


def _with_sets(document: Mapping[str, Any], sets: Sequence[str]) -> dict[str, Any]:
    """A document with single keys changed, as `--set` does.

    Raises:
        ConfigError: with all that is wrong with them.
    """
    problems: list[Problem] = []
    root = from_plain(document)
    for number, text in enumerate(sets, 1):
        root = apply_set(root, number, text, Path.cwd(), problems)
    if problems:
        raise ConfigError(problems)
    return dict(plain(root)) if sets else dict(document)


def _of_program(document: Mapping[str, Any], folders: Sequence[Path]) -> Mapping[str, Any]:
    """The sections of a dict's `app`.

    Raises:
        ConfigError: the program cannot be used, with all that is wrong.
    """
    said, findings = expand(document, folders)
    if findings:
        raise ConfigError([Problem("", 0, 0, dotted(finding.path), finding.message, finding.hint) for finding in findings])
    return said


def seconds_of(time: float | str) -> float:
    """Seconds, or a duration as in the job file, as seconds.

    Raises:
        ValueError: that is no duration.
    """
    if not isinstance(time, str):
        return time
    ms = parse_duration(time)
    if ms is None:
        raise ValueError(f"{time!r} is no duration: give seconds, or text like '500ms', '10s', '5m', '1h', '7d'")
    return ms / 1000


def as_dict(store: str, entries: list[tuple[Any, Any]]) -> dict[Any, Any]:
    """The entries of a store.

    Raises:
        ValueError: a key is a list or a dict.
    """
    try:
        return dict(entries)
    except TypeError as error:
        raise ValueError(f"store {store!r} has keys that a dict cannot have: {error}; read h.records() of its changelog instead") from None


def named(what: str, name: str, there: Mapping[str, T]) -> T:
    """The one of that name.

    Raises:
        ConfigurationError: there is none; the message lists the names that exist.
    """
    if name not in there:
        raise ConfigurationError(f"there is no {what} {name!r}.", f"There is: {', '.join(sorted(there)) or f'no {what} at all'}.")
    return there[name]
