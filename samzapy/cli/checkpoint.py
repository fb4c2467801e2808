"""`samzapy checkpoint show`: where the tasks are. `samzapy checkpoint set`: where those of a stopped job go on; without `--execute` it only says
what it would do."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Annotated

import typer

from samzapy.api.errors import ConfigurationError, TopicMissing
from samzapy.cli import forget
from samzapy.cli.common import AsJson, JobFile, MoreFiles, Sets, print_json, say
from samzapy.cli.job import Job
from samzapy.cli.tables import print_table
from samzapy.cli.this_process import this_process
from samzapy.coordinator.checkpoint_set import CheckpointSet, CheckpointSetOptions, Plan
from samzapy.model.event_time import in_ms
from samzapy.ops.inspection import job_in_kafka, read_checkpoints
from samzapy.ops.letters_again import begin_of_steps, go_back, newest_letters, sent_again, warnings
from samzapy.ops.prepare_topics import changelogs, prepare_topics
from samzapy.plan.checkpoint_orders import EARLIEST, LATEST, Choice, Target, pending
from samzapy.wiring.coordinator import coordinator_settings
from samzapy.wiring.job_topics import JobTopics
from samzapy.wiring.local_state import refuse_unremovable, remove_local_state
from samzapy.wiring.tasks import tasks_of

app = typer.Typer(help="Show a job's checkpoints, and set where it continues.", no_args_is_help=True)
Earliest = Annotated[bool, typer.Option("--to-earliest", help="To the oldest record.")]
Latest = Annotated[bool, typer.Option("--to-latest", help="To the end.")]
Offset = Annotated[int | None, typer.Option("--to-offset", min=0, metavar="N", help="To this offset: it is the next one that is read.", show_default=False)]
Time = Annotated[
    str | None,
    typer.Option(
        "--to-datetime",
        metavar="T",
        help="To the first record at or after 2026-01-31T12:00:00; UTC unless an offset like +02:00 is given.",
        show_default=False,
    ),
]
Topic = Annotated[str | None, typer.Option("--topic", help="Only this input.", show_default=False)]
Partition = Annotated[int | None, typer.Option("--partition", min=0, metavar="P", help="Only this partition.", show_default=False)]
Keep = Annotated[bool, typer.Option("--keep-state", help="Keep the stores: records that are read again count again.")]
Reset = Annotated[bool, typer.Option("--reset-state", help="Empty the stores of the tasks concerned, and their changelogs.")]


@app.command("show")
def checkpoint_show(file: JobFile, more: MoreFiles = None, sets: Sets = None, as_json: AsJson = False) -> None:
    """The newest checkpoint of each task: next offsets and changelog positions. A `checkpoint set` that waits is printed on stderr.

    `removed input`: it is no longer in the job file; if it is added again, it continues at that offset."""
    with Job(file, more, sets) as job:
        found = read_checkpoints(job.settings, job_in_kafka(job.settings, job.log).topics, job.log, job.clock)
        startpoints = job.ledger().startpoints
    done = {c.task: c for c in found.values()}
    for task, startpoint in startpoints.items():
        if pending(startpoint, done.get(task)) is not None:
            say(f"{task}: `checkpoint set` waits for its next start: {', '.join(f'{p} at {at}' for p, at in startpoint.offsets.items())}")
    if as_json:
        for checkpoint in found.values():
            print_json(json.loads(checkpoint.to_bytes()))
        return
    if not found:
        say("no checkpoint yet")
        return
    rows: list[tuple[object, ...]] = []
    for c in found.values():
        rows += [(c.task, c.sequence, c.epoch, c.container, f"input {partition}", mark.next_offset) for partition, mark in c.inputs.items()]
        rows += [
            (c.task, c.sequence, c.epoch, c.container, f"input {partition}, read again for store {store}", at)
            for partition, mark in c.inputs.items()
            for store, at in mark.refill.items()
        ]
        rows += [
            (c.task, c.sequence, c.epoch, c.container, f"removed input {partition}", mark.next_offset) for partition, mark in c.left.items()
        ]
        rows += [(c.task, c.sequence, c.epoch, c.container, f"store {name}", mark.position) for name, mark in c.stores.items()]
    print_table(("TASK", "SEQUENCE", "EPOCH", "CONTAINER", "OF", "NEXT OFFSET"), rows)


@app.command("set")
def checkpoint_set(
    file: JobFile,
    to_earliest: Earliest = False,
    to_latest: Latest = False,
    to_offset: Offset = None,
    to_datetime: Time = None,
    topic: Topic = None,
    partition: Partition = None,
    keep_state: Keep = False,
    reset_state: Reset = False,
    execute: Annotated[bool, typer.Option("--execute", help="Do it. Without this option the command only shows what it would do.")] = False,
    more: MoreFiles = None,
    sets: Sets = None,
    as_json: AsJson = False,
) -> None:
    """Set the offsets at which the tasks of a stopped job continue at their next start."""
    job = Job(file, more, sets)
    target = target_of(to_earliest, to_latest, to_offset, to_datetime)
    _check_state(job, keep_state, reset_state)
    options = CheckpointSetOptions(target, Choice(topic, partition), reset_state)
    with job:
        job.refuse_running()
        if reset_state:
            refuse_unremovable(job.local_state(), job.settings.state.dir)
        plan = _execute(job, options) if execute else _checkpoint_set(job).preview(options, job.ledger())
        _print(plan, as_json)
        internal = JobTopics.of(job.settings).internal
        _say_what_is_skipped(plan)
        _say_what_stays(plan, is_one_stage=not internal)
        letters = newest_letters(job.settings, job.log, job.clock)
        for warning in warnings(letters, begin_of_steps(plan.steps), sent_again(job.settings, go_back(plan.steps))):
            say(warning)
        if reset_state and internal:
            say(f"records that wait in {', '.join(internal)} are skipped: the stages that write there send them again, from the inputs that are read again")
        for topic_partition, keys in plan.deletions.items():
            say(f"{'deleted' if execute else 'would delete'} {len(keys)} keys of {topic_partition}")
        if reset_state:
            _remove_local(job, list(plan.startpoints), execute)
    say("each task continues there at its next start" if execute else "nothing was changed; do it with --execute")


def target_of(earliest: bool, latest: bool, offset: int | None, time: str | None) -> Target:
    """Where to, as the options say.

    Raises:
        ConfigurationError: none or several of them, or a time that cannot be read.
    """
    given = [
        n for n, is_given in (("earliest", earliest), ("latest", latest), ("offset", offset is not None), ("datetime", time)) if is_given
    ]
    if len(given) != 1:
        options_given = " and ".join(f"--to-{name}" for name in given) or "nothing"
        raise ConfigurationError(f"target: {options_given} given.", "Give one of --to-earliest, --to-latest, --to-offset, --to-datetime.")
    return Target(EARLIEST if earliest else LATEST if latest else "", offset, None if time is None else milliseconds(time, "--to-datetime"))


def milliseconds(text: str, option: str) -> int:
    """A time in milliseconds since 1970, as an option gives it.

    Raises:
        ConfigurationError: it cannot be read, or is before 1970.
    """
    try:
        found = datetime.fromisoformat(text)
    except ValueError as error:
        raise ConfigurationError(f"{option} {text}: {error}.", "Write 2026-01-31T12:00:00 (UTC), or with +02:00.") from None
    try:
        time_ms = in_ms(found if found.tzinfo else found.replace(tzinfo=UTC))
    except (OverflowError, ValueError):
        time_ms = -1
    if time_ms < 0:
        raise ConfigurationError(f"{option} {text}: Kafka's times begin in 1970.", "Give a later time.")
    return time_ms


def _check_state(job: Job, keep: bool, reset: bool) -> None:
    if keep and reset:
        raise ConfigurationError("--keep-state and --reset-state exclude each other.", "Give one of them.")
    if changelogs(job.settings) and not keep and not reset:
        raise ConfigurationError(
            f"the job has stores ({', '.join(job.settings.stores)}): choose what happens to them.",
            "--reset-state empties them, so that --to-earliest builds them again; --keep-state keeps them: records that are read again count again.",
        )


def _execute(job: Job, options: CheckpointSetOptions) -> Plan:
    command = _checkpoint_set(job)
    command.preview(options, job.ledger())  # what is refused is refused before anything is fenced
    prepare_topics(job.settings, job.log, job.clock)
    return command.execute(options)


def _checkpoint_set(job: Job) -> CheckpointSet:
    settings = job.settings
    tasks = job_in_kafka(settings, job.log).tasks
    if not tasks:
        raise TopicMissing(
            f"not all of the input topics {', '.join(i.topic for i in settings.inputs)} exist.",
            "See `samzapy topics JOB.yaml`, and create those that are missing.",
        )
    names = JobTopics.of(settings)
    return CheckpointSet(
        job.names, tasks, names.changelogs, coordinator_settings(settings), job.log, job.clock, this_process(), job.answers,
        internal=names.internal.keys(), tables=_tables(job),
    )  # fmt: skip


def _tables(job: Job) -> set[str]:
    """The inputs that fill stores with a changelog, with all that they hold: of a program its tables, of a task the bootstrap inputs."""
    logged = JobTopics.of(job.settings).changelogs
    if job.settings.app is None:
        return {i.topic for i in job.settings.inputs if i.bootstrap and logged}
    tables = tasks_of(job.settings, job.loaded.folders).tables or {}
    return {topic for topic, store in tables.items() if store in logged}


def _print(plan: Plan, as_json: bool) -> None:
    rows = [(s.task, str(s.topic_partition), s.before, s.after) for s in plan.steps if s.chosen]
    if as_json:
        for row in rows:
            print_json(dict(zip(("task", "partition", "from", "to"), row, strict=True)))
    else:
        print_table(("TASK", "PARTITION", "FROM", "TO"), rows)


def _say_what_is_skipped(plan: Plan) -> None:
    skipped = [(s.topic_partition, s.after - s.before) for s in plan.steps if s.chosen and s.before is not None and s.after is not None and s.after > s.before]
    if skipped:
        say(f"skips records that were not read yet, at most this many: {', '.join(f'{count} in {partition}' for partition, count in skipped)}")
    unknown = [f"{s.topic_partition} before {s.after}" for s in plan.steps if s.chosen and s.before is None and s.after]
    if unknown:
        say(f"no checkpoint says how far these partitions were read; records before these offsets that were not read are skipped: {', '.join(unknown)}")


def _say_what_stays(plan: Plan, is_one_stage: bool) -> None:
    for step in plan.steps:
        if not step.chosen:
            at = "begins as at a first start" if step.before is None else f"stays at {step.before}"
            say(f"{step.task}: {step.topic_partition} is not selected and {at}")
    if plan.keeps_times:
        say("event time is not set back: for windows, records with an earlier time are late; --reset-state deletes event time too")
    for topic in plan.whole:
        choose = f"; to choose another offset for it, use --topic {topic}" if is_one_stage else ""  # refuse_part_of_stages
        say(f"{topic} fills a store that is emptied, so it is read from its start{choose}")
    for task, partition, offset in plan.left:
        say(
            f"{task}: {partition} is not an input any more; its offset ({offset}) is forgotten with the state: if it is added again, it begins as a new input"
        )
    for task, changelog, deleted, others in plan.taken_over:
        say(
            f"{task}: {changelog} holds {deleted} deletions and {others} other changes after the checkpoint, left by an earlier --reset-state or by lost "
            "checkpoints; with --keep-state they become part of the state"
        )


def _remove_local(job: Job, tasks: list[str], execute: bool) -> None:
    """Those of this host. One elsewhere learns of the deletions from its changelog, as of any other."""
    folder = job.local_state()
    for path in (folder / task for task in tasks):
        if path.exists():
            say(f"{'removing' if execute else 'would remove'} {path}")
            if execute:
                remove_local_state(path, job.settings.state.dir)


app.command("forget")(forget.forget)
