"""The documents of the routes that show what the job's topics hold."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from samzapy.web.bodies import Body
from samzapy.web.schemas import Document, Effect


class Shown(Document):
    """A key or a value. `text`: by its serde, for people; null: there is none. `bytes`: as Kafka has it. `problem`: why its serde cannot read it."""

    text: str | None
    bytes: int
    is_cut: bool
    problem: str


class DeadLetter(Document):
    """A dead letter. `at_ms`: when it was set aside; `begins`: the value's beginning."""

    number: str
    task: str
    origin: str
    at_ms: int
    timestamp_ms: int
    error: str
    attempts: int
    is_shortened: bool
    replayed_ms: int | None
    discarded_ms: int | None
    begins: str


class LetterGroup(Document):
    """Dead letters with errors of one class."""

    error: str
    count: int
    waiting: int
    first_ms: int
    last_ms: int


class DeadLetters(Document):
    """The newest dead letters. `is_whole`: there are no older ones; `all`, `waiting`: how many were read, and were not dealt with yet."""

    topic: str
    items: list[DeadLetter]
    found: int
    next: str | None
    waiting: int
    all: int
    groups: list[LetterGroup]
    is_whole: bool
    strangers: int


class ShownDeadLetter(DeadLetter):
    """A dead letter with its record. `is_known`: it is among the newest, so that it is known whether it was sent back."""

    key: Shown
    value: Shown
    headers: list[list[str | None]]
    stack: str
    shortened: str
    is_known: bool


class Discard(Body):
    """Which dead letters: `which` (numbers, or TOPIC[PARTITION]@OFFSET), or `all`, or those that task, topic and error choose."""

    which: list[str] = Field(default_factory=list, max_length=1000)
    all: bool = False
    task: str | None = None
    topic: str | None = None
    error: str | None = None
    dry_run: bool = False


class Replay(Discard):
    """As for a discard. `to_all_tasks`: also broadcast records that some tasks have processed; `new_time`: also records whose timestamp their topic
    does not keep, with the current time."""

    to_all_tasks: bool = False
    new_time: bool = False


class Dealt(Effect):
    """What was done, or with `dry_run` would be. `origins`: the first of them; `not_sent`: why others of those that were chosen are not sent."""

    count: int
    origins: list[str]
    not_sent: list[str]


class Topic(Document):
    """A topic of the job, with the serdes of its keys and values."""

    topic: str
    kind: str
    key: str
    value: str


class Topics(Document):
    """Its inputs and outputs."""

    items: list[Topic]


class Record(Document):
    """A record of a topic."""

    partition: int
    offset: int
    at_ms: int
    key: Shown
    value: Shown
    headers: list[list[str | None]]


class Records(Document):
    """Some records, by their times. `next`: the cursor behind them; `read`: how many were looked at; `behind`: how many offsets come after the cursor;
    `passed_over`: how many offsets after the cursor before were no longer there."""

    topic: str
    items: list[Record]
    next: str
    read: int
    behind: int
    passed_over: int
    partitions: int


class Run(Document):
    """A run. `ended_ms`: 0 while it goes on; `outcome`: FINISHED, STOPPED, FAILED, REPLACED, LOST, or ""; `changes`: how many keys of the configuration
    differ from those of the run before it; null: there is none."""

    run_id: str
    began_ms: int
    told_ms: int
    ended_ms: int
    started_by: str
    how: str
    host: str
    pid: int
    version: str
    containers: int
    tasks: int
    outcome: str
    ended_by: str
    error: str
    remedy: str
    counts: dict[str, int]


class ListedRun(Run):
    """As a list has it."""

    changes: int | None


class Runs(Document):
    """The last ten, the newest first."""

    items: list[ListedRun]


class Change(Document):
    """A key whose value differs; null: it is not there."""

    key: str
    before: str | None
    now: str | None
    before_from: str | None
    now_from: str | None


class ShownRun(Run):
    """A run with its configuration, events and errors. `against`: whose configuration `changes` compares it with; `problem`: why that cannot be."""

    config: list[dict[str, Any]]
    events: list[dict[str, Any]]
    errors: list[dict[str, Any]]
    against: str
    changes: list[Change]
    problem: str
