"""Lines of text to records and back: what `samzapy send` reads and `samzapy tail` prints.

A line is checked as a whole before anything of it is sent. A record is one line whatever is in it: control characters are escaped, so what
somebody else wrote into a topic cannot move a terminal's cursor.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from samzapy.api.envelope import headers_of
from samzapy.api.errors import SerdeError
from samzapy.api.serde import Serde
from samzapy.ops.exact_json import exact, header
from samzapy.ops.shown import read, text_of
from samzapy.ports import Message
from samzapy.printable import printable
from samzapy.serde.record import RecordSerde

TAB = b"\t"
RECORD_OVERHEAD_BYTES = 70  # what Kafka adds to key and value of a record, at most, without headers
TOMBSTONE, NO_KEY = "(tombstone)", "(no key)"
Record = tuple[bytes | None, bytes | None]


@dataclass(frozen=True, slots=True)
class BadLine:
    """A line that is no record, and why."""

    number: int
    why: str

    def __str__(self) -> str:
        return f"line {self.number}: {self.why}"


@dataclass(frozen=True, slots=True)
class LineForm:
    """How a line is to be read.

    Attributes:
        key: the serde of keys, with its name; None: a line is a value, without a key.
        null_marker: a value of exactly this text is a tombstone; None: nothing is.
        max_bytes: the largest record that the topic takes.
    """

    value: tuple[str, Serde]
    key: tuple[str, Serde] | None = None
    null_marker: bytes | None = None
    max_bytes: int = 1 << 30

    def record(self, line: bytes) -> Record:
        """The record of a line without its end.

        Raises:
            ValueError: it is none; says why.
        """
        raw_key, raw = None, line
        if self.key is not None:
            raw_key, tab, raw = line.partition(TAB)
            if not tab:
                raise ValueError("there is no tab between key and value")
        key = None if self.key is None or raw_key is None else _encoded("key", *self.key, raw_key)
        value = None if raw == self.null_marker else _encoded("value", *self.value, raw)
        size = len(key or b"") + len(value or b"") + RECORD_OVERHEAD_BYTES
        if size > self.max_bytes:
            raise ValueError(f"about {size} bytes, more than the topic takes ({self.max_bytes}, max.message.bytes)")
        return key, value


def records_of(lines: Iterable[bytes], form: LineForm, bad: Callable[[BadLine], None]) -> Iterator[Record]:
    """The records of those lines that are some; the others go to `bad`, as they come."""
    for number, line in enumerate(lines, 1):
        try:
            yield form.record(line.removesuffix(b"\n").removesuffix(b"\r"))
        except ValueError as error:
            bad(BadLine(number, str(error)))


def _encoded(what: str, name: str, serde: Serde, raw: bytes) -> bytes:
    try:
        return serde.encode(raw if name == "bytes" else value_of(name, raw.decode(), serde))
    except UnicodeDecodeError as error:
        raise ValueError(f"the {what} is not UTF-8: {error.reason} at byte {error.start}") from None
    except (ValueError, RecursionError) as error:
        raise ValueError(f"the {what} is not JSON, which serde {name} requires: {error}") from None
    except SerdeError as error:
        raise ValueError(f"the {what}: {error.message.rstrip('.')}") from None


def value_of(name: str, text: str, serde: Serde | None = None) -> Any:
    """What a person means by `text`: itself where the serde of that name is string, bytes where it is bytes, else JSON; of a class's, an object of it.

    Raises:
        ValueError: no JSON. SerdeError: JSON that does not fit the class.
    """
    if isinstance(serde, RecordSerde):
        return serde.of_json(text.encode())
    return text if name == "string" else text.encode() if name == "bytes" else json.loads(text)


# -- back ----------------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Shown:
    """How records are to be printed: each serde, or None for text as it is."""

    key: Serde | None = None
    value: Serde | None = None

    def line(self, message: Message) -> str:
        """partition@offset, key, value and headers, with tabs between.

        Raises:
            SerdeError: key or value are none of the serde, or the headers cannot be read.
        """
        raw_key, raw = message.key(), message.value()
        cells = [
            f"{message.partition()}@{message.offset()}",
            NO_KEY if raw_key is None else text_of(_decoded(self.key, raw_key)),
            TOMBSTONE if raw is None else text_of(_decoded(self.value, raw)),
            *(f"{printable(name)}={'' if value is None else text_of(value)}" for name, value in headers_of(message)),
        ]
        return "\t".join(cells)

    def document(self, message: Message) -> dict[str, Any]:
        """The same for machines; nothing is lost.

        Raises:
            SerdeError: as `line`.
        """
        raw_key, raw = message.key(), message.value()
        return {
            "topic": message.topic(),
            "partition": message.partition(),
            "offset": message.offset(),
            "timestamp": message.timestamp()[1],
            **exact("key", raw_key, read(self.key, raw_key)),
            **exact("value", raw, read(self.value, raw)),
            "tombstone": raw is None,
            "headers": [[name, header(value)] for name, value in headers_of(message)],
        }


def _decoded(serde: Serde | None, data: bytes) -> Any:
    return data.decode("utf-8", "backslashreplace") if serde is None else read(serde, data)
