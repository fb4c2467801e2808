"""`samzapy lag`: how far behind a job is, running or not, in the columns of Kafka's own tool for groups.

Of a running job the positions come from its coordinator, of a stopped one from the checkpoints: what the next start would read from. The
ends are asked of the brokers now. A broadcast partition shows the task that is furthest behind in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from samzapy.api.errors import TopicMissing
from samzapy.cli.common import AsJson, JobFile, MoreFiles, Sets, print_json, say
from samzapy.cli.job import Job
from samzapy.cli.tables import print_table
from samzapy.model.commands_told import find_program
from samzapy.model.job_model import TaskModel
from samzapy.model.offsets import TopicPartition
from samzapy.ops.inspection import job_in_kafka, read_checkpoints
from samzapy.ops.prepare_topics import made_by_hand
from samzapy.plan.checkpoint_orders import pending, standing
from samzapy.plan.lag import has_read_checkpoint, partition_lags
from samzapy.ports import Log, no_leader

HEADER = ("GROUP", "TOPIC", "PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG", "CONSUMER-ID", "HOST", "CLIENT-ID")
SPARE = ("CLIENT-ID", "CONSUMER-ID", "HOST", "GROUP")  # where the terminal is narrow
Positions = dict[str, dict[TopicPartition, int]]


@dataclass(frozen=True, slots=True)
class _Reader:
    """Where a task runs, as the columns show it."""

    consumer_id: str | None = None
    host: str | None = None
    client_id: str | None = None


def lag(file: JobFile, more: MoreFiles = None, sets: Sets = None, as_json: AsJson = False) -> None:
    """The lag of the job in each input partition, whether it runs or not."""
    with Job(file, more, sets) as job:
        tasks = job_in_kafka(job.settings, job.log).tasks
        if not tasks:
            _refuse(job)
        starting = job.starting()
        status = job.status()
        silent = job.silent() if status is None and starting is None else ""
        at = committed(job)
        if status is not None:
            at = {name: {**at.get(name, {}), **found} for name, found in reported(tasks, status).items()}
        ends, leaderless = ends_of(job.log, tasks)
        found = partition_lags(tasks, at, ends)
        uncommitted = held_back(job.log, {p: end for p, end in ends.items() if p.topic in {i.topic for i in job.settings.inputs}})
    readers = {} if status is None else _readers(status)
    if status is None:
        how = f"is starting ({starting})" if starting else f"runs, but does not answer ({silent})" if silent else "is not running"
        say(f"job {job.names} {how}{'' if at else ', and has no checkpoint yet'}")
    if leaderless:
        problem = no_leader(leaderless)
        say(f"warning: {problem.message}\n  {problem.remedy}")
    group = job.names.group_id
    rows: list[tuple[object, ...]] = []
    for one in found:
        reader = readers.get(one.task, _Reader())
        rows.append(
            (
                group,
                one.topic_partition.topic,
                one.topic_partition.partition,
                one.next_offset,
                one.end,
                one.lag,
                reader.consumer_id,
                reader.host,
                reader.client_id,
            )
        )
    if as_json:
        names = [h.lower().replace("-", "_") for h in HEADER]
        for one, row in zip(found, rows, strict=True):
            print_json({**dict(zip(names, row, strict=True)), "task": one.task, "uncommitted": uncommitted.get(one.topic_partition, 0)})
    else:
        print_table(HEADER, rows, SPARE)
        if uncommitted:
            say(_told(uncommitted))


def committed(job: Job) -> Positions:
    """By task, the offsets of its next start: from its checkpoint, or from a `checkpoint set` that waits for it."""
    around = job_in_kafka(job.settings, job.log)
    checkpoints = {c.task: c for c in read_checkpoints(job.settings, around.topics, job.log, job.clock).values()}
    orders = job.ledger().startpoints
    result: Positions = {}
    for name, task in around.tasks.items():
        order = pending(orders.get(name), checkpoints.get(name))
        known = {partition: standing(partition, checkpoints.get(name), order) for partition in task.inputs}
        if any(offset is not None for offset in known.values()):
            result[name] = {partition: offset for partition, offset in known.items() if offset is not None}
    return result


def reported(tasks: Mapping[str, TaskModel], status: Mapping[str, Any]) -> Positions:
    """By task, where it stands by the status of the running job; without tasks that have not read their checkpoints yet."""
    told = {t["name"]: t["positions"] for t in status["tasks"] if has_read_checkpoint(t)}
    return {name: {p: int(told[name][str(p)]) for p in task.inputs if str(p) in told.get(name, {})} for name, task in tasks.items()}


def _readers(status: Mapping[str, Any]) -> dict[str, _Reader]:
    containers = {c["id"]: c for c in status["containers"]}
    found = {}
    for task in status["tasks"]:
        container = containers.get(task["container"])
        if container is not None and container["pid"]:
            client = f"container-{container['id']}"
            found[task["name"]] = _Reader(f"{client}-{container['pid']}", container["host"], client)
    return found


def ends_of(log: Log, tasks: Mapping[str, TaskModel]) -> tuple[dict[TopicPartition, int], set[TopicPartition]]:
    """Where the inputs end, and those of them that no broker leads."""
    with log.admin() as admin:
        wanted = {p for task in tasks.values() for p in task.inputs}
        ends = admin.ends(wanted)
        unknown = wanted - ends.keys()
        return ends, admin.leaderless({p.topic for p in unknown}) & unknown


def held_back(log: Log, ends: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
    """By partition, how many offsets come after its read_committed end, which is the start of the oldest open transaction, if there are any."""
    with log.admin() as admin:
        written = admin.high_watermarks(ends)
        ahead = [p for p, end in ends.items() if written[p] > end]
        now = admin.ends(ahead)  # asked after what was written: a transaction that has ended meanwhile is none
    return {p: written[p] - now[p] for p in ahead if p in now and written[p] > now[p]}


def _told(uncommitted: Mapping[TopicPartition, int]) -> str:
    first = min(uncommitted)
    others = f" and {len(uncommitted) - 1} more" if len(uncommitted) > 1 else ""
    return (
        f"note: {first}{others}: a producer has an open transaction there. What it wrote, and what others wrote after that ({sum(uncommitted.values()):,} "
        f"offsets), is read when the transaction ends, and counts as lag only then.\n  If it stays open, find the program: "
        f"{find_program(first.topic, first.partition)}"
    )


def _refuse(job: Job) -> None:
    with job.log.admin() as admin:
        inputs = [i.topic for i in job.settings.inputs]
        there = admin.topics(inputs)
    missing = [topic for topic in inputs if topic not in there]
    topics = ", no ".join(f"input topic {topic}" for topic in missing)
    raise TopicMissing(f"there is no {topics}.", f"Create it first: {made_by_hand(job.settings, *missing)}")
