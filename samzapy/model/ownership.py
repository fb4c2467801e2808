"""The records of the coordinator topic: which container owns which tasks, which run is alive, where a bounded run ends.

One partition, compacted; every record is written in a transaction of the job's coordinator. The newest record of a key counts. `epoch` is
one counter for the whole job, +1 with every record that names an incarnation for a container, so a later owner always has the higher one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, MutableMapping
from dataclasses import MISSING, asdict, dataclass, field
from typing import Any
from urllib.parse import urlsplit

from samzapy.model.bounded_json import NOT_UNDERSTOOD, brief, read_object, to_bytes
from samzapy.model.records import Records
from samzapy.model.run_record import HISTORY

VERSION = 1
MAX_BYTES = 4 << 20
LATEST_MS = 32_503_680_000_000  # the year 3000
MAX_PID = 1 << 31
MAX_URL = 300
MAX_DIGITS = 9  # of a container's number
LEASE_KEY = b"lease"
FIRST_RUN_KEY = b"begun"


class UnreadableRecord(ValueError):
    """A record of the coordinator topic that this version cannot read."""


def container_key(container: int) -> bytes:
    return f"container/{container}".encode()


def end_offsets_key(run_id: str) -> bytes:
    return f"end-offsets/{run_id}".encode()


def startpoint_key(task: str) -> bytes:
    return f"startpoint/{task}".encode()


def locality_key(task: str) -> bytes:
    return f"locality/{task}".encode()


def input_key(topic_id: str) -> bytes:
    return f"input/{topic_id}".encode()


@dataclass(frozen=True, slots=True)
class ContainerRecord:
    """The owner of container `container`: an incarnation, or none ("")."""

    container: int
    epoch: int
    incarnation: str
    tasks: tuple[str, ...]
    run_id: str
    host: str
    pid: int

    def to_bytes(self) -> bytes:
        return _dumps(asdict(self))


@dataclass(kw_only=True, frozen=True, slots=True)
class LeaseRecord:
    """Which run's coordinator is alive, where, and when it last renewed this (milliseconds since 1970). `ended`: it stopped in an orderly way;
    `outcome`: then the job's last state, and `error` the reason of a failure, for later `status` commands."""

    run_id: str
    url: str
    host: str
    pid: int
    process_start: str
    renewed_ms: int
    ended: bool = False
    outcome: str = ""
    error: str = ""

    def to_bytes(self) -> bytes:
        return _dumps(asdict(self))


@dataclass(frozen=True, slots=True)
class FirstRun:
    """Facts of the job's first run, which must still hold in every later one.

    `checkpoint_topic_id`: Kafka's id of the checkpoint topic: of another topic by that name nothing is known of where the job was. `tasks`:
    their number, if the job has stores, else 0.
    """

    checkpoint_topic_id: str
    tasks: int

    def to_bytes(self) -> bytes:
        return _dumps(asdict(self))


@dataclass(frozen=True, slots=True)
class Startpoint:
    """Offsets that a task's next start commits before `init()`, once: its id is then in the checkpoint.

    `offsets` and `topic_ids` (Kafka's id of the topic that the offset was meant for) are by str(TopicPartition). `checkpoints_from`: the log
    start of the task's checkpoint partition when this was ordered. If it is higher later, the checkpoint that carried this out may be deleted.
    `deletes`: with it, deletions of state were written into changelogs, after the positions that the checkpoint names.
    """

    id: str
    offsets: Mapping[str, int]
    topic_ids: Mapping[str, str]
    checkpoints_from: int = 0
    deletes: bool = False

    def to_bytes(self) -> bytes:
        places = {"offsets": dict(self.offsets), "topic_ids": dict(self.topic_ids)}
        return _dumps({"id": self.id, **places, "checkpoints_from": self.checkpoints_from, "deletes": self.deletes})


def end_offsets_to_bytes(ends: Mapping[str, int]) -> bytes:
    """The end offsets of a bounded run, by str(TopicPartition)."""
    return _dumps({"ends": dict(ends)})


