"""What each command prints with `--json`: the form of one document, from which its JSON Schema is made (`samzapy schema --of COMMAND`).

One rule: a command that tells of one thing prints one document; one that tells of any number prints one a line, none if there are none. Documents
are on stdout, alone; sentences are on stderr. Fields may be added; those that are here keep their names and meanings.
"""

from __future__ import annotations

import json
from typing import Any, NotRequired

from pydantic import TypeAdapter
from typing_extensions import TypedDict

from samzapy.cli.json_forms_changes import Begun, ChaosResult, Dropped, ForgottenInput


class Done(TypedDict):
    """What `stop`, `scale`, `restart`, `pause`, `resume` or `commit` came to."""

    job: str
    id: str
    command: str
    done: bool
    exit_code: int


class Status(TypedDict):
    """A job. Of one that is not running only the first three fields are there, and what is known of its last run."""

    job: str
    id: str
    state: str
    run_id: NotRequired[str | None]
    containers: NotRequired[list[dict[str, Any]]]
    tasks: NotRequired[list[dict[str, Any]]]


class Lag(TypedDict):
    """An input partition. None: not known."""

    group: str
    topic: str
    partition: int
    current_offset: int | None
    log_end_offset: int | None
    lag: int | None
    consumer_id: str | None
    host: str | None
    client_id: str | None
    task: str
    uncommitted: int  # offsets after log_end_offset: of an open transaction, or after it


class Topic(TypedDict):
    """A topic that the job needs; with --acls: an access that its user needs."""

    topic: str
    role: str
    expected: str
    actual: str
    state: str
    ok: bool


class Access(TypedDict):
    """An access that the job's user needs."""

    principal: str
    kind: str
    name: str
    pattern: str
    operations: list[str]
    purpose: str


class Plan(TypedDict):
    """What a run would do."""

    job: str
    id: str
    master: str | None
    slots: int | None
    containers: list[dict[str, Any]]
    tasks: list[dict[str, Any]]
    topics: list[dict[str, Any]]
    creates: list[str]
    problems: list[dict[str, Any]]


class Job(TypedDict):
    """A job of a cluster. `heard_ms`: when its run last gave a sign of life, in milliseconds since 1970."""

    job: str
    id: str
    state: str
    run_id: str | None
    host: str | None
    url: str | None
    heard_ms: int | None
    error: str


class JobFileProblem(TypedDict):
    """A mistake in a job file. Lines and columns count from 1; 0: there is no place."""

    file: str
    line: int
    column: int
    key: str
    problem: str
    remedy: str


class Validated(TypedDict):
    """Whether a job file is valid."""

    file: str
    valid: bool
    problems: list[JobFileProblem]


class Check(TypedDict):
    """A check of `doctor`."""

    name: str
    state: str
    found: str
    remedy: str


class Doctor(TypedDict):
    """All checks; `ok`: a job could run."""

    ok: bool
    checks: list[Check]


class Sent(TypedDict):
    """What `send` did."""

    topic: str
    sent: int


class Deleted(TypedDict):
    """A topic or directory that `reset` deleted, or would delete."""

    kind: str
    name: str
    deleted: bool


class Exact(TypedDict):
    """A key and a value: as JSON where that is exact, else the bytes that Kafka has, in base64."""

    key: NotRequired[Any]
    key_base64: NotRequired[str]
    value: NotRequired[Any]
    value_base64: NotRequired[str]


class Record(Exact):
    """A record of a topic."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    tombstone: bool
    headers: list[tuple[str, str | dict[str, str] | None]]


class Entry(Exact):
    """An entry of a store. Of a window's store: what a slice has of a key, with its span of time (milliseconds since 1970) and how many records that is."""

    task: str
    partition: int
    start: NotRequired[int]
    end: NotRequired[int]
    records: NotRequired[int]


class StoreCheck(TypedDict):
    """A task's store, restored or verified."""

    task: str
    store: str
    outcome: str
    records: int
    detail: str
    good: bool


