"""`samzapy checkpoint set`: where the tasks of a stopped job go on. Without `--execute` it only says what it would do."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Annotated

import typer

from samzapy.api.errors import ClusterUnreachable, ConfigurationError, OwnedElsewhere, TopicMissing
from samzapy.cli.common import AsJson, JobFile, MoreFiles, Sets, connected, load, print_json, print_table, say
from samzapy.cli.inspect import checkpoint_app, http_json, ledger_of, running_url
from samzapy.cli.run import is_gone, process_start
from samzapy.config.load import LoadedJob
from samzapy.coordinator.rewinding import Order, Plan, Rewinding
from samzapy.plan.startpoints import EARLIEST, LATEST, Choice, Target
from samzapy.ports import Log

app = checkpoint_app
HOST = "localhost"
Earliest = Annotated[bool, typer.Option("--to-earliest", help="To the oldest record.")]
Latest = Annotated[bool, typer.Option("--to-latest", help="To the end.")]
Offset = Annotated[int | None, typer.Option("--to-offset", min=0, metavar="N", help="To this next offset.", show_default=False)]
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
Reset = Annotated[bool, typer.Option("--reset-state", help="The stores of the tasks that are touched are emptied, changelogs too.")]


@checkpoint_app.command("set")
def checkpoint_set(
    job: JobFile,
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
    """Set where the tasks of a stopped job go on, at their next start."""
    loaded = load(job, more, sets)
    target = target_of(to_earliest, to_latest, to_offset, to_datetime)
    _check_state(loaded, keep_state, reset_state)
    order = Order(target, Choice(topic, partition), reset_state)
    with connected(loaded) as log:
        url = running_url(loaded, log)
        if url is not None:
            raise OwnedElsewhere(f"job {loaded.settings.job}-{loaded.settings.id} is running ({url}).", "Stop it first: `samzapy stop JOB.yaml`.")
        plan = _execute(loaded, log, order) if execute else _rewinding(loaded, log).preview(order, ledger_of(loaded, log))
        _print(plan, as_json)
        _say_what_stays(plan)
        for place, keys in plan.deletions.items():
            say(f"{'deleted' if execute else 'would delete'} {len(keys)} keys of {place}")
        if reset_state:
            _remove_local(loaded, log, list(plan.startpoints), execute)
    say("each task continues there at its next start" if execute else "nothing was changed; do it with --execute")


def target_of(earliest: bool, latest: bool, offset: int | None, time: str | None) -> Target:
    """Where to, as the options say.

    Raises:
        ConfigurationError: not exactly one of them, or a time that is none.
    """
    given = [
        n for n, is_given in (("earliest", earliest), ("latest", latest), ("offset", offset is not None), ("datetime", time)) if is_given
    ]
    if len(given) != 1:
        told = " and ".join(f"--to-{name}" for name in given) or "nothing"
        raise ConfigurationError(f"target: {told} given.", "Give one of --to-earliest, --to-latest, --to-offset, --to-datetime.")
    return Target(EARLIEST if earliest else LATEST if latest else "", offset, None if time is None else _milliseconds(time))


def _milliseconds(text: str) -> int:
    try:
        found = datetime.fromisoformat(text)
    except ValueError as error:
        raise ConfigurationError(f"--to-datetime {text}: {error}.", "Write 2026-01-31T12:00:00 (UTC), or with +02:00.") from None
    return int((found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp() * 1000)


def _check_state(loaded: LoadedJob, keep: bool, reset: bool) -> None:
    from samzapy.topic_check import changelogs

    if keep and reset:
        raise ConfigurationError("--keep-state and --reset-state: it cannot be both.", "Give one of them.")
    if changelogs(loaded.settings) and not keep and not reset:
        raise ConfigurationError(
            f"the job has stores ({', '.join(loaded.settings.stores)}): choose what happens to them.",
            "--reset-state empties them, so that state and offsets agree from --to-earliest on; --keep-state keeps what they count.",
        )


def _execute(loaded: LoadedJob, log: Log, order: Order) -> Plan:
    from samzapy.topic_check import prepare_topics

    rewinding = _rewinding(loaded, log)
    rewinding.preview(order, ledger_of(loaded, log))  # what is refused is refused before anything is fenced
    prepare_topics(loaded.settings, log)
    return rewinding.execute(order)


def _rewinding(loaded: LoadedJob, log: Log) -> Rewinding:
    from samzapy.clock import SystemClock
    from samzapy.coordinator.settings import CoordinatorSettings, Process
    from samzapy.inspection import look_around
    from samzapy.wiring import changelog_topic, job_of

    settings = loaded.settings
    tasks = look_around(settings, log).tasks
    if not tasks:
        raise TopicMissing(
            f"there are not all of the input topics {', '.join(i.topic for i in settings.inputs)}.",
            "See `samzapy topics JOB.yaml`, and create those that are missing.",
        )
    topics = {store: topic for store in settings.stores if (topic := changelog_topic(settings, store)) is not None}
    pace = CoordinatorSettings(settings.containers.count, lease_s=settings.containers.lease_ms / 1000)
    process = Process(socket.gethostname(), os.getpid(), process_start(os.getpid()), is_gone)
    return Rewinding(job_of(settings), tasks, topics, pace, log, SystemClock(), process, answers(loaded))


def answers(loaded: LoadedJob) -> Callable[[str], bool]:
    """Whether a coordinator of this job answers at a URL."""

    def ask(url: str) -> bool:
        try:
            answer = http_json("GET", url + "/api/v1/status")
        except ClusterUnreachable:
            return False
        return bool(answer.get("job") == loaded.settings.job and answer.get("id") == loaded.settings.id)

    return ask


def _print(plan: Plan, as_json: bool) -> None:
    rows = [(s.task, str(s.place), s.before, s.after) for s in plan.steps if s.chosen]
    if as_json:
        for row in rows:
            print_json(dict(zip(("task", "partition", "from", "to"), row, strict=True)))
    else:
        print_table(("TASK", "PARTITION", "FROM", "TO"), rows)


def _say_what_stays(plan: Plan) -> None:
    for step in plan.steps:
        if not step.chosen:
            at = "begins as at a first start" if step.before is None else f"stays at {step.before}"
            say(f"{step.task}: {step.place} is not among them and {at}")


def _remove_local(loaded: LoadedJob, log: Log, tasks: list[str], execute: bool) -> None:
    """Those of this host. One elsewhere learns of the deletions from its changelog, as of any other."""
    from samzapy.wiring import local_state, remove_local_state

    with log.admin() as admin:
        folder = local_state(loaded.settings, admin.cluster_id(), HOST)
    for path in (folder / task for task in tasks):
        if path.exists():
            say(f"{'removing' if execute else 'would remove'} {path}")
            if execute:
                remove_local_state(path, loaded.settings.state.dir)