def locality_to_bytes(hosts: Mapping[str, int]) -> bytes:
    """The hosts that have state of a task, with the epoch of the record that named its last owner there: the highest has the newest."""
    return _dumps({"hosts": dict(hosts)})


def input_to_bytes(topic: str, partitions: int) -> bytes:
    """How many partitions an input had when the job first saw it: partitions with higher numbers were added later."""
    return _dumps({"topic": topic, "partitions": partitions})


_Read = Callable[[bytes], Any]


@dataclass(kw_only=True, slots=True)
class Ledger:
    """The coordinator topic, folded. Who asks for a record that cannot be read gets the error that says so; other records are as they are.

    `start`: the topic's log start. Nothing of samzapy moves it, and compaction does not: above 0, somebody deleted records. `history`: by run id, the
    records of runs as they were written: nobody who decides something reads them.
    """

    containers: MutableMapping[int, ContainerRecord] = field(default_factory=Records)
    end_offsets: MutableMapping[str, dict[str, int]] = field(default_factory=Records)
    startpoints: MutableMapping[str, Startpoint] = field(default_factory=Records)
    locality: MutableMapping[str, dict[str, int]] = field(default_factory=Records)
    first_partitions: MutableMapping[str, int] = field(default_factory=Records)  # by topic id
    epoch: int = 0
    single: MutableMapping[bytes, Any] = field(default_factory=Records)
    values: dict[bytes, bytes] = field(default_factory=dict)  # of ours, as they were written
    unreadable: dict[bytes, Exception] = field(default_factory=dict)
    start: int = 0
    history: dict[str, bytes] = field(default_factory=dict)

    @property
    def lease(self) -> LeaseRecord | None:
        lease: LeaseRecord | None = self.single.get(LEASE_KEY)
        return lease

    @property
    def first_run(self) -> FirstRun | None:
        first_run: FirstRun | None = self.single.get(FIRST_RUN_KEY)
        return first_run

    def apply(self, key: bytes, value: bytes | None) -> None:
        """Apply one record; in the order of the log. Keys of other versions are ignored.

        Raises:
            UnreadableRecord: a key of ours with a value that is not.
        """
        found = self._place(key)
        if found is None:
            self._apply_history(key, value)
            return
        table, name, read = found
        if value is None:
            del table[name]
            self.values.pop(key, None)
            return
        try:
            record = read(value)
        except NOT_UNDERSTOOD as error:
            raise UnreadableRecord(f"coordinator record {brief(key.decode('utf-8', 'replace'))}: {brief(str(error))}") from None
        table[name], self.values[key] = record, value
        if isinstance(record, ContainerRecord):
            self.epoch = max(self.epoch, record.epoch)

    def _apply_history(self, key: bytes, value: bytes | None) -> None:
        run_id = key.decode("utf-8", "replace").removeprefix(HISTORY)
        if key.startswith(HISTORY.encode()):
            self.history.pop(run_id, None)
            if value is not None:
                self.history[run_id] = value

    def cannot_read(self, key: bytes, error: Exception) -> None:
        """The newest record of this key is one that `apply` refused: who asks for it gets `error`."""
        self.unreadable[key] = error
        found = self._place(key)
        if found is not None and isinstance(found[0], Records):
            found[0].unreadable[found[1]] = error

    def must_be_readable(self, keys: Iterable[bytes]) -> None:
        """
        Raises:
            Exception: of the first of these records that cannot be read, what `cannot_read` was told.
        """
        for key in keys:
            if key in self.unreadable:
                raise self.unreadable[key]

    def _place(self, key: bytes) -> tuple[MutableMapping[Any, Any], Any, _Read] | None:
        """Where a record of this key goes, by which name, and how it is read; None: it is nobody's."""
        kind, _, name = key.decode("utf-8", "replace").partition("/")
        if key in _SINGLE:
            return self.single, key, _SINGLE[key]
        if kind == "container":
            number = container_number(name)
            return None if number is None else (self.containers, number, _container)
        tables: Mapping[str, MutableMapping[str, Any]] = {
            "end-offsets": self.end_offsets, "startpoint": self.startpoints, "locality": self.locality, "input": self.first_partitions,
        }  # fmt: skip
        return (tables[kind], name, _NAMED[kind]) if kind in tables else None


