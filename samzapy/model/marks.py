"""Marks: what a task tells those behind an internal topic of how far it has come. They are records of that topic, under a key of their own, in the
transaction of the records that they follow.

A time that a mark says cannot be taken back, and a wrong one makes all later records late. So marks are sealed: a checksum over what they say and the id of
the topic that they are in. What others wrote under their key, what was copied from another topic or damaged is refused. It is no signature: who may
write a job's internal topics and knows the form can falsify its time, as he can its checkpoints.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from samzapy.model.bounded_json import read_object, to_bytes

MARKS_KEY = b"\x00samzapy/times\x00\x00"  # 16 bytes; a record of a program that has it as its key is refused
assert len(MARKS_KEY) == 16
MAX_BYTES = 1 << 20
VERSION = 2
ACTIVE, IDLE, ENDED = "active", "idle", "ended"
STATES = (ACTIVE, IDLE, ENDED)


@dataclass(frozen=True, slots=True)
class Mark:
    """How far a task is with what it sends into an internal topic.

    Attributes:
        time: all that it still sends is of this time or later, or was late already; None: nothing is known.
        state: ACTIVE; IDLE: it has nothing to read and is not waited for; ENDED: a bounded run has brought all that it will bring.
        run: of ENDED, the run's id.
        first: of IDLE, the time of the first pane that open windows will still give, for which others wait; None: no window is open.
    """

    time: int | None = None
    state: str = ACTIVE
    run: str = ""
    first: int | None = None

    def to_json(self) -> list[Any]:
        return [self.time, self.state, self.run if self.first is None else str(self.first)]  # earlier versions read no third entry of IDLE


def mark_from_json(raw: object) -> Mark:
    """What `to_json` made. A state that is not known is one in which the task is waited for.

    Raises:
        TypeError, ValueError: it is something else.
    """
    if not isinstance(raw, list | tuple) or len(raw) != 3:
        raise TypeError("expected a mark: time, state, run")
    time, state, run = raw
    if not (time is None or type(time) is int) or not isinstance(state, str) or not isinstance(run, str):
        raise TypeError("expected a mark: a whole number or null, and two texts")
    first = int(run) if state == IDLE and run else None
    return Mark(time, state if state in STATES else ACTIVE, run if state == ENDED else "", first)


def marks_to_bytes(marks: Mapping[str, Mark], topic_id: str) -> bytes:
    """The value of a record with these marks, by task, in the topic of that id."""
    content = {task: mark.to_json() for task, mark in sorted(marks.items())}
    return to_bytes({"v": VERSION, "marks": content, "seal": _seal(content, topic_id)})


def _seal(content: Mapping[str, Any], topic_id: str) -> str:
    return hashlib.blake2b(to_bytes({"topic": topic_id, "marks": dict(sorted(content.items()))}), digest_size=8).hexdigest()


def marks_from_bytes(data: bytes | None, topic_id: str) -> dict[str, Mark]:
    """The marks that a record's value holds, by task; the record is in the topic of that id.

    Raises:
        ValueError: it holds none of a known version, or not as a job has written them into this topic.
    """
    try:
        raw = read_object(data, MAX_BYTES)
        if raw.get("v") != VERSION:
            raise ValueError("an unknown version")
        if raw["seal"] != _seal(dict(raw["marks"]), topic_id):
            raise ValueError("its checksum is wrong, so this job did not write it here: it is damaged, copied, or another program's")
        return {str(task): mark_from_json(mark) for task, mark in dict(raw["marks"]).items()}
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"a record whose key is samzapy's own key for marks holds no mark: {error}") from None
