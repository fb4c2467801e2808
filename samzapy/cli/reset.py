"""`samzapy reset`: forget what a stopped job knows. Inputs and outputs are never touched."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Annotated

import typer

from samzapy.api.errors import ConfigurationError, StateRefused
from samzapy.cli.common import AsJson, JobFile, MoreFiles, Sets, print_json, say
from samzapy.cli.job import Job
from samzapy.cli.undeletable import refuse_undeletable
from samzapy.clock import SystemClock
from samzapy.config.schema import Settings
from samzapy.model.checkpoint import Checkpoint
from samzapy.model.ownership import startpoint_key
from samzapy.ops.inspection import owned_by_another, read_checkpoints
from samzapy.ops.letters_again import Newest, begin_of_reset, from_start, newest_letters, sent_again, warnings
from samzapy.ops.other_jobs import owned_by_others
from samzapy.ops.prepare_topics import changelogs
from samzapy.plan.checkpoint_orders import pending
from samzapy.ports import Admin, Log
from samzapy.wiring.job_topics import JobTopics
from samzapy.wiring.local_state import refuse_unremovable, remove_local_state

LOOK_S = 0.5


def reset(
    file: JobFile,
    more: MoreFiles = None,
    sets: Sets = None,
    coordinator: Annotated[
        bool, typer.Option("--coordinator", help="Delete only the coordinator topic (which container runs which tasks); keep state and checkpoints.")
    ] = False,
    drop_orders: Annotated[
        bool, typer.Option("--drop-orders", help="With --coordinator: delete it even if that loses a `checkpoint set` that waits in it for the next start.")
    ] = False,
    execute: Annotated[bool, typer.Option("--execute", help="Do it. Without this option the command only shows what it would do.")] = False,
    as_json: AsJson = False,
) -> None:
    """Delete all state and checkpoints of a stopped job: the next run reads each input from its `start`.

    That is the oldest record, or with `start: latest` only new ones. Dead letters, inputs and outputs stay."""
    if drop_orders and not coordinator:
        raise ConfigurationError("--drop-orders is an option of --coordinator.", "Leave it out: without --coordinator a waiting `checkpoint set` is lost anyway.")
    job = Job(file, more, sets)
    settings = job.settings
    with job:
        job.refuse_running(lambda: url_of_a_run(job))
        if coordinator:
            refuse_to_lose_orders(job, drop_orders, execute)
        else:
            refuse_unremovable(job.local_state(), settings.state.dir)
        with job.log.admin() as admin:
            letters = Newest() if coordinator else newest_letters(settings, job.log, job.clock)
            for warning in warnings(letters, begin_of_reset(settings, letters, job.log), sent_again(settings, bool(from_start(settings)))):
                say(warning)
            checkpoints = {} if coordinator else _checkpoints(settings, job.log, admin)
            foreign = {} if coordinator else foreign_topics(settings, job.log, admin, checkpoints)
            own = [topic for topic in [*changelogs(settings), *JobTopics.of(settings).internal] if topic not in foreign]
            forgotten = [] if coordinator else [*own, job.names.checkpoint_topic]
            for topic, store in of_removed_stores(settings, admin, checkpoints).items():
                say(f"topic {topic} stays: it is the changelog of store {store!r}, which the job file does not name any more")
                say(f"to delete it too, run `samzapy state drop {file} {store} --execute` before the reset")
            for topic, why in foreign.items():
                say(f"topic {topic} stays: {why}")
            topics = sorted(admin.topics([*forgotten, job.names.coordinator_topic]))
            folder = job.local_state()
            had_folder = folder.exists()
            refuse_undeletable(topics, "this reset", job.log, execute)
            for topic in topics:
                say(f"{'deleting' if execute else 'would delete'} topic {topic}")
            if folder.exists() and not coordinator:
                say(f"{'deleting' if execute else 'would delete'} {folder}")
            if execute:
                admin.delete(topics)
            if execute and not coordinator:
                remove_local_state(folder, settings.state.dir)
    if as_json:
        deleted = [("topic", topic) for topic in topics] + ([("directory", str(folder))] if had_folder and not coordinator else [])
        for kind, name in deleted:
            print_json({"kind": kind, "name": name, "deleted": execute})
    if not execute:
        say("nothing was changed; do it with --execute")


def _checkpoints(settings: Settings, log: Log, admin: Admin) -> dict[int, Checkpoint]:
    """The newest of each task; none if one cannot be read: that one vouches for nothing, and may be what the reset is for."""
    with suppress(StateRefused):
        return read_checkpoints(settings, admin.topics([JobTopics.of(settings).job.checkpoint_topic]), log, SystemClock())
    return {}


def of_removed_stores(settings: Settings, admin: Admin, checkpoints: Mapping[int, Checkpoint]) -> dict[str, str]:
    """The changelogs that checkpoints name and the job file does not: their stores, by topic."""
    marked = {mark.topic: store for checkpoint in checkpoints.values() for store, mark in checkpoint.stores.items()}
    left = sorted(marked.keys() - set(JobTopics.of(settings).changelogs.values()))
    present = admin.topics(left)
    return {topic: marked[topic] for topic in left if topic in present}


def foreign_topics(settings: Settings, log: Log, admin: Admin, checkpoints: Mapping[int, Checkpoint]) -> dict[str, str]:
    """The changelogs that the job file names and that are not this job's, and the topics that are another job's internal topics: why, by topic."""
    clock = SystemClock()
    logs = {topic: store for store, topic in JobTopics.of(settings).changelogs.items()}
    there = admin.topics([*logs])
    found = {t: owned_by_another(settings, s, there[t], checkpoints, log, clock, unmarked=True) for t, s in logs.items() if t in there}
    shared = {topic: f"it is {owner}" for topic, owner in owned_by_others(settings, log, admin, clock).items()}
    return shared | {topic: why for topic, why in found.items() if why is not None}


def refuse_to_lose_orders(job: Job, drop: bool, execute: bool) -> None:
    """Say which `checkpoint set` is lost with the coordinator topic, because no start has carried it out yet.

    Raises:
        ConfigurationError: there is one, and it was not said that it may be lost.
    """
    ledger, checkpoints = job.ledger(), {}
    with suppress(StateRefused), job.log.admin() as admin:  # without checkpoints that can be read, every order counts as waiting
        there = admin.topics([job.names.checkpoint_topic])
        checkpoints = {c.task: c for c in read_checkpoints(job.settings, there, job.log, job.clock).values()}
    waiting = [order for task, order in ledger.startpoints.items() if pending(order, checkpoints.get(task)) is not None]
    for key in ledger.unreadable:
        if key.startswith(startpoint_key("")):
            say(f"{key.decode('utf-8', 'replace')}: this order of `checkpoint set` cannot be read; it is lost with the topic")
    if not waiting:
        return
    offsets = ", ".join(f"{partition} at {offset}" for order in waiting for partition, offset in sorted(order.offsets.items()))
    what = f"{job.names.coordinator_topic} holds a `checkpoint set` that no start has carried out yet ({offsets})"
    again = "the same `checkpoint set` again, with --reset-state if it had that: then it has emptied the changelogs already."
    if drop:
        say(f"{what}; it {'is' if execute else 'would be'} lost with the topic. Before the next run, give {again}")
        return
    if execute:
        raise ConfigurationError(
            f"{what}; it would be lost with the topic.",
            f"Start the job first: that carries it out. If the job cannot start: add --drop-orders; after the reset, give {again}",
        )
    say(f"{what}; it would be lost with the topic, so --execute also needs --drop-orders. After the reset, give {again}")


def url_of_a_run(job: Job) -> str | None:
    """Where a run answers, or None. One that is alive renews its lease, so a lease that cannot be read is looked at until it would be over."""
    deadline: float | None = None
    lease_s = job.settings.containers.lease_ms / 1000
    while deadline is None or time.monotonic() < deadline:
        try:
            return job.url()
        except StateRefused as error:
            if deadline is None:
                deadline = time.monotonic() + lease_s
                say(f"{error.message} Waiting {lease_s:.0f} s to see whether a run renews its lease.")
        time.sleep(LOOK_S)
    say("it was not renewed: no run is alive")
    return None
