"""Commands that look: `status` and `topics`. Only `topics --create` changes anything."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from samzapy.api import exit_codes
from samzapy.api.errors import ClusterUnreachable, NotAuthenticated, TlsFailed, TopicMissing
from samzapy.cli.begun import Begun
from samzapy.cli.common import AsJson, JobFile, MoreFiles, Sets, as_called, print_json, say
from samzapy.cli.folding import folded
from samzapy.cli.job import SILENT_REMEDY, Job
from samzapy.cli.output import write_own
from samzapy.cli.tables import is_terminal, print_table
from samzapy.model.ownership import LeaseRecord
from samzapy.model.states import JobState, RunOutcome
from samzapy.ops.acls import access_of, grant_commands, principal_of
from samzapy.ops.prepare_topics import create_topics
from samzapy.ops.topic_rows import ABSENT, OK, topic_rows

REDRAW = "\x1b[H\x1b[2J"  # to the upper left, with nothing below


# -- status ----------------------------------------------------------------------------------------------------------------------------


def status(
    file: JobFile,
    more: MoreFiles = None,
    sets: Sets = None,
    as_json: AsJson = False,
    watch: Annotated[bool, typer.Option("--watch", help="Repeat it every two seconds, until Ctrl-C.")] = False,
) -> int:
    """Status of the running job; exit code 3: it is not running, or has no coordinator yet; 4: it does not answer.

    Hints begin with how urgent they are. act: something has to be done. look: look at it when there is time. know: nothing has to be done."""
    asked = Job(file, more, sets)
    try:
        return _status(asked, as_json, watch)
    except (ClusterUnreachable, NotAuthenticated, TlsFailed) as error:
        found = asked.status_here()
        if found is None:
            raise
        say(f"{error.message} But the run on this host answers:")
        print_json(found) if as_json else _print_status(found)
        return 0


def _status(asked: Job, as_json: bool, watch: bool) -> int:
    with asked as job:
        while True:
            starting = job.starting()
            answer = job.status()
            silent = job.silent() if answer is None and starting is None else ""
            if watch and not as_json and is_terminal():
                write_own(sys.stdout, REDRAW)
            if answer is not None:
                print_json(answer) if as_json else _print_status(answer)
            elif starting is not None:
                _say_starting(job, starting, as_json)
            elif silent:
                _say_silent(job, silent, as_json)
            else:
                _say_not_running(job, job.lease(), as_json)
            if not watch or (answer is None and starting is None and not silent):
                return 0 if answer is not None else ClusterUnreachable.exit_code if silent else exit_codes.NOT_RUNNING
            time.sleep(2.0)


def say_no_answer(job: Job) -> int:
    """Say why none answers: it does not run, or runs and does not answer. Returns the exit code of that."""
    if silent := job.silent():
        _say_silent(job, silent, as_json=False)
        return ClusterUnreachable.exit_code
    _say_not_running(job, job.lease(), as_json=False)
    return exit_codes.NOT_RUNNING


def _say_silent(job: Job, silent: str, as_json: bool) -> None:
    if as_json:
        print_json({"job": job.settings.job, "id": job.settings.id, "state": "NOT ANSWERING", "reason": silent})
    else:
        say(f"{job} runs, but does not answer ({silent}). {SILENT_REMEDY}")


def _say_starting(job: Job, begun: Begun, as_json: bool) -> None:
    if as_json:
        run = {"run_id": begun.run_id, "host": begun.host, "pid": begun.pid, "began_ms": begun.began_ms}
        print_json({"job": job.settings.job, "id": job.settings.id, "state": JobState.STARTING, "starting": run})
    else:
        say(f"{job} is starting ({begun}); ask again in some seconds")


def _say_not_running(job: Job, last: LeaseRecord | None, as_json: bool) -> None:
    settings = job.settings
    failed = last is not None and bool(last.error)
    if as_json:
        run = None
        if last is not None:
            run = {"run_id": last.run_id, "host": last.host, "pid": last.pid, "last_heard_ms": last.renewed_ms}
            run |= {"ended_in_order": last.ended, "outcome": last.outcome or None, "error": last.error or None}
        print_json({"job": settings.job, "id": settings.id, "state": RunOutcome.FAILED if failed else RunOutcome.STOPPED, "last_run": run})
        return
    say(f"job {settings.job}-{settings.id} is not running; {last_run(last)}")


def last_run(last: LeaseRecord | None) -> str:
    """How the run before ended, as far as the coordinator topic tells."""
    if last is None:
        return "it never ran, was reset, or its coordinator topic was deleted"
    heard = datetime.fromtimestamp(last.renewed_ms / 1000).astimezone().strftime("%Y-%m-%d %H:%M:%S %z")
    if not last.ended:
        return f"its last run (process {last.pid} on {last.host}) was killed, or cannot be reached from here: last heard {heard}"
    if last.error:
        return f"its last run failed at {heard}:\n  {last.error}"
    return f"its last run ended normally at {heard}"


def _print_status(answer: dict[str, Any]) -> None:
    print(f"{answer['job']}-{answer['id']}  {answer['state']}  run {answer['run_id']}  {answer.get('coordinator', '')}")
    if answer.get("reason"):
        print(as_called(answer["reason"]))
    for note in answer.get("notes", ()):
        print(f"note: {note}")
    for hint in answer.get("hints", ()):
        print(f"{hint['severity']}: {hint['sentence']}" + (f"\n  {as_called(hint['remedy'])}" if hint["remedy"] else ""))
    print()
    containers = [
        (c["id"], c["state"], c["host"], c["preferred_host"], c["pid"], c["restarts"], len(c["tasks"]), c["reason"] or None)
        for c in answer["containers"]
    ]
    print_table(("CONTAINER", "STATE", "HOST", "PREFERRED", "PID", "RESTARTS", "TASKS", "REASON"), containers)
    for c in answer["containers"]:
        last = c.get("last_restart")
        if last is not None:
            at = datetime.fromtimestamp(last["at_ms"] / 1000).astimezone().strftime("%Y-%m-%d %H:%M:%S %z")
            print(f"container {c['id']}, last restart: {at}, {last['process']}: {last['reason']}")
    print()
    rows = []
    for t in answer["tasks"]:
        restores = ", ".join(f"{n}: {_restored(s['restore'])}" for n, s in t["stores"].items() if "restore" in s)
        rows.append((t["name"], t["state"], t["container"], t["lag"], t["processed"], restores or None, t["reason"] or None))
    print_table(("TASK", "STATE", "CONTAINER", "LAG", "PROCESSED", "RESTORED FROM (RECORDS)", "REASON"), rows)
    _print_times(answer["tasks"])
    _print_operators(answer["tasks"])
    for key, words in (("dead_letters", as_called("set aside (see `samzapy dlq list JOB.yaml`)")), ("skipped", "skipped")):
        found = [f"{t['name']}: {t[key]}" for t in answer["tasks"] if t[key]]
        if found:
            print(folded(f"\nrecords {words} since their container started: {', '.join(found)}", sys.stdout))


def _print_times(tasks: Sequence[Mapping[str, Any]]) -> None:
    """How far event time has come, for tasks that have one, and what it waits for."""
    rows = []
    for task in tasks:
        for stage, found in task.get("time", {}).items():
            at = "none yet" if found["watermark"] is None else _utc(found["watermark"])
            rows.append((task["name"], stage, at, found["waits_for"] or None))
    if rows:
        print()
        print_table(("TASK", "TIME OF", "WATERMARK", "WAITS FOR"), rows)


def _print_operators(tasks: Sequence[Mapping[str, Any]]) -> None:
    """What the operators of a program took, gave on and dropped, over all tasks."""
    sums: dict[str, dict[str, int]] = {}
    for task in tasks:
        for operator, counts in (task.get("operators") or {}).items():
            row = sums.setdefault(operator, {})
            for key, count in counts.items():
                row[key] = row.get(key, 0) + count
    if sums:
        print()
        rows = [(operator, row.get("in"), row.get("out"), row.get("dropped"), row.get("late")) for operator, row in sums.items()]
        print_table(("OPERATOR", "IN", "OUT", "DROPPED", "TOO LATE"), rows)
        print(folded("Operators count since their container started.", sys.stdout))


def _utc(ms: int) -> str:
    try:
        return datetime.fromtimestamp(ms / 1000, UTC).isoformat(sep=" ", timespec="milliseconds").removesuffix("+00:00") + " UTC"
    except (ValueError, OverflowError, OSError):  # beyond the years that have a date
        return f"{ms} ms"


def _restored(restore: Mapping[str, Any]) -> str:
    """Where a store came from and the records read for it; while it is being restored, how far that is."""
    remaining, records, seconds = restore.get("remaining", 0), restore["records"], restore["seconds"]
    if not remaining:
        return f"{restore['source']} ({records})"
    rate = records / seconds if seconds else 0.0
    left = f", about {remaining / rate:.0f} s left" if rate else ""
    return f"{restore['source']} ({records} of about {records + remaining}, {rate:.0f}/s{left})"


# -- topics ------------------------------------------------------------------------------------------------------------------------------


def topics(
    file: JobFile,
    more: MoreFiles = None,
    sets: Sets = None,
    create: Annotated[bool, typer.Option("--create", help="Create the job's own topics, and the outputs that have `partitions`.")] = False,
    acls: Annotated[bool, typer.Option("--acls", help="Only print the ACLs that the job needs, as lines of Kafka's own tool.")] = False,
    as_json: AsJson = False,
) -> int:
    """The topics that the job needs: expected and actual; exit code 4 if one is wrong or lost, or an input or output is missing."""
    job = Job(file, more, sets)
    if acls:
        _print_acls(job, as_json)
        return 0
    with job:
        if create:
            _create(job)
        rows = _topic_rows(job)
    header = ("TOPIC", "ROLE", "EXPECTED", "ACTUAL", "STATE")
    if as_json:
        for kind, row in rows:
            print_json({**dict(zip([h.lower() for h in header], row, strict=True)), "ok": kind == "ok"})
    else:
        print_table(header, [row for _, row in rows])
    return TopicMissing.exit_code if any(kind not in (OK, ABSENT) for kind, _ in rows) else 0


def _print_acls(job: Job, as_json: bool) -> None:
    for access, command in zip(access_of(job.settings), grant_commands(job.settings), strict=True):
        if as_json:
            row: dict[str, Any] = {"kind": access.kind, "name": access.name, "pattern": "prefixed" if access.is_prefix else "literal"}
            row |= {"operations": list(access.operations), "purpose": access.purpose}
            print_json({"principal": principal_of(job.settings), **row})
        else:
            print(command)


def _topic_rows(job: Job) -> list[tuple[str, tuple[str, str, str, str, str]]]:
    return topic_rows(job.settings, job.log, job.clock)


def _create(job: Job) -> None:
    for name in create_topics(job.settings, job.log, job.clock):
        say(f"created {name}")
