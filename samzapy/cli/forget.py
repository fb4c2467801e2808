"""`samzapy state drop` and `samzapy checkpoint forget`: what a stopped job no longer has is taken out of its checkpoints, on purpose."""

from __future__ import annotations

from typing import Annotated

import typer

from samzapy.api.errors import ConfigurationError, TopicMissing
from samzapy.cli.common import AsJson, JobFile, MoreFiles, Sets, print_json, say
from samzapy.cli.inspect import last_run
from samzapy.cli.job import Job
from samzapy.cli.this_process import this_process
from samzapy.cli.undeletable import refuse_undeletable
from samzapy.config.fields import MAX_STORE_NAME, STORE_NAME
from samzapy.config.schema import Settings
from samzapy.coordinator.forgetting import Forgetting, Forgotten
from samzapy.ops.letters_again import begin_of_topics, newest_letters, warnings
from samzapy.streams.graph import TableSource
from samzapy.wiring.coordinator import coordinator_settings
from samzapy.wiring.job_topics import JobTopics
from samzapy.wiring.local_state import refuse_unremovable, remove_local_state
from samzapy.wiring.program import graph_of

Execute = Annotated[bool, typer.Option("--execute", help="Do it. Without this option the command only shows what it would do.")]


def drop(
    file: JobFile,
    store: Annotated[str, typer.Argument(metavar="STORE", help="The store's name in the checkpoint.", show_default=False)],
    execute: Execute = False,
    more: MoreFiles = None,
    sets: Sets = None,
    as_json: AsJson = False,
) -> None:
    """Delete a store of a stopped job: its changelog, its local stores, and its entries in checkpoints. Input offsets stay unchanged.

    A store that the job still has is refused, unless it is an `app.table`: the next run fills that from its topic.
    """
    if not STORE_NAME.fullmatch(store) or len(store) > MAX_STORE_NAME:
        raise ConfigurationError(f"{store!r} cannot be a store's name.", "`samzapy checkpoint show JOB.yaml` lists the stores.")
    job = Job(file, more, sets)
    mine = job.settings.stores.get(store)
    if mine is not None and mine.changelog is not False and not _is_table(job, store):  # else the state in Kafka is of what it was before
        empty = "To empty the job's stores and fill them again, use `samzapy checkpoint set JOB.yaml --to-earliest --reset-state`"
        if job.settings.app is not None:
            raise ConfigurationError(
                f"store {store!r} is in the program {job.settings.app}.", f"{empty}; to drop this one, remove the operator of this name from the program first."
            )
        raise ConfigurationError(
            f"store {store!r} is in the job file.", f"{empty}; to drop this one, remove it from `stores:` first, or set its `changelog: false`."
        )
    with job:
        refuse_unremovable(job.local_state(), job.settings.state.dir)
        used = _other_changelogs(job.settings, store)
        found = _forgetting(job).store(store, used, execute=False)
        refuse_undeletable([*found.topics, *found.left_over], "dropping this store", job.log, execute)
        if execute:
            found = _forgetting(job).store(store, used, execute=True)
        if not found.before and not found.left_over:
            raise ConfigurationError(f"no checkpoint of this job names a store {store!r}.", "`samzapy checkpoint show JOB.yaml` lists the stores.")
        _say_tasks(found, f"store {store}", execute)
        for topic in found.topics:
            say(f"{'deleted' if execute else 'would delete'} topic {topic}")
        for topic in found.left_over:
            say(f"{'deleted' if execute else 'would delete'} topic {topic}, which no checkpoint names: an earlier drop did not finish")
        for topic in found.replaced:
            say(f"topic {topic} stays: it was deleted and created again after the checkpoints were written, so it is not the changelog that they mean")
        removed = _remove_local(job, store, execute)
    _say_whether(execute)
    if as_json:
        print_json(
            {
                "store": store, "executed": execute, "tasks": [c.task for c in found.before.values()], "topics": [*found.topics, *found.left_over],
                "topics_kept": list(found.replaced), "folders": removed,
            }
        )  # fmt: skip


def forget(
    file: JobFile,
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="A topic that is not an input of the job any more.", show_default=False)],
    execute: Execute = False,
    more: MoreFiles = None,
    sets: Sets = None,
    as_json: AsJson = False,
) -> None:
    """Forget a stopped job's offsets in a topic that is no longer an input: if the topic is added again, it starts as a new input."""
    job = Job(file, more, sets)
    names = JobTopics.of(job.settings)
    if topic in names.internal:
        raise ConfigurationError(
            f"{topic} is between two stages of the program {job.settings.app}.",
            "To give up what waits in it and in all stores, and read the inputs again, use `samzapy checkpoint set JOB.yaml --to-earliest --reset-state`; to "
            "forget it, remove the operator that writes it from the program first.",
        )
    if topic in names.inputs:
        first = "remove it from `inputs:` first" if job.settings.app is None else f"take its stream out of the program {job.settings.app} first"
        raise ConfigurationError(
            f"{topic} is an input of the job.",
            f"To change its offset, use `samzapy checkpoint set JOB.yaml --topic {topic} --to-earliest --keep-state`, for example; to forget it, {first}.",
        )
    with job:
        found = _forgetting(job).input(topic, execute)
        if not found.before and not found.orders:
            raise ConfigurationError(f"no checkpoint of this job names topic {topic}.", "`samzapy checkpoint show JOB.yaml` lists what they name.")
        _say_tasks(found, f"input {topic}", execute)
        letters = newest_letters(job.settings, job.log, job.clock)
        for warning in warnings(letters, begin_of_topics({topic}, letters, job.log)):
            say(f"if {topic} is added again, and read from its start: {warning}")
    _say_whether(execute)
    if as_json:
        print_json({"topic": topic, "executed": execute, "tasks": [c.task for c in found.before.values()]})


def _is_table(job: Job, store: str) -> bool:
    """Whether the program reads a topic as this table: the next run fills it again, from the topic's start."""
    if job.settings.app is None:
        return False
    return any(isinstance(node, TableSource) and node.name == store for node in graph_of(job.settings, job.loaded.folders)[0])


def _other_changelogs(settings: Settings, store: str) -> list[str]:
    """Those of the job's other stores. That of this one, which is a table of the program then, may be left over from a drop that did not finish."""
    return [topic for name, topic in JobTopics.of(settings).changelogs.items() if name != store]


def _forgetting(job: Job) -> Forgetting:
    job.refuse_running()
    if job.ledger().lease is None:
        what = f"job {job.settings.job}-{job.settings.id} has no checkpoints that could be changed: {last_run(None)}."
        raise TopicMissing(what, "`samzapy topics JOB.yaml` shows which of its topics there are.")
    return Forgetting(job.names, coordinator_settings(job.settings), job.log, job.clock, this_process(), job.answers)


def _say_tasks(found: Forgotten, what: str, execute: bool) -> None:
    for checkpoint in found.before.values():
        say(f"{checkpoint.task}: {'forgot' if execute else 'would forget'} {what}")


def _say_whether(execute: bool) -> None:
    if not execute:
        say("nothing was changed; do it with --execute")


def _remove_local(job: Job, store: str, execute: bool) -> list[str]:
    """Those of this host; which. One elsewhere is of another changelog topic from now on, and is not kept."""
    folder = job.local_state().expanduser()
    found = []
    for path in sorted(task / store for task in folder.iterdir() if task.is_dir()) if folder.is_dir() else ():
        if path.exists():
            found.append(str(path))
            say(f"{'removing' if execute else 'would remove'} {path}")
            if execute:
                remove_local_state(path, job.settings.state.dir)
    return found
