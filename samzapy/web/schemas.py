"""The documents that the routes take and give. More fields may come; none of these goes away in v1."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field


class Document(BaseModel):
    """One that may have more fields than these."""

    model_config = ConfigDict(extra="allow")


class Problem(Document):
    """Why a request was refused (RFC 9457)."""

    type: str = "about:blank"
    title: str
    status: int
    detail: str
    code: str = Field("", description="As on the command line, e.g. SZ100; empty where it has none.")
    remedy: str = ""


class Me(Document):
    """What the token that was sent may do. `data`: whether keys and values of records are shown. `called`: JOB.yaml in commands, as the job was
    started with it; `called_to_look`: in commands that only look; both empty to anyone."""

    may: Literal["anyone", "view", "operate"]
    job: str
    id: str
    data: bool
    called: str
    called_to_look: str


class JobLink(Document):
    """A job. `url`: empty where it does not run; `is_here`: the one that answers."""

    jobName: str  # noqa: N815  Samza's
    jobId: str  # noqa: N815
    status: str
    url: str


class Jobs(Document):
    """The jobs of this Kafka cluster by their coordinator topics; without a token only the one that answers."""

    items: list[JobLink]
    next: str | None = None


class Container(Document):
    """A container. `loop`: shares of its loop's time, which add up to 1; empty while they are not known. `now`: the hook that runs, if it has for a
    second when this was last heard."""

    id: int
    state: str
    host: str | None
    pid: int | None
    restarts: int
    tasks: list[str]
    reason: str
    memory_bytes: int | None
    loop: dict[str, float]
    badge: str
    now: dict[str, Any] | None = None


class Task(Document):
    """A task. `rate`: records a second; `busy`: share of the time; `us`: microseconds a record; null: not known."""

    name: str
    state: str
    container: int | None
    lag: int | None
    processed: int
    rate: float | None
    busy: float | None
    us: float | None
    arriving: float | None
    behind_s: float | None
    reason: str
    stores: dict[str, Any]


class Rates(Document):
    """The job's numbers as a whole; rates are records a second."""

    model_config = ConfigDict(extra="allow", populate_by_name=True)

    into: float = Field(alias="in")
    out: float
    lag: int | None
    behind_s: float | None
    lag_rate: float
    caught_up_in_s: float | None
    loop: dict[str, float]
    commits: dict[str, Any]
    end_to_end: dict[str, Any]


class Hint(Document):
    """What is wrong, by which numbers, and what mends it. `detail`: more numbers, in words; `evidence`: the same and others, for programs."""

    code: str
    severity: Literal["act", "look", "know"]
    sentence: str
    evidence: dict[str, Any]
    detail: str = ""
    remedy: str
    since_ms: int


class Status(Document):
    """The status document, as `samzapy status --json` prints it."""

    job: str
    id: str
    state: str
    run_id: str
    coordinator: str
    reason: str
    target: int
    paused: dict[str, Any] | None = Field(None, description="Who paused the job and when (by, at_ms); null: it is not paused.")
    containers: list[Container]
    tasks: list[Task]
    moves: list[dict[str, Any]]
    rates: Rates
    hints: list[Hint]
    notes: list[str]


class SamzaTask(Document):
    """A task in Samza's form."""

    preferredHost: str | None  # noqa: N815
    taskName: str  # noqa: N815
    containerId: str  # noqa: N815
    partitions: list[dict[str, Any]]
    storeNames: list[str]  # noqa: N815


class Tasks(Document):
    """Tasks, sorted, filtered, a page at a time."""

    items: list[Task]
    found: int
    next: str | None


class Containers(Document):
    """All containers."""

    items: list[Container]


class Event(Document):
    """Something that happened. `n` grows by one with each; where events are no longer kept, numbers are missing."""

    n: int
    at_ms: int
    kind: str
    what: str
    text: str
    container: int | None


class Events(Document):
    """The timeline, oldest first. `last`: the newest event's number, for `since`."""

    items: list[Event]
    last: int


class Commit(Document):
    """A commit of a container. `parts`: seconds of send, decide, apply."""

    at_ms: int
    container: int
    why: str
    seconds: float
    parts: dict[str, float]


class Commits(Document):
    """The last commits of all containers, oldest first."""

    items: list[Commit]


class ErrorGroup(Document):
    """Errors of one class that one line raised."""

    type: str
    place: str
    count: int
    first_ms: int
    last_ms: int
    tasks: list[str]
    record: str | None
    text: str | None
    action: str | None
    stack: str | None


class Errors(Document):
    """Groups of errors, those that occurred last first."""

    items: list[ErrorGroup]


class Restore(Document):
    """A restore of a store: `needed` offsets of the changelog, `remaining` of them still to be read."""

    task: str
    store: str
    container: int | None
    source: str
    reason: str
    records: int
    seconds: float
    needed: int
    remaining: int


class Restores(Document):
    """The last restore of each store, those that are under way first."""

    items: list[Restore]


class Hints(Document):
    """The most urgent first; empty while all is well."""

    items: list[Hint]


class Series(Document):
    """The job's numbers over time, oldest first."""

    step_s: float
    items: list[dict[str, Any]]


class Graph(Document):
    """The job's topics, stores, and what flows between them; the operators of a program of streams."""

    nodes: list[dict[str, Any]]
    edges: list[dict[str, Any]]
    operators: list[dict[str, Any]]


class Config(Document):
    """Each key of the resolved configuration, its value (secrets: ***) and where it comes from."""

    items: list[dict[str, Any]]


class Model(Document):
    """The job model."""


class Now(Document):
    """What a container's loop does: `phase`, for `seconds`; in a hook, its line and record."""

    phase: str
    seconds: float
    at: str
    record: str


class Thread(Document):
    """A thread's stack, outermost frame first."""

    name: str
    is_loop: bool
    frames: list[str]


class Stack(Document):
    """What a container does at this moment; the loop's thread is the first."""

    container: int
    at_ms: int
    pid: int
    now: Now
    threads: list[Thread]


class Profile(Document):
    """Where a loop's time went. `folded`: a line for each stack, `frame;frame;frame microseconds`, outermost frame first."""

    container: int
    at_ms: int
    seconds: float
    samples: int
    folded: str


class TracedRecord(Document):
    """A record and what its hook did: `us` microseconds; null: it did not come to the hook. Keys and values are as people read them."""

    record: str
    key: str
    value: str
    us: float | None
    puts: list[dict[str, Any]]
    sent: list[dict[str, Any]]
    more: int
    error: str


class Trace(Document):
    """Records of a task that were traced; a record that was tried again is there again."""

    container: int
    at_ms: int
    task: str
    records: list[TracedRecord]


class Effect(Document):
    """What was done, or with `dry_run` would be."""

    effect: str
