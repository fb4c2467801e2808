"""Commands that look: `validate`, `status`, `checkpoint show`, `topics`. Only `topics --create` changes anything."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Annotated, Any, TypeVar
from urllib.parse import urlsplit

import typer

from samzapy.api.errors import ClusterUnreachable, ConfigurationError, NotAuthorized, SamzapyError, TopicMisconfigured, TopicMissing
from samzapy.cli.common import AsJson, JobFile, MoreFiles, Sets, connected, load, print_json, print_table, say
from samzapy.config.load import LoadedJob
from samzapy.model.ownership import LeaseRecord, Ledger
from samzapy.ports import Consumer, Log
from samzapy.signing import signed_headers

checkpoint_app = typer.Typer(help="Show a job's checkpoints, and set where it continues.", no_args_is_help=True)
NOT_RUNNING = 3
HTTP_TIMEOUT_S = 5.0
T = TypeVar("T")


@checkpoint_app.callback()
def _checkpoint() -> None:
    """Show a job's checkpoints, and set where it continues."""


# -- validate --------------------------------------------------------------------------------------------------------------------------


def validate(
    job: JobFile,
    more: MoreFiles = None,
    sets: Sets = None,
    connect: Annotated[bool, typer.Option("--connect", help="Also ask Kafka: topics, partitions, settings.")] = False,
) -> int:
    """All errors of a job file at once; exit code 2 if there are any. With --connect: that of a run, where one would be refused."""
    loaded = load(job, more, sets, classes=True)
    if not connect:
        say(f"{job}: valid")
        return 0
    refused: SamzapyError | None
    with connected(loaded) as log:
        lacking = _access_problems(loaded, log)
        try:
            problems, refused = _topic_problems(loaded, log)
        except NotAuthorized as error:
            if not lacking:
                raise
            problems, refused = [], error
    if lacking:
        problems, refused = [*lacking, *problems], NotAuthorized("", "")
    for problem in problems:
        say(f"error: {problem}")
    if refused is not None:
        return refused.exit_code
    say(f"{job}: valid, and Kafka has what it needs")
    return 0


def _topic_problems(loaded: LoadedJob, log: Log) -> tuple[list[str], SamzapyError | None]:
    """What is wrong with topics, in words, and what `run` would refuse to begin with."""
    from samzapy.topic_check import what_run_refuses

    problems = [f"{row[0]}: {row[-1]}" for kind, row in _topic_rows(loaded, log) if kind in ("missing", "wrong")]
    refused = what_run_refuses(loaded.settings, log, ledger_of(loaded, log))
    if refused is not None and not (problems and isinstance(refused, TopicMissing | TopicMisconfigured)):
        problems.append(str(refused))
    return problems, refused


def _access_problems(loaded: LoadedJob, log: Log) -> list[str]:
    from samzapy.access_check import missing_access

    return [f"{one}\n  {one.command}" for one in missing_access(loaded.settings, log)]


# -- status ----------------------------------------------------------------------------------------------------------------------------


def status(
    job: JobFile,
    more: MoreFiles = None,
    sets: Sets = None,
    as_json: AsJson = False,
    watch: Annotated[bool, typer.Option("--watch", help="Again every two seconds, until Ctrl-C.")] = False,
) -> int:
    """How the running job is, from its coordinator; exit code 3 if it does not run."""
    loaded = load(job, more, sets)
    with connected(loaded) as log:
        while True:
            answer = running_status(loaded, log)
            if answer is None:
                _say_not_running(loaded, read_lease(loaded, log), as_json)
                return NOT_RUNNING
            print_json(answer) if as_json else _print_status(answer)
            if not watch:
                return 0
            time.sleep(2.0)


def _say_not_running(loaded: LoadedJob, last: LeaseRecord | None, as_json: bool) -> None:
    settings = loaded.settings
    failed = last is not None and bool(last.error)
    if as_json:
        run = None
        if last is not None:
            run = {"run_id": last.run_id, "host": last.host, "pid": last.pid, "last_heard_ms": last.renewed_ms}
            run |= {"ended_in_order": last.ended, "outcome": last.outcome or None, "error": last.error or None}
        print_json({"job": settings.job, "id": settings.id, "state": "FAILED" if failed else "STOPPED", "last_run": run})
        return
    say(f"job {settings.job}-{settings.id} is not running; {last_run(last)}")


