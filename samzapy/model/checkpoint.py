"""The checkpoint of a task: its next input offsets, and the changelog positions of the state that belongs to them.

Written once per commit and changed task, in the same transaction as the state deltas (and, in exactly_once, the outputs). It is the only
source of truth for a restart; group offsets are a mirror. Bytes are JSON with a CRC-32 over everything else, so that damage is noticed and
any tool can read it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from zlib import crc32 as _crc32

from samzapy.model.bounded_json import brief, read_object, to_bytes
from samzapy.model.event_time import PartitionMark, partition_mark_from_json, whole

VERSION = 1
WITH_TIMES = 2  # written only by jobs with event time: an older samzapy refuses it, where it would forget the times
WITH_REFILL = 3  # likewise, while an input is read again for a store that began empty
VERSIONS = (VERSION, WITH_TIMES, WITH_REFILL)
CHECKPOINT_KEY = b"checkpoint"
BY_COMMAND = ""
MAX_BYTES = 1 << 20
MAX_CONDEMNED = 100  # of an input partition: they are in each checkpoint


@dataclass(frozen=True, slots=True)
class InputMark:
    """A task's next offset in one input partition, with the topic's id at that time.

    Attributes:
        time: of an input with `time`, its time there.
        condemned: of a bootstrap input, offsets before the next one of records that ended their container or that Kafka refused, and to which
            `on_error` was applied: when the input is read again they are passed by. The newest ones, in order.
        refill: by store, the offset from which on it has no records of this input: it began empty after they were read, and gets those before the
            next offset again (plan/refill.py). Empty nearly always.
    """

    topic_id: str
    next_offset: int
    time: PartitionMark | None = None
    condemned: tuple[int, ...] = ()
    refill: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StoreMark:
    """A store's changelog partition at a commit: topic, its id, its start and the position after the store's last record."""

    topic: str
    topic_id: str
    changelog_start: int
    position: int


@dataclass(kw_only=True, frozen=True, slots=True)
class Checkpoint:
    """One task's checkpoint.

    Attributes:
        incarnation: of the container that wrote it; BY_COMMAND: `state drop` or `checkpoint forget` did, while the job was stopped.
        sequence: counts the task's commits from 0 (checkpoint 0 is written before the first `init()`).
        inputs: by `topic[partition]` (str of TopicPartition).
        left: likewise, of inputs that the task read before and that are not its inputs now: where it goes on if they come back.
        stores: by store name; only stores with a changelog.
        startpoint_id: the last `checkpoint set` that was carried out, or "".
        ended_run_id: the run in which this task has ended, by its end of stream or by `shutdown()`, or "".
        fingerprint: what must not change between runs (serdes, stores, task count), as text per subject.
        watermarks: how far the task's event time has come, in milliseconds since 1970, by stage; NEVER: that stage has not begun, while another has. Empty
            without event time, and before any has begun.
    """

    job: str
    id: str
    task: str
    container: int
    incarnation: str
    epoch: int
    sequence: int
    inputs: Mapping[str, InputMark]
    stores: Mapping[str, StoreMark]
    startpoint_id: str = ""
    ended_run_id: str = ""
    fingerprint: Mapping[str, str] = field(default_factory=dict)
    left: Mapping[str, InputMark] = field(default_factory=dict)
    watermarks: Mapping[str, int] = field(default_factory=dict)

    @property
    def has_times(self) -> bool:
        """Whether it says anything about event time."""
        return bool(self.watermarks) or any(mark.time is not None for mark in (*self.inputs.values(), *self.left.values()))

    @property
    def version(self) -> int:
        """The first version that can say all that it says."""
        refills = any(mark.refill for mark in (*self.inputs.values(), *self.left.values()))
        return WITH_REFILL if refills else WITH_TIMES if self.has_times else VERSION

    def without_times(self) -> Checkpoint:
        """The same, with nothing known of event time."""
        inputs, left = ({p: replace(m, time=None) for p, m in marks.items()} for marks in (self.inputs, self.left))
        return replace(self, inputs=inputs, left=left, watermarks={})

    def to_bytes(self) -> bytes:
        body = {
            "version": self.version,
            "job": self.job,
            "id": self.id,
            "task": self.task,
            "container": self.container,
            "incarnation": self.incarnation,
            "epoch": self.epoch,
            "sequence": self.sequence,
            "inputs": _marks_to_json(self.inputs),
            "stores": {
                k: {"topic": m.topic, "topic_id": m.topic_id, "changelog_start": m.changelog_start, "position": m.position}
                for k, m in sorted(self.stores.items())
            },
            "startpoint_id": self.startpoint_id,
            "ended_run_id": self.ended_run_id,
            "fingerprint": dict(self.fingerprint),
            **({"left": _marks_to_json(self.left)} if self.left else {}),
            **({"watermarks": dict(self.watermarks)} if self.watermarks else {}),
        }
        return _dumps({**body, "crc": _crc(body)})

    def advanced(self, **changes: Any) -> Checkpoint:
        """The next one: sequence + 1 and `changes`."""
        return replace(self, sequence=self.sequence + 1, **changes)


class UnreadableCheckpoint(ValueError):
    """Bytes that are not a checkpoint of a known version, or are damaged."""


def checkpoint_from_bytes(data: bytes) -> Checkpoint:
    """The checkpoint that `data` holds.

    Raises:
        UnreadableCheckpoint: too large, no JSON, wrong version, wrong CRC, or a field of the wrong type.
    """
    try:
        raw = read_object(data, MAX_BYTES)
        crc = raw.pop("crc")
        if raw["version"] not in VERSIONS:
            raise UnreadableCheckpoint(f"version {brief(raw['version'])}, this samzapy reads versions {VERSION} to {VERSIONS[-1]}")
        if crc != _crc(raw):
            raise UnreadableCheckpoint("its CRC does not match its content")
        return Checkpoint(
            job=_text(raw["job"]),
            id=_text(raw["id"]),
            task=_text(raw["task"]),
            container=_number(raw["container"]),
            incarnation=_text(raw["incarnation"]),
            epoch=_number(raw["epoch"]),
            sequence=_number(raw["sequence"]),
            inputs=_marks(raw["inputs"]),
            stores={
                k: StoreMark(_text(m["topic"]), _text(m["topic_id"]), _number(m["changelog_start"]), _number(m["position"]))
                for k, m in raw["stores"].items()
            },
            startpoint_id=_text(raw["startpoint_id"]),
            ended_run_id=_text(raw["ended_run_id"]),
            fingerprint={_text(k): _text(v) for k, v in raw["fingerprint"].items()},
            left=_marks(raw.get("left", {})),
            watermarks={_text(stage): whole(w) for stage, w in raw.get("watermarks", {}).items()},
        )
    except UnreadableCheckpoint:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise UnreadableCheckpoint(
            brief(str(error)) if isinstance(error, ValueError) else brief(f"{type(error).__name__}: {error}")
        ) from None


def _marks_to_json(marks: Mapping[str, InputMark]) -> dict[str, dict[str, object]]:
    return {
        partition: {
            "topic_id": m.topic_id, "next_offset": m.next_offset, **({} if m.time is None else {"time": m.time.to_json()}),
            **({"condemned": list(m.condemned)} if m.condemned else {}),
            **({"refill": dict(m.refill)} if m.refill else {}),
        }
        for partition, m in sorted(marks.items())
    }


def _marks(raw: Mapping[str, Mapping[str, Any]]) -> dict[str, InputMark]:
    return {
        partition: InputMark(
            _text(m["topic_id"]),
            _number(m["next_offset"]),
            partition_mark_from_json(m["time"]) if "time" in m else None,
            tuple(_number(offset) for offset in m.get("condemned", ())),
            {_text(store): _number(at) for store, at in m.get("refill", {}).items()},
        )
        for partition, m in raw.items()
    }


def _dumps(value: Mapping[str, Any]) -> bytes:
    return to_bytes(value, sort_keys=True)


def _crc(body: Mapping[str, Any]) -> int:
    return _crc32(_dumps(body))


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"expected text, found {type(value).__name__}")
    return value


def _number(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise TypeError(f"expected a number of 0 or more, found {brief(value)}")
    return value
