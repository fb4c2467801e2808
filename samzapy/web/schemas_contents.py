"""The documents of the routes that show what the job's topics hold."""

from __future__ import annotations

from pydantic import BaseModel, Field

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


class Discard(BaseModel):
    """Which dead letters: `which` (numbers, or TOPIC[PARTITION]@OFFSET), or `all`, or those that task, topic and error choose."""

    which: list[str] = Field(default_factory=list, max_length=1000)
    all: bool = False
    task: str | None = None
    topic: str | None = None
    error: str | None = None
    dry_run: bool = False


class Replay(Discard):
    """As for a discard. `to_all_tasks`: also broadcast records that some tasks have processed; `new_time`: also records whose timestamp their topic
    does not keep, with the present time."""

    to_all_tasks: bool = False
    new_time: bool = False


class Dealt(Effect):
    """What was done, or with `dry_run` would be. `origins`: the first of them; `not_sent`: why others of those that were chosen are not sent."""

    count: int
    origins: list[str]
    not_sent: list[str]
