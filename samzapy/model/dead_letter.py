"""The records of a dead-letter topic: records that a task could not process, unchanged, and whether they were sent back.

A dead letter is the record's own key and value with its own headers first and samzapy's after them, in a fixed order that begins with
`samzapy-topic`. So the record can be restored exactly, whatever headers it had: it may have been a dead letter before. The topic has two more
kinds of records, without key and value, for `samzapy dlq replay`: a trace says which dead letters of its partition were sent back, and a
replay reads up to a barrier to be sure that it has seen every trace.

A record that the topic cannot take whole is shortened, and says so with the header `samzapy-truncated`: the whole lies at its origin only.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from samzapy.api.envelope import Headers

TOPIC, PARTITION, OFFSET, TIMESTAMP = "samzapy-topic", "samzapy-partition", "samzapy-offset", "samzapy-timestamp"
TASK, ERROR, STACK, ATTEMPTS, TIME = "samzapy-task", "samzapy-error", "samzapy-stack", "samzapy-attempts", "samzapy-time"
TRUNCATED = "samzapy-truncated"
REPLAYED, BARRIER = "samzapy-replayed", "samzapy-barrier"
DISCARDED = "samzapy-discarded"  # of a trace, beside REPLAYED: it was not sent back
WINDOW = "samzapy-window"  # of a dead letter that is a pane of this window: before the others, since it stands in the place of its record's own headers
REPLAY_OF = "samzapy-replay-of"  # of a record that was sent back: the dead letter that it was
MAX_ERROR_BYTES = 1000
MAX_STACK_BYTES = 8000
NOT_READ = "key=? value=? headers=?"  # what `samzapy-truncated` says of a record that no client could read
HEADERS_NOT_READ = "headers=?"  # … of one whose headers the client cannot read; key and value are whole
OVERHEAD_BYTES, HEADER_OVERHEAD_BYTES = 100, 10  # batch and record headers, varints: rounded up
_ORIGIN = re.compile(r"(?P<topic>[A-Za-z0-9._-]{1,249})\[(?P<partition>[0-9]{1,9})\]@(?P<offset>[0-9]{1,18})")


class Origin(NamedTuple):
    """A record of a topic. Prints as `page-views[0]@17`."""

    topic: str
    partition: int
    offset: int

    def __str__(self) -> str:
        return f"{self.topic}[{self.partition}]@{self.offset}"


def parse_origin(text: str) -> Origin | None:
    """The record that `page-views[0]@17` names; None if it names none."""
    found = _ORIGIN.fullmatch(text)
    return Origin(found["topic"], int(found["partition"]), int(found["offset"])) if found else None


@dataclass(kw_only=True, frozen=True, slots=True)
class DeadLetter:
    """A record that could not be processed. Times in milliseconds since 1970: `timestamp_ms` is the record's own, `time_ms` that of the failure.

    `truncated`: "" where key, value and headers are the record's; else how many bytes of each it had.
    """

    origin: Origin
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]]
    task: str
    error: str
    stack: str
    attempts: int
    timestamp_ms: int
    time_ms: int
    truncated: str = ""

    def to_headers(self) -> list[tuple[str, bytes | None]]:
        """The record's headers, then samzapy's."""
        own = (
            (TOPIC, self.origin.topic), (PARTITION, str(self.origin.partition)), (OFFSET, str(self.origin.offset)),
            (TIMESTAMP, str(self.timestamp_ms)), (TASK, self.task), (ERROR, self.error), (STACK, self.stack),
            (ATTEMPTS, str(self.attempts)), (TIME, str(self.time_ms)),
            *(((TRUNCATED, self.truncated),) if self.truncated else ()),
        )  # fmt: skip
        return [*self.headers, *((name, _bytes(text)) for name, text in own)]

    @property
    def size(self) -> int:
        """Bytes that it takes in the topic, rounded up."""
        return record_size(self.key, self.value, self.to_headers())

    def fitted(self, limit: int) -> DeadLetter | None:
        """Shortened to at most `limit` bytes: first its stack, then its error, then the record; None if even that is too large."""
        letter = replace(self, error=cut(self.error, MAX_ERROR_BYTES), stack=cut_front(self.stack, MAX_STACK_BYTES))
        if (excess := letter.size - limit) > 0:
            letter = replace(letter, stack=cut_front(letter.stack, len(_bytes(letter.stack)) - excess))
        if (excess := letter.size - limit) > 0:
            letter = replace(letter, error=cut(letter.error, len(_bytes(letter.error)) - excess))
        return letter if letter.size <= limit else self._shortened(limit)

    def _shortened(self, limit: int) -> DeadLetter | None:
        """With less of the record itself: the largest of value, key and headers is cut first."""
        had = {"key": _size(self.key), "value": _size(self.value), "headers": _headers_size(self.headers)}
        sizes = " ".join(f"{name}={'-' if data is None else had[name]}" for name, data in (("key", self.key), ("value", self.value)))
        headers = f"headers={had['headers']}" if not self.truncated else HEADERS_NOT_READ
        error = cut(self.error, min(MAX_ERROR_BYTES, limit // 4))
        letter = replace(self, stack="", error=error, truncated=NOT_READ if self.truncated == NOT_READ else f"{sizes} {headers}")
        for part in sorted(had, key=lambda name: -had[name]):
            excess = letter.size - limit
            if excess <= 0:
                break
            if part == "headers":
                letter = replace(letter, headers=_first_headers(self.headers, had[part] - excess))
            elif part == "key":
                letter = replace(letter, key=self.key and self.key[: max(0, had[part] - excess)])
            else:
                letter = replace(letter, value=self.value and self.value[: max(0, had[part] - excess)])
        return letter if letter.size <= limit else None


def record_size(key: bytes | None, value: bytes | None, headers: Headers) -> int:
    """Bytes that a record takes in a topic, rounded up."""
    return _size(key) + _size(value) + OVERHEAD_BYTES + _headers_size(headers)


def _size(data: bytes | None) -> int:
    return len(data or b"")


def _headers_size(headers: Headers) -> int:
    return sum(len(name.encode()) + _size(data) + HEADER_OVERHEAD_BYTES for name, data in headers)


def _first_headers(headers: Headers, limit: int) -> list[tuple[str, bytes | None]]:
    """The first ones that fit into `limit` bytes, each whole."""
    kept: list[tuple[str, bytes | None]] = []
    for header in headers:
        limit -= _headers_size([header])
        if limit < 0:
            break
        kept.append(header)
    return kept


def read_letter(key: bytes | None, value: bytes | None, headers: Headers | None) -> DeadLetter | None:
    """The dead letter in a record; None if the record is not one."""
    given = list(headers or ())
    begin = max((i for i, (name, _) in enumerate(given) if name == TOPIC), default=-1)
    if begin < 0:
        return None
    own = {name: _text(data) for name, data in given[begin:]}
    numbers = [own.get(name, "") for name in (PARTITION, OFFSET, ATTEMPTS, TIME)]
    of_record = own.get(TIMESTAMP, "")
    if (
        not all(re.fullmatch(r"[0-9]{1,18}|-1", n, re.ASCII) for n in numbers)
        or "-1" in numbers[:2]
        or not re.fullmatch(r"-?[0-9]{1,19}", of_record, re.ASCII)  # whatever 64 bits hold: brokers take times before 1970
        or not {TASK, ERROR, STACK} <= set(own)
    ):
        return None
    partition, offset, attempts, time_ms = map(int, numbers)
    origin = Origin(own[TOPIC], partition, offset)
    truncated = own.get(TRUNCATED, "")
    return DeadLetter(
        origin=origin,
        key=key,
        value=value,
        headers=given[:begin],
        task=own[TASK],
        error=own[ERROR],
        stack=own[STACK],
        attempts=attempts,
        timestamp_ms=int(of_record),
        time_ms=time_ms,
        truncated=truncated,
    )


def trace_headers(offset: int, time_ms: int, is_discarded: bool = False) -> list[tuple[str, bytes | None]]:
    """The headers of a trace: the dead letter at this offset of this partition was sent back, or discarded."""
    return [(REPLAYED, _bytes(str(offset))), (TIME, _bytes(str(time_ms))), *([(DISCARDED, b"")] if is_discarded else [])]


def read_trace(headers: Headers | None) -> tuple[int, int, bool] | None:
    """(offset of the dead letter that was dealt with, when, whether it was discarded and not sent back); None if the record is not a trace."""
    own = {name: _text(data) for name, data in headers or ()}
    offset, time_ms = own.get(REPLAYED, ""), own.get(TIME, "")
    is_trace = all(re.fullmatch(r"[0-9]{1,18}", n, re.ASCII) for n in (offset, time_ms)) and TOPIC not in own
    return (int(offset), int(time_ms), DISCARDED in own) if is_trace else None


def replay_headers(letter: DeadLetter, place: Origin) -> list[tuple[str, bytes | None]]:
    """The headers of a record that is sent back: its own, and which dead letter it was; after several replays, only the last one.

    That is always the last header. One of that name elsewhere, or with another content, is the record's own.
    """
    own = list(letter.headers)
    if own and own[-1][0] == REPLAY_OF and parse_origin(_text(own[-1][1])) is not None:
        own.pop()
    return [*own, (REPLAY_OF, _bytes(str(place)))]


def is_internal(headers: Headers | None) -> bool:
    """Whether a record is a trace or a barrier."""
    names: Iterable[str] = (name for name, _ in headers or ())
    return TOPIC not in (found := set(names)) and bool(found & {REPLAYED, BARRIER})


def cut(text: str, limit: int) -> str:
    """The first bytes of the text as UTF-8, at most `limit`."""
    return _bytes(text)[: max(0, limit)].decode("utf-8", "ignore")


def cut_front(text: str, limit: int) -> str:
    """The last bytes of the text as UTF-8, at most `limit`: of a stack, the innermost frames."""
    data = _bytes(text)
    return data[max(0, len(data) - max(0, limit)) :].decode("utf-8", "ignore")


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "backslashreplace")


def _text(data: bytes | None) -> str:
    return (data or b"").decode("utf-8", "replace")
