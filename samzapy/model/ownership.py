"""The records of the coordinator topic: who owns what, which run is alive, where a bounded run ends.

One partition, compacted; every record is written in a transaction of the job's coordinator. The newest record of a key counts. `epoch` is
one counter for the whole job, +1 with every record that names an incarnation for a container, so a later owner always has the higher one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from samzapy.model.bounded_json import brief, read_object, to_bytes

VERSION = 1
MAX_BYTES = 4 << 20
LEASE_KEY = b"lease"
BEGUN_KEY = b"begun"


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
    """Who is container `container`: an incarnation, or nobody ("")."""

    container: int
    epoch: int
    incarnation: str
    tasks: tuple[str, ...]
    run_id: str
    host: str
    pid: int

    def to_bytes(self) -> bytes:
        return _dumps(asdict(self))


@dataclass(frozen=True, slots=True)
class LeaseRecord:
    """Which run's coordinator is alive, where, and when it last said so (milliseconds since 1970). `ended`: it stopped in an orderly way;
    `outcome`: then the job's last state, and `error` what it failed of, for who looks later."""

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
class Begun:
    """What the job's first run found, and every later one must find again.

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

    `offsets` and `topic_ids` (Kafka's id of the topic that the offset was meant for) are by str(TopicPartition).
    """

    id: str
    offsets: Mapping[str, int]
    topic_ids: Mapping[str, str]

    def to_bytes(self) -> bytes:
        return _dumps({"id": self.id, "offsets": dict(self.offsets), "topic_ids": dict(self.topic_ids)})


def end_offsets_to_bytes(ends: Mapping[str, int]) -> bytes:
    """Where a bounded run ends, by str(TopicPartition)."""
    return _dumps({"ends": dict(ends)})


def locality_to_bytes(hosts: Mapping[str, int]) -> bytes:
    """The hosts that have state of a task, with the epoch of the record that named its last owner there: the highest has the newest."""
    return _dumps({"hosts": dict(hosts)})


def input_to_bytes(topic: str, partitions: int) -> bytes:
    """How many partitions an input had when the job first saw it: those behind were added since."""
    return _dumps({"topic": topic, "partitions": partitions})


@dataclass(slots=True)
class Ledger:
    """The coordinator topic, folded."""

    containers: dict[int, ContainerRecord] = field(default_factory=dict)
    lease: LeaseRecord | None = None
    end_offsets: dict[str, dict[str, int]] = field(default_factory=dict)
    startpoints: dict[str, Startpoint] = field(default_factory=dict)
    locality: dict[str, dict[str, int]] = field(default_factory=dict)
    first_partitions: dict[str, int] = field(default_factory=dict)  # by topic id
    begun: Begun | None = None
    epoch: int = 0

    def apply(self, key: bytes, value: bytes | None) -> None:
        """Take one record, in the order of the log. Keys of other versions are left alone.

        Raises:
            UnreadableRecord: a key of ours with a value that is not.
        """
        kind, _, name = key.decode("utf-8", "replace").partition("/")
        try:
            if kind == "container":
                self._container(int(name), value)
            elif key == LEASE_KEY:
                self.lease = None if value is None else LeaseRecord(**_fields(value, LeaseRecord))
            elif key == BEGUN_KEY:
                self.begun = None if value is None else Begun(**_fields(value, Begun))
            elif kind == "end-offsets":
                _put(self.end_offsets, name, None if value is None else {str(k): int(v) for k, v in _loads(value)["ends"].items()})
            elif kind == "startpoint":
                _put(self.startpoints, name, None if value is None else _startpoint(value))
            elif kind == "locality":
                _put(self.locality, name, None if value is None else {str(h): int(e) for h, e in _loads(value)["hosts"].items()})
            elif kind == "input":
                _put(self.first_partitions, name, None if value is None else int(_loads(value)["partitions"]))
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
            raise UnreadableRecord(f"coordinator record {brief(key.decode('utf-8', 'replace'))}: {brief(str(error))}") from None

    def _container(self, number: int, value: bytes | None) -> None:
        if value is None:
            self.containers.pop(number, None)
            return
        raw = _fields(value, ContainerRecord)
        record = ContainerRecord(**{**raw, "tasks": tuple(str(t) for t in raw["tasks"])})
        self.containers[number] = record
        self.epoch = max(self.epoch, record.epoch)


def _startpoint(value: bytes) -> Startpoint:
    raw = _fields(value, Startpoint)
    offsets = {str(place): int(offset) for place, offset in raw["offsets"].items()}
    return Startpoint(str(raw["id"]), offsets, {place: str(raw["topic_ids"][place]) for place in offsets})


def _put(table: dict[str, Any], name: str, value: Any) -> None:
    if value is None:
        table.pop(name, None)
    else:
        table[name] = value


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
        if name not in raw and declared.type == "bool":
            continue
        if type(raw.get(name)) is not _TYPES[declared.type]:
            raise ValueError(f"field {name!r} is {brief(raw.get(name))}")
    return {k: v for k, v in raw.items() if k in record.__dataclass_fields__}  # type: ignore[attr-defined]
