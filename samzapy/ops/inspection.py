"""Reads a job's committed state from outside: its tasks, checkpoints and changelogs. Writes nothing to Kafka.

Readers that may not write have no barrier: they read to the read_committed end as it was when they began. What a checkpoint names is there
by then, or the state is refused as a run would refuse it: a job that runs never shortens or replaces its changelogs, whatever it commits
meanwhile. So the checkpoints are read first, then what the changelogs are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

from samzapy.api.errors import ConfigurationError, StateMismatch, StateRefused
from samzapy.config.schema import Settings
from samzapy.model.barrier import BARRIER_KEY, barrier_from_bytes
from samzapy.model.checkpoint import Checkpoint
from samzapy.model.job_model import TaskModel
from samzapy.model.offsets import Bounds, TopicPartition
from samzapy.model.ownership import Ledger
from samzapy.plan.checkpoint_orders import pending
from samzapy.plan.local_store import ChangelogFacts, not_whole
from samzapy.plan.start_refusals import Refuse, replaced
from samzapy.plan.state_compatibility import other_inputs, refusal
from samzapy.ports import Clock, Consumer, Log, TopicFacts
from samzapy.readers import decided_bounds, newest_checkpoints, read_ranges
from samzapy.wiring.fingerprint import fingerprint, serde_subjects
from samzapy.wiring.job_topics import JobTopics, job_of
from samzapy.wiring.serdes import Serdes


@dataclass(frozen=True, slots=True)
class JobInKafka:
    """The job in Kafka: its cluster, topics, tasks."""

    cluster_id: str
    topics: dict[str, TopicFacts]
    tasks: dict[str, TaskModel]


def job_in_kafka(settings: Settings, log: Log) -> JobInKafka:
    """The job's topics that exist, and its tasks (none while an input is missing).

    Raises:
        ClusterUnreachable: no broker answered.
    """
    names = JobTopics.of(settings)
    with log.admin() as admin:
        cluster_id = admin.cluster_id()
        topics = admin.topics([*names.all, names.job.checkpoint_topic, names.job.coordinator_topic])
    tasks: dict[str, TaskModel] = {}
    if set(names.inputs) <= set(topics):
        tasks = names.tasks({topic: facts.partitions for topic, facts in topics.items()})
    return JobInKafka(cluster_id, topics, tasks)


def read_checkpoints(settings: Settings, topics: Mapping[str, TopicFacts], log: Log, clock: Clock) -> dict[int, Checkpoint]:
    """The newest checkpoint of each task, by the task's partition. `topics`: those that exist.

    Raises:
        StateRefused: one cannot be read.
    """
    topic = job_of(settings).checkpoint_topic
    facts = topics.get(topic)
    if facts is None:
        return {}
    partitions = [TopicPartition(topic, p) for p in range(facts.partitions)]
    with log.restore_consumer("checkpoints") as consumer:
        newest = newest_checkpoints(consumer, partitions, clock)
    return {partition.partition: checkpoint for partition in partitions if (checkpoint := newest.of(partition)) is not None}


def changelog_of(settings: Settings, store: str) -> str:
    """The changelog topic of a store.

    Raises:
        ConfigurationError: no such store, or it has no changelog.
    """
    if store not in settings.stores:
        raise ConfigurationError(f"there is no store {store!r}.", f"The job file has: {', '.join(sorted(settings.stores)) or 'no stores'}.")
    topic = JobTopics.of(settings).changelogs.get(store)
    if topic is None:
        raise ConfigurationError(
            f"store {store!r} has `changelog: false`: none of it is committed.", "Only stores with a changelog can be read."
        )
    return topic


def _fold_behind_the_cleaner(
    consumer: Consumer, partition: TopicPartition, bounds: Bounds, clock: Clock, begun: float, lag_s: float, ttl_ms: int | None
) -> dict[bytes, bytes]:
    """As `fold_partition`, for a job that may be running: compaction may remove a record before it is read, if its key was written again after the
    end that was fixed at `begun`. So records written since are read too, unless the topic keeps records for as long as this took."""
    newest: dict[bytes, bytes] = {}
    while True:
        fold_partition(consumer, partition, bounds, clock, newest, ttl_ms)
        now, end = clock.monotonic(), consumer.bounds(partition).end
        if end <= bounds.end or now - begun < lag_s:
            return newest
        bounds, begun = Bounds(bounds.end, end), now


def fold_partition(
    consumer: Consumer, partition: TopicPartition, bounds: Bounds, clock: Clock, newest: dict[bytes, bytes] | None = None, ttl_ms: int | None = None
) -> dict[bytes, bytes]:
    """Newest value per key of [start, end) of one changelog partition, on top of `newest`; keys that were deleted, or put `ttl_ms` ago, are absent."""
    newest = {} if newest is None else newest
    oldest_ms = -1 if ttl_ms is None else clock.now_ms() - ttl_ms
    for batch in read_ranges(consumer, {partition: (bounds.start, bounds.end)}, clock):
        for message in batch:
            key, value = message.key(), message.value()
            if key is None or key == BARRIER_KEY:
                continue
            if value is None or message.timestamp()[1] <= oldest_ms:
                newest.pop(key, None)
            else:
                newest[key] = value
    return newest


def committed_entries(settings: Settings, store: str, log: Log, clock: Clock) -> Iterator[tuple[int, bytes, bytes]]:
    """(partition, key, value) of a store as committed, keys and values as bytes, one changelog partition after another; within each in no
    particular order. The partition is that of the task whose entry it is.

    Raises:
        StateRefused: what the checkpoints name cannot be told from what the changelog holds. Raised before the first entry.
    """
    topic, checkpoint_topic = changelog_of(settings, store), job_of(settings).checkpoint_topic
    with log.admin() as admin:
        checkpoints = read_checkpoints(settings, admin.topics([checkpoint_topic]), log, clock)
        facts = admin.topics([topic]).get(topic)  # asked for later: it was there before a checkpoint named it
    refuse_replaced(topic, store, facts, checkpoints)
    refuse_other_serdes(settings, store, checkpoints.values())
    if facts is None:
        return
    refuse_foreign(settings, store, facts, checkpoints, log, clock)
    with log.restore_consumer("state") as consumer:
        begun, lag_s = clock.monotonic(), int(facts.config.get("min.compaction.lag.ms", 0)) / 1000
        partitions = [TopicPartition(topic, partition) for partition in range(facts.partitions)]
        whole = {
            topic_partition: _whole_bounds(consumer, topic_partition, facts, store, checkpoints.get(topic_partition.partition), clock)
            for topic_partition in partitions
        }
        ttl_ms = settings.stores[store].ttl_ms
        for topic_partition, bounds in whole.items():
            for key, value in _fold_behind_the_cleaner(consumer, topic_partition, bounds, clock, begun, lag_s, ttl_ms).items():
                yield topic_partition.partition, key, value


def refuse_replaced(topic: str, store: str, facts: TopicFacts | None, checkpoints: Mapping[int, Checkpoint]) -> None:
    """Check that the changelog is the one that the checkpoints name.

    Raises:
        StateRefused: it is another, or there is none.
    """
    for partition, checkpoint in sorted(checkpoints.items()):
        mark = checkpoint.stores.get(store)
        if mark is not None:
            refuse(store, checkpoint.task, replaced(topic, partition, facts.topic_id if facts else "", mark))


def refuse_other_serdes(settings: Settings, store: str, checkpoints: Iterable[Checkpoint]) -> None:
    """Check that the store's serdes are those that wrote it, as a run does: others may read its bytes as something else.

    Raises:
        StateMismatch: they are others.
    """
    now = serde_subjects(store, settings.stores[store])
    for checkpoint in checkpoints:
        was = {subject: how for subject, how in checkpoint.fingerprint.items() if subject in now}
        refused = refusal(replace(checkpoint, fingerprint=was, stores={}), now, {})
        if refused is not None:
            raise StateMismatch(f"{checkpoint.task}: {refused.reason}", refused.remedy)


def refuse_foreign(
    settings: Settings, store: str, facts: TopicFacts, checkpoints: Mapping[int, Checkpoint], log: Log, clock: Clock, unmarked: bool = False
) -> None:
    """Check that the changelog is this store's, as a run does. `unmarked`: as of `owned_by_another`.

    Raises:
        StateRefused: it is another's.
    """
    why = owned_by_another(settings, store, facts, checkpoints, log, clock, unmarked)
    if why is not None:
        raise StateRefused(f"{why}: not the changelog of store {store!r} of {job_of(settings)}.", f"Give store {store!r} its own changelog topic.")


def foreign_changelog(settings: Settings, log: Log, clock: Clock) -> StateRefused | None:
    """Why a run would refuse a changelog of the job: it is another job's, or another store's; None: none is."""
    names = JobTopics.of(settings)
    stores = {topic: store for store, topic in names.changelogs.items()}
    with log.admin() as admin:
        there = admin.topics([*stores, names.job.checkpoint_topic])
    try:
        checkpoints = read_checkpoints(settings, there, log, clock)
        for topic in stores.keys() & there.keys():
            refuse_foreign(settings, stores[topic], there[topic], checkpoints, log, clock)
    except StateRefused as error:
        return error
    return None


def readable_checkpoints(settings: Settings, facts: JobInKafka, log: Log, clock: Clock) -> list[Checkpoint]:
    """The newest checkpoint of each task; none if one cannot be read: that is told by what reads the changelogs."""
    try:
        return list(read_checkpoints(settings, facts.topics, log, clock).values())
    except StateRefused:
        return []


def other_program(
    settings: Settings, serdes: Serdes, operators: Mapping[str, str], facts: JobInKafka, checkpoints: Iterable[Checkpoint],
    ledger: Ledger | None = None,
) -> StateMismatch | None:
    """Why the tasks of a run would refuse to go on from their checkpoints, because of the program or the job's inputs; None: they would not.
    `operators`: what the job's program says of itself; `ledger`: without it, inputs are not compared, because an order may say where to go on.

    Raises:
        ConfigurationError: the class of a store's keys cannot be used.
    """
    between = {topic: facts.topics[topic].partitions for topic in JobTopics.of(settings).internal if topic in facts.topics}
    now = fingerprint(settings, facts.tasks, between, serdes, operators)
    logged = {name: store.changelog is not False for name, store in settings.stores.items()}
    for checkpoint in checkpoints:
        refused = refusal(checkpoint, now, logged)
        if refused is None and ledger is not None and checkpoint.task in facts.tasks and pending(ledger.startpoints.get(checkpoint.task), checkpoint) is None:
            own = {p.topic for p in facts.tasks[checkpoint.task].inputs}
            others = other_inputs(checkpoint, JobTopics.of(settings).inputs, own)
            refused = others if isinstance(others, Refuse) else None
        if refused is not None:
            return StateMismatch(f"{checkpoint.task}: {refused.reason}", refused.remedy)
    return None


def owned_by_another(
    settings: Settings, store: str, facts: TopicFacts, checkpoints: Mapping[int, Checkpoint], log: Log, clock: Clock, unmarked: bool = False
) -> str | None:
    """Whose a changelog is, in words; None: this store's, or nobody's. A checkpoint of this job that names the topic vouches for its
    partition; of every other partition the newest barrier says it.

    Args:
        unmarked: whether a topic that has records, and nowhere a mark of this job, is another's too.
    """
    job, named = job_of(settings), {p for p, c in checkpoints.items() if any(m.topic_id == facts.topic_id for m in c.stores.values())}
    barriers: dict[TopicPartition, bytes | None] = {}
    with log.restore_consumer("owner") as consumer:
        bounds = consumer.bounds_of(TopicPartition(facts.name, p) for p in range(facts.partitions) if p not in named)
        for batch in read_ranges(consumer, {partition: (b.start, b.end) for partition, b in bounds.items()}, clock):
            for message in batch:
                partition = TopicPartition(message.topic(), message.partition())
                if message.key() == BARRIER_KEY:
                    barriers[partition] = message.value()
                else:
                    barriers.setdefault(partition, None)
    ours = bool(named)
    for partition, data in sorted(barriers.items()):
        with suppress(ValueError):  # one that cannot be read names nobody
            found = barrier_from_bytes(data)
            if (found.job, found.id, found.store) != (job.name, job.id, store):
                return f"{partition} belongs to store {found.store!r} of {found.job}-{found.id}, {found.task}"
            ours = True
    if unmarked and barriers and not ours:
        return f"{min(barriers)} has records, but no sign of job {job}"
    return None


def refuse(store: str, task: str, why: Refuse | None) -> None:
    """Raise the error that a run would raise.

    Raises:
        StateRefused: there is a reason.
    """
    if why is not None:
        raise StateRefused(f"store {store!r} of {task}: {why.reason}", why.remedy)


def _whole_bounds(
    consumer: Consumer, partition: TopicPartition, facts: TopicFacts, store: str, checkpoint: Checkpoint | None, clock: Clock
) -> Bounds:
    mark = checkpoint.stores.get(store) if checkpoint else None
    if checkpoint is None or mark is None:
        return consumer.bounds(partition)
    bounds = decided_bounds(consumer, partition, clock, mark.position)
    refuse(store, checkpoint.task, not_whole(ChangelogFacts(partition.topic, partition.partition, facts.topic_id, *bounds, 0), mark))
    return bounds
