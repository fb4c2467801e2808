"""A test harness for tasks: the real run loop, committer and restorer on an in-memory log. No Kafka, no JVM, no threads.

h = Harness("config/word-count.yaml")
h.send("sentences", "the quick fox")
h.run()
assert sorted(h.output("word-counts")) == [("fox", 1), ("quick", 1), ("the", 1)]
h.crash()                      # everything uncommitted and the process are lost
h.send("sentences", "the end")
h.run()
assert h.store("counts")["the"] == 2
"""

from __future__ import annotations

import math
import os
import shutil
import tempfile
import weakref
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any

from samzapy.api.errors import ConfigurationError
from samzapy.config.registered import PREFIX
from samzapy.container.container import Container
from samzapy.model.barrier import BARRIER_KEY
from samzapy.model.checkpoint import CHECKPOINT_KEY, Checkpoint, checkpoint_from_bytes
from samzapy.model.dead_letter import read_letter
from samzapy.model.names import LOCALHOST, task_name
from samzapy.model.offsets import TopicPartition
from samzapy.model.ownership import ContainerRecord, container_key
from samzapy.ports import Message
from samzapy.readers import read_to_end
from samzapy.testing.event_time import EventTime, clock_at
from samzapy.testing.failing import ends_the_run
from samzapy.testing.harness_job import AnyJob, HarnessJob, as_dict, named, seconds_of
from samzapy.testing.manual_clock import ManualClock
from samzapy.testing.memory_log import MemoryCluster, MemoryLog
from samzapy.testing.memory_registry import MemoryRegistry
from samzapy.testing.seen import Records, SeenDeadLetter, seen_letter
from samzapy.wiring.container import Location, container_spec
from samzapy.wiring.serdes import KEY, VALUE

CONTAINER = 0
TURNS_WITHOUT_PROGRESS = 3
BUILT_IN = ("processed", "skipped", "dead_letters")