def last_run(last: LeaseRecord | None) -> str:
    """How the run before ended, as far as the coordinator topic tells."""
    if last is None:
        return "it never ran, or was reset"
    heard = datetime.fromtimestamp(last.renewed_ms / 1000).astimezone().strftime("%Y-%m-%d %H:%M:%S %z")
    if not last.ended:
        return f"its last run (process {last.pid} on {last.host}) was killed, or cannot be reached from here: last heard {heard}"
    if last.error:
        return f"its last run failed at {heard}:\n  {last.error}"
    return f"its last run ended in order at {heard}"


def running_status(loaded: LoadedJob, log: Log) -> dict[str, Any] | None:
    """The status that the running coordinator gives, or None where none answers."""
    url = _lease_url(loaded, log)
    if url is None:
        return None
    try:
        answer = http_json("GET", url + "/api/v1/status")
    except ClusterUnreachable:
        return None
    settings = loaded.settings
    same = answer.get("job") == settings.job and answer.get("id") == settings.id
    return answer if same else None


def running_url(loaded: LoadedJob, log: Log) -> str | None:
    """The running coordinator's URL, or None where none answers."""
    answer = running_status(loaded, log)
    return None if answer is None else _lease_url(loaded, log)


def _lease_url(loaded: LoadedJob, log: Log) -> str | None:
    lease = read_lease(loaded, log)
    return lease.url if lease is not None and lease.url else None


def read_lease(loaded: LoadedJob, log: Log) -> LeaseRecord | None:
    """The newest lease record of the coordinator topic, or None; readable or not, other records are left alone."""
    from samzapy.clock import SystemClock
    from samzapy.ledger_reader import read_lease as newest_lease

    return _read_coordinator_topic(loaded, log, lambda consumer, topic: newest_lease(consumer, topic, SystemClock()), None)


def ledger_of(loaded: LoadedJob, log: Log) -> Ledger:
    """What the coordinator topic says; nothing where there is none yet."""
    from samzapy.clock import SystemClock
    from samzapy.ledger_reader import read_ledger

    return _read_coordinator_topic(loaded, log, lambda consumer, topic: read_ledger(consumer, topic, SystemClock()), Ledger())


def _read_coordinator_topic(loaded: LoadedJob, log: Log, read: Callable[[Consumer, str], T], absent: T) -> T:
    from samzapy.wiring import job_of

    topic = job_of(loaded.settings).coordinator_topic
    with log.admin() as admin:
        if topic not in admin.topics([topic]):
            return absent
    with log.restore_consumer("status") as consumer:
        return read(consumer, topic)


def http_json(method: str, url: str, token: str | None = None, content: dict[str, Any] | None = None) -> dict[str, Any]:
    """One request to a coordinator; with `token` it is signed, and the token not sent: whoever wrote the URL may be anybody.

    Raises:
        ClusterUnreachable: nobody answers there, or not with what a coordinator says. ConfigurationError: it refuses, and says why.
    """
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "127.0.0.1", parts.port, timeout=HTTP_TIMEOUT_S)
    try:
        sent = b"" if content is None else json.dumps(content).encode()
        headers = signed_headers(token, method, parts.path, sent, time.time()) if token else {}
        connection.request(method, parts.path, sent or None, headers)
        response = connection.getresponse()
        body = response.read(16 << 20)
        if response.status == http.client.FORBIDDEN:
            raise ConfigurationError(
                f"{method} {url} was refused: {json.loads(body)['error']}.",
                "See that the token is this run's (--token-file), and that the clocks of both machines agree.",
            )
        if response.status == http.client.CONFLICT:
            refused = json.loads(body)
            raise ConfigurationError(str(refused["error"]), str(refused.get("remedy", "")))
        if response.status != http.client.OK:
            raise ClusterUnreachable(f"{method} {url}: {response.status} {response.reason}.", "See the coordinator's log.")
        answer = json.loads(body)
        if not isinstance(answer, dict):
            raise ClusterUnreachable(f"{method} {url}: not an answer of samzapy's.", "")
        return answer
    except (OSError, ValueError, KeyError, http.client.HTTPException) as error:
        raise ClusterUnreachable(f"no coordinator answers at {url}: {error}.", "It may have stopped just now.") from None
    finally:
        connection.close()


def _print_status(answer: dict[str, Any]) -> None:
    print(f"{answer['job']}-{answer['id']}  {answer['state']}  run {answer['run_id']}  {answer.get('coordinator', '')}")
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
    for key, words in (("dead_letters", "set aside (see `samzapy dlq list JOB.yaml`)"), ("skipped", "skipped")):
        found = [f"{t['name']}: {t[key]}" for t in answer["tasks"] if t[key]]
        if found:
            print(f"\nrecords {words} since their container started: {', '.join(found)}")