def container_number(name: str) -> int | None:
    """The number in a container's key; None: samzapy writes no such key."""
    is_number = name.isascii() and name.isdigit() and len(name) <= MAX_DIGITS
    return int(name) if is_number and str(int(name)) == name else None


def _container(value: bytes) -> ContainerRecord:
    raw = _fields(value, ContainerRecord)
    return ContainerRecord(**{**raw, "tasks": tuple(str(t) for t in raw["tasks"])})


def _first_run(value: bytes) -> FirstRun:
    return FirstRun(**_fields(value, FirstRun))


def _lease(value: bytes) -> LeaseRecord:
    lease = LeaseRecord(**_fields(value, LeaseRecord))
    if not 0 <= lease.renewed_ms < LATEST_MS:
        raise ValueError(f"field 'renewed_ms' is {brief(lease.renewed_ms)}, not a time in milliseconds since 1970")
    if not 0 <= lease.pid < MAX_PID:
        raise ValueError(f"field 'pid' is {brief(lease.pid)}, not a process id")
    if lease.url and not _is_address(lease.url):
        raise ValueError(f"field 'url' is {brief(lease.url)}, not the http://HOST:PORT or https://HOST:PORT of a coordinator")
    return lease


def _is_address(url: str) -> bool:
    """Whether this is http(s)://HOST or http(s)://HOST:PORT, without path or user, so that nothing can be added to a request's head."""
    if not url.isascii() or not url.isprintable() or " " in url or len(url) > MAX_URL:
        return False
    try:
        parts = urlsplit(url)
        return (
            parts.scheme in ("http", "https")
            and bool(parts.hostname)
            and parts.port != 0
            and url == f"{parts.scheme}://{parts.netloc}"
            and "@" not in parts.netloc
        )
    except ValueError:
        return False


def _startpoint(value: bytes) -> Startpoint:
    raw = _fields(value, Startpoint)
    offsets = {str(partition): int(offset) for partition, offset in raw["offsets"].items()}
    ids = {partition: str(raw["topic_ids"][partition]) for partition in offsets}
    return Startpoint(str(raw["id"]), offsets, ids, raw.get("checkpoints_from", 0), bool(raw.get("deletes", True)))  # earlier versions do not say


def _end_offsets(value: bytes) -> dict[str, int]:
    return {str(partition): int(offset) for partition, offset in _loads(value)["ends"].items()}


def _locality(value: bytes) -> dict[str, int]:
    return {str(host): int(epoch) for host, epoch in _loads(value)["hosts"].items()}


def _partitions(value: bytes) -> int:
    return int(_loads(value)["partitions"])


def _dumps(body: Mapping[str, Any]) -> bytes:
    return to_bytes({"v": VERSION, **body})


def _loads(data: bytes) -> dict[str, Any]:
    raw = read_object(data, MAX_BYTES)
    if raw.pop("v", None) != VERSION:
        raise ValueError("an unknown version")
    return raw


_TYPES = {"int": int, "str": str, "bool": bool, "tuple[str, ...]": list, "Mapping[str, int]": dict, "Mapping[str, str]": dict}


def _fields(data: bytes, record: type) -> dict[str, Any]:
    """The fields of `record` that `data` holds, each of its type."""
    raw = _loads(data)
    for name, declared in record.__dataclass_fields__.items():  # type: ignore[attr-defined]
        if name not in raw and declared.default is not MISSING:
            continue
        if type(raw.get(name)) is not _TYPES[declared.type]:
            raise ValueError(f"field {name!r} is {brief(raw.get(name))}")
    return {k: v for k, v in raw.items() if k in record.__dataclass_fields__}  # type: ignore[attr-defined]


_SINGLE: Mapping[bytes, _Read] = {LEASE_KEY: _lease, FIRST_RUN_KEY: _first_run}
_NAMED: Mapping[str, _Read] = {"end-offsets": _end_offsets, "startpoint": _startpoint, "locality": _locality, "input": _partitions}