class Harness(EventTime):
    """One job with all its tasks in one container.

    Args:
        job: a job file's path, a job file as a dict, a StreamTask class, or an App, whose functions raise TaskError here if they change what they are given.
        tasks: the number of partitions of each input, and so of tasks.
        sections: top-level keys of the job file as keywords (`inputs=[…]`, `window="10s"`); they replace those of a file or dict; a class needs them.
        sets: changes of single keys, as with `--set`: "commit.interval=1s". They come after sections, except where `job` is a file.
        over: another harness, whose Kafka and clock this job shares; see `then`.
        now: where the clock starts: milliseconds since 1970, or a datetime with a time zone; by default 2023-11-14 22:13:20 UTC, so that tests repeat.
            If event times are of today, give a `now` that none is after; else event time may stand still, and `run()` and `end()` warn of it.

    Attributes:
        registry: the job's Schema Registry, in memory; a schema is registered when it is first used to write.

    Raises:
        ConfigurationError: the job has problems; the message lists all of them.
    """

    def __init__(
        self, job: AnyJob, /, tasks: int = 1, sets: Sequence[str] = (), *, over: Harness | None = None, now: int | datetime | None = None, **sections: Any
    ) -> None:
        self._new_scratch()
        self.registry: MemoryRegistry = MemoryRegistry() if over is None else over.registry
        self._job = HarnessJob.of(job, sets, sections, self.registry)
        self.clock: ManualClock = clock_at(now, over)
        self.cluster: MemoryCluster = MemoryCluster(self.clock) if over is None else over.cluster
        self.log = MemoryLog(self.cluster)
        self._tasks = tasks
        self._incarnations = 0
        self._run = 1
        self._until_end = False
        self._container: Container | None = None
        self._after: list[Harness] = []
        self._specs = self._job.create_topics(self.log, tasks)

    def then(self, job: AnyJob, /, sets: Sequence[str] = (), **sections: Any) -> Harness:
        """Another job with the same Kafka and clock, which may read what this one sends. `run`, `crash`, `stop` and so on concern one job only. It is
        closed together with this one. Arguments and errors: as for the harness.

            second = h.then("totals.yaml")
            h.run()
            second.run()
            assert second.output("totals") == […]
        """
        other = Harness(job, self._tasks, sets, over=self, **sections)
        self._after.append(other)
        return other

    # -- records, stores, metrics -----------------------------------------------------------------------------------------------------------

    def send(
        self, topic: str, value: Any, key: Any = None, partition: int | None = None, timestamp: int | None = None, headers: Any = None,
        schema: str | None = None,
    ) -> None:
        """Send a record to an input topic, encoded by the input's serdes. Without a partition the key chooses it; without both it is 0. `timestamp`:
        milliseconds since 1970; by default the harness's clock. `schema`: with a Schema Registry, the schema file that wrote the value, if not the input's.

        Raises:
            ConfigurationError: no input has that name. SerdeError: the serdes cannot encode it. ValueError: a timestamp below 1.
        """
        spec = named("input", topic, {i.topic: i for i in self._job.settings.inputs})
        raw_key = None if key is None else self._job.writing(spec.key, topic, KEY).encode(key)
        raw = None if value is None else self._job.writing(PREFIX + schema if schema else spec.value, topic, VALUE).encode(value)
        self.send_raw(
            topic, raw, raw_key, 0 if partition is None and key is None else -1 if partition is None else partition, timestamp, headers
        )

    def send_raw(
        self, topic: str, value: bytes | None, key: bytes | None = None, partition: int = 0, timestamp: int | None = None, headers: Any = None
    ) -> None:
        """Send a record to any of the job's topics, as bytes that no serde encodes. Raises ConfigurationError and ValueError as `send`."""
        self._known(topic)
        if timestamp is not None and timestamp < 1:
            raise ValueError(f"timestamp {timestamp}: it must be milliseconds since 1970, 1 or more; leave it out for the clock's time")
        producer = self.log.plain_producer("harness")
        producer.send(topic, value, key, partition, timestamp or self.clock.now_ms(), headers)
        producer.flush()
        producer.close()

    def output(self, topic: str, partition: int | None = None) -> Records:
        """The committed records of an output topic as (key, value), decoded by its serdes: partition after partition, each in the order of offsets.

        Raises:
            ConfigurationError: no output has that name, or the topic has no such partition.
        """
        spec = named("output", topic, {o.topic: o for o in self._job.settings.outputs})
        key, value = self._job.serdes.of(spec.key, topic, KEY), self._job.serdes.of(spec.value, topic, VALUE)
        result = Records(topic)
        for message in self.records(topic, partition):
            raw_key, raw = message.key(), message.value()
            result.append((None if raw_key is None else key.decode(raw_key), None if raw is None else value.decode(raw)))
        return result

    def dead_letters(self) -> list[SeenDeadLetter]:
        """The committed dead letters (`on_error: {then: dead_letter}`): partition after partition, each in the order of offsets."""
        found = (read_letter(m.key(), m.value(), m.headers()) for m in self.records(self._job.topics.job.dead_letter_topic))
        return [seen_letter(letter, self._job) for letter in found if letter is not None]

    def records(self, topic: str, partition: int | None = None) -> list[Message]:
        """The committed records of any of the job's topics, not decoded, in the order of `output`. Raises as `output`."""
        count = self._known(topic)
        if partition is not None and not 0 <= partition < count:
            raise ConfigurationError(f"there is no partition {partition} of {topic}.", f"It has {count}, counted from 0.")
        found: list[Message] = []
        with self.log.restore_consumer("harness") as consumer:
            for number in range(count) if partition is None else (partition,):
                for batch in read_to_end(consumer, TopicPartition(topic, number), self.clock):
                    found.extend(batch)
        return found

    def store(self, name: str, task: int | None = None) -> dict[Any, Any]:
        """The committed entries of a store, read from its changelog and decoded: of one task (a number from 0), or of all.

        Raises:
            ConfigurationError: no store has that name, or there is no such task. ValueError: the store has no changelog, or keys that no dict can have.
        """
        named("store", name, self._job.settings.stores)
        topic = self._job.topics.changelogs.get(name)
        if topic is None:
            raise ValueError(f"store {name!r} has no changelog: nothing of it is committed")
        spec = self._job.settings.stores[name]
        key, value = self._job.serdes.of(spec.key, topic, KEY), self._job.serdes.of(spec.value, topic, VALUE)
        newest: dict[bytes, bytes | None] = {}
        oldest_ms = -1 if spec.ttl_ms is None else self.clock.now_ms() - spec.ttl_ms
        for message in self.records(topic, task):
            raw_key = message.key()
            if raw_key is not None and raw_key != BARRIER_KEY:
                newest[raw_key] = message.value() if message.timestamp()[1] > oldest_ms else None
        return as_dict(name, [(key.decode(k), value.decode(v)) for k, v in sorted(newest.items()) if v is not None])

    def checkpoint(self, task: int = 0) -> Checkpoint | None:
        """The newest committed checkpoint of a task (a number from 0); None before the first."""
        newest = [m.value() for m in self.records(self._job.topics.job.checkpoint_topic, task) if m.key() == CHECKPOINT_KEY]
        return checkpoint_from_bytes(newest[-1] or b"") if newest else None

    def metric(self, name: str, task: int | None = None) -> float:
        """A counter or gauge: of one task (a number from 0), or summed over all. It is one of the job's own, or samzapy's `processed`, `skipped` or
        `dead_letters`, which count records since the container started.

        Raises:
            ConfigurationError: no task has a metric of that name, or there is no such task.
        """
        tasks = {instance.name: instance for instance in self.container.tasks.values()}
        chosen = tasks.values() if task is None else [named("task", task_name(task), tasks)]
        numbers: dict[str, float] = {}
        for instance in chosen:
            seen, status = instance.metrics.snapshot(), instance.status({})
            own = {**seen["gauges"], **seen["counters"]}
            for each, value in {**{n: status[n] for n in BUILT_IN if n not in own}, **own}.items():
                numbers[each] = numbers.get(each, 0.0) + (float("nan") if value is None else float(str(value)))
        return named("metric", name, numbers)

    # -- time, crashes ---------------------------------------------------------------------------------------------------------------

    @ends_the_run
    def run(self, commit: bool = True) -> None:
        """Process every record, through all stages of a program, and commit. An error of the task is raised here as TaskError; the next `run()` begins
        at the record that failed, as a job does. With `commit=False` nothing is committed: only the task sees its changes; `crash()` loses them, and
        the next `run()` commits them."""
        container = self.container
        commits = -1
        while not container.finished:
            idle = 0
            while idle < TURNS_WITHOUT_PROGRESS and not container.finished:
                idle = 0 if container.step(0.0) else idle + 1
            self._warn_of_times(container)
            if not commit or container.finished:
                return
            is_committed = container.commit_or_roll_back()  # if not, the records are processed again
            if is_committed and (not self._job.topics.internal or commits == (commits := container.status()["commits"])):
                return  # else a following stage has something to read

    @ends_the_run
    def advance(self, time: float | str) -> None:
        """Advance the clock by seconds, or by a duration as in the job file ("10s", "7d"). On the way, `window` is called as often as a run would call
        it; at the end, commit if that is due.

        Raises:
            ValueError: `time` is no duration.
        """
        began, seconds, interval_s = self.clock.monotonic(), seconds_of(time), (self._job.settings.window_ms or 0) / 1000
        windows = math.ceil(seconds / interval_s) - 1 if interval_s else 0
        for passed_s in (*(number * interval_s for number in range(1, windows + 1)), seconds):
            ahead_s = began + passed_s - self.clock.monotonic()
            if ahead_s * 1000 >= self._job.settings.commit.timeout_ms:  # a job commits long before its transaction times out at the broker
                self.container.commit_or_roll_back()
            self.clock.advance(ahead_s)
            self.container.step(0.0)

    def crash(self, keep_state: bool = True) -> None:
        """Lose the process and everything uncommitted, as by SIGKILL; with `keep_state=False` the local stores too. The next `run()` starts it again."""
        if self._container is not None:
            self._container.close()
            self._container = None
        self._until_end = False
        if not keep_state:
            self._drop_scratch()
            self._new_scratch()

    def restart(self, job: AnyJob | None = None, /, sets: Sequence[str] = (), **sections: Any) -> None:
        """Stop as `samzapy stop` does, and start a new run of the same or of a changed job. `job`, `sets` and sections: as for the harness; without
        `job` they change the job as it is now. Raises ConfigurationError, StateMismatch or StateRefused as `samzapy run` does."""
        self.stop()
        self._run += 1
        if job is not None or sets or sections:
            self._job = HarnessJob.of(self._job.document if job is None else job, sets, sections, self.registry, self._job)
            self._specs = self._job.create_topics(self.log, self._tasks)
        self._container = self._start()

    def stop(self) -> None:
        """Stop as `samzapy stop` does: final commit, `close()`."""
        if self._container is not None:
            self._container.stop()
            self._container.close()
            self._container = None
        self._until_end = False

    def end(self) -> None:
        """Do a bounded run, as `samzapy run --until-end`: up to the inputs' current ends, with `end_of_stream`, the final commit and `close()`."""
        self.stop()
        self._run += 1
        self._until_end = True
        container = self._container = self._start()
        while not container.finished:
            if not container.step(0.0):
                self.clock.advance(0.01)
        self._warn_of_times(container)
        self._run += 1  # the tasks of this run have ended: what follows is a new run

    @property
    def container(self) -> Container:
        """The running container; the first access starts it."""
        if self._container is None:
            self._container = self._start()
        return self._container

    def __enter__(self) -> Harness:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for other in self._after:
            other.__exit__(kind, error, trace)
        self.crash()
        self._drop_scratch()

    # -- inside ------------------------------------------------------------------------------------------------------------------------

    def _new_scratch(self) -> None:
        """A directory for local stores; deleted with the harness, even if that is never closed."""
        self._scratch = Path(tempfile.mkdtemp(prefix="samzapy-harness-"))
        self._drop_scratch = weakref.finalize(self, shutil.rmtree, self._scratch, ignore_errors=True)

    def _known(self, topic: str) -> int:
        """How many partitions a topic of the job has.

        Raises:
            ConfigurationError: the job has no such topic.
        """
        with self.log.admin() as admin:
            there = admin.topics(self._specs)
        return named("topic", topic, {name: facts.partitions for name, facts in there.items()})

    def _start(self) -> Container:
        self._incarnations += 1
        incarnation, run_id = f"incarnation-{self._incarnations}", f"run-{self._run}"
        admin = self.log.admin()
        topics = admin.topics(self._job.topics.all)
        model = self._job.topics.tasks({topic: facts.partitions for topic, facts in admin.topics(self._job.topics.decide_tasks).items()})
        self._name_owner(incarnation, run_id, tuple(model))
        self._job.serdes.ready(register=True)
        where = Location(CONTAINER, LOCALHOST, self._scratch, "memory")
        spec = container_spec(self._job.settings, model, topics, where, self._job.user, self._job.serdes, self.clock)
        ends = self._ends() if self._until_end else None
        container = Container(spec, incarnation, run_id, ends, self.log, self.clock)
        container.start()
        return container

    def _name_owner(self, incarnation: str, run_id: str, tasks: tuple[str, ...]) -> None:
        """Name the container's new incarnation in the coordinator topic, as the coordinator does."""
        job = self._job.topics.job
        producer = self.log.transactional_producer(job.coordinator_transactional_id)
        producer.init()
        producer.begin()
        record = ContainerRecord(CONTAINER, self._incarnations, incarnation, tasks, run_id, LOCALHOST, os.getpid())
        producer.send(job.coordinator_topic, record.to_bytes(), container_key(CONTAINER), 0)
        producer.flush()
        producer.commit()
        producer.close()

    def _ends(self) -> dict[str, int]:
        with self.log.admin() as admin, self.log.restore_consumer("ends") as consumer:
            counts = admin.topics([i.topic for i in self._job.settings.inputs])
            partitions = [TopicPartition(t.name, p) for t in counts.values() for p in range(t.partitions)]
            return {str(p): consumer.bounds(p).end for p in partitions}