class Checkpoint(TypedDict):
    """A task's newest checkpoint, as the checkpoint topic has it."""

    task: str
    sequence: int
    epoch: int
    inputs: dict[str, Any]
    stores: dict[str, Any]


CheckpointStep = TypedDict("CheckpointStep", {"task": str, "partition": str, "from": int | None, "to": int})


class DeadLetter(TypedDict):
    """A dead letter. Times are in milliseconds since 1970."""

    number: str
    task: str
    origin: str
    topic: str
    partition: int
    offset: int
    timestamp: int
    time: int
    error: str
    truncated: str | None
    attempts: int
    dead_letter: str
    replayed: int | None
    discarded: int | None


class ShownDeadLetter(DeadLetter, Exact):
    """A dead letter with its record."""

    headers: list[tuple[str, str | dict[str, str] | None]]
    stack: str


class DealtWith(TypedDict):
    """A dead letter that `replay` or `discard` chose. `done`: what became of it; null: nothing was changed."""

    number: str
    origin: str
    done: str | None


class Broker(TypedDict):
    """A broker of `dev kafka`."""

    id: int
    port: int
    pid: int | None


class DevKafka(TypedDict):
    """The local Kafka."""

    running: bool
    bootstrap_servers: str | None
    dir: str
    brokers: list[Broker]


class DevSpark(TypedDict):
    """The local Spark."""

    running: bool
    url: str | None
    dir: str
    master: dict[str, Any] | None
    workers: list[dict[str, Any]]


class Stack(TypedDict):
    """What a container does now: `now` its loop, `threads` their stacks, outermost frame first; the loop's thread is the first."""

    container: int
    at_ms: int
    pid: int
    now: dict[str, Any]
    threads: list[dict[str, Any]]


class Profile(TypedDict):
    """Where a container's time went; `folded`: a line for each stack, `frame;frame microseconds`, outermost frame first."""

    container: int
    at_ms: int
    seconds: float
    samples: int
    folded: str


class Trace(TypedDict):
    """The records of a task that were traced: key, value, microseconds, puts, sends, error."""

    container: int
    at_ms: int
    task: str
    records: list[dict[str, Any]]


ONE, LINES = "one document", "one document a line"
FORMS: dict[str, tuple[str, Any]] = {
    "status": (ONE, Status), "plan": (ONE, Plan), "validate": (ONE, Validated), "doctor": (ONE, Doctor), "stop": (ONE, Done), "scale": (ONE, Done),
    "restart": (ONE, Done), "pause": (ONE, Done), "resume": (ONE, Done), "commit": (ONE, Done),
    "send": (ONE, Sent), "dev kafka status": (ONE, DevKafka), "dev spark status": (ONE, DevSpark), "lag": (LINES, Lag),
    "topics": (LINES, Topic | Access), "jobs": (LINES, Job), "reset": (LINES, Deleted), "tail": (LINES, Record), "checkpoint show": (LINES, Checkpoint),
    "checkpoint set": (LINES, CheckpointStep), "state get": (LINES, Entry), "state scan": (LINES, Entry), "state export": (LINES, Entry),
    "state restore": (LINES, StoreCheck), "state verify": (LINES, StoreCheck), "dlq list": (LINES, DeadLetter), "dlq show": (LINES, ShownDeadLetter),
    "dlq replay": (LINES, DealtWith), "dlq discard": (LINES, DealtWith), "debug stack": (LINES, Stack), "debug profile": (ONE, Profile), "debug trace": (ONE, Trace),
    "state drop": (ONE, Dropped), "checkpoint forget": (ONE, ForgottenInput), "init": (ONE, Begun), "chaos": (ONE, ChaosResult),
}  # fmt: skip


def schema_of(command: str) -> str:
    """The JSON Schema of one document that the command prints."""
    how, form = FORMS[command]
    schema = {"$comment": f"samzapy {command} --json prints {how}", **TypeAdapter(form).json_schema()}
    return json.dumps(schema, indent=2) + "\n"