def _restored(restore: Mapping[str, Any]) -> str:
    """Where a store came from and the records read for it; while it is being restored, how far that is."""
    remaining, records, seconds = restore.get("remaining", 0), restore["records"], restore["seconds"]
    if not remaining:
        return f"{restore['source']} ({records})"
    rate = records / seconds if seconds else 0.0
    left = f", about {remaining / rate:.0f} s left" if rate else ""
    return f"{restore['source']} ({records} of about {records + remaining}, {rate:.0f}/s{left})"


# -- checkpoint show -------------------------------------------------------------------------------------------------------------------


@checkpoint_app.command("show")
def checkpoint_show(job: JobFile, more: MoreFiles = None, sets: Sets = None, as_json: AsJson = False) -> None:
    """The newest checkpoint of each task: next offsets, and the changelog positions that belong to them. What was set is told on stderr.

    `left input`: it is not in the job file any more, and goes on from there if it comes back."""
    from samzapy.clock import SystemClock
    from samzapy.inspection import look_around, read_checkpoints
    from samzapy.plan.startpoints import pending

    loaded = load(job, more, sets)
    with connected(loaded) as log:
        found = read_checkpoints(loaded.settings, look_around(loaded.settings, log).topics, log, SystemClock())
        orders = ledger_of(loaded, log).startpoints
    done = {c.task: c for c in found.values()}
    for task, order in orders.items():
        if pending(order, done.get(task)) is not None:
            say(f"{task}: `checkpoint set` waits for its next start: {', '.join(f'{p} at {at}' for p, at in order.offsets.items())}")
    if as_json:
        for checkpoint in found.values():
            print_json(json.loads(checkpoint.to_bytes()))
        return
    if not found:
        say("no checkpoint yet")
        return
    rows: list[tuple[object, ...]] = []
    for c in found.values():
        rows += [(c.task, c.sequence, c.epoch, c.container, f"input {place}", mark.next_offset) for place, mark in c.inputs.items()]
        rows += [(c.task, c.sequence, c.epoch, c.container, f"left input {place}", mark.next_offset) for place, mark in c.left.items()]
        rows += [(c.task, c.sequence, c.epoch, c.container, f"store {name}", mark.position) for name, mark in c.stores.items()]
    print_table(("TASK", "SEQUENCE", "EPOCH", "CONTAINER", "OF", "NEXT OFFSET"), rows)


# -- topics ------------------------------------------------------------------------------------------------------------------------------


def topics(
    job: JobFile,
    more: MoreFiles = None,
    sets: Sets = None,
    create: Annotated[bool, typer.Option("--create", help="Create the internal topics, and the outputs that have `partitions`.")] = False,
    acls: Annotated[bool, typer.Option("--acls", help="Only print the ACLs that the job needs, as lines of Kafka's own tool.")] = False,
    as_json: AsJson = False,
) -> int:
    """The topics the job needs, expected against actual; exit code 4 if one is missing that `run` does not create, or is wrong."""
    from samzapy.topic_check import ABSENT, OK

    loaded = load(job, more, sets)
    if acls:
        _print_acls(loaded, as_json)
        return 0
    with connected(loaded) as log:
        if create:
            _create(loaded, log)
        rows = _topic_rows(loaded, log)
    header = ("TOPIC", "ROLE", "EXPECTED", "ACTUAL", "STATE")
    if as_json:
        for kind, row in rows:
            print_json({**dict(zip([h.lower() for h in header], row, strict=True)), "ok": kind == "ok"})
    else:
        print_table(header, [row for _, row in rows])
    return TopicMissing.exit_code if any(kind not in (OK, ABSENT) for kind, _ in rows) else 0


def _print_acls(loaded: LoadedJob, as_json: bool) -> None:
    from samzapy.access_check import access_of, grant_commands, principal_of

    for access, command in zip(access_of(loaded.settings), grant_commands(loaded.settings), strict=True):
        if as_json:
            told: dict[str, Any] = {"kind": access.kind, "name": access.name, "pattern": "prefixed" if access.is_prefix else "literal"}
            told |= {"operations": list(access.operations), "purpose": access.purpose}
            print_json({"principal": principal_of(loaded.settings), **told})
        else:
            print(command)


def _topic_rows(loaded: LoadedJob, log: Log) -> list[tuple[str, tuple[str, str, str, str, str]]]:
    from samzapy.topic_check import topic_rows

    return topic_rows(loaded.settings, log)


def _create(loaded: LoadedJob, log: Log) -> None:
    from samzapy.topic_check import create_topics

    for name in create_topics(loaded.settings, log):
        say(f"created {name}")
