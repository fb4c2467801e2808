"""A log's lines as JSON, for programs: one object a line, with what an event is about in fields of its own.

    {"time": "2026-01-31T12:00:00.123Z", "level": "WARNING", "logger": "samzapy.container", "message": "…", "job": "visits-1", "container": 0,
     "task": "Partition 3", "topic": "visits", "partition": 3, "offset": 17}

`task`, `topic`, `partition`, `offset` and `code` (of an error, as `SZ320`) are there where the message names them.
"""

from __future__ import annotations

import json
import logging
import re
from datetime import UTC, datetime
from typing import Any

from samzapy.printable import printable_json

TEXT, JSON = "text", "json"
FORMATS = (TEXT, JSON)
_TASK = re.compile(r"\bPartition \d+\b")
_CODE = re.compile(r"\b(SZ[0-9]{3})(?=[\]:])")
_PLACE = re.compile(r"(?<![\w.-])([A-Za-z0-9._-]{1,249})\[(\d{1,9})\](?:@| at offset )?(\d{1,18})?")


class JsonLines(logging.Formatter):
    """A log record as one line of JSON.

    Args:
        facts: of the process: `job`, `container`.
    """

    def __init__(self, **facts: Any) -> None:
        super().__init__()
        self._facts = facts

    def format(self, record: logging.LogRecord) -> str:
        message = record.getMessage()
        document = {**document_of(message, record.created, record.levelname, record.name), **self._facts}
        if record.exc_info:
            document["traceback"] = self.formatException(record.exc_info)
        return json_line(document)


def document_of(message: str, seconds: float, level: str, logger: str) -> dict[str, Any]:
    """The fields of an event. `seconds`: since 1970."""
    time = datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    document: dict[str, Any] = {"time": time, "level": level, "logger": logger, "message": message}
    task, place = _TASK.search(message), _PLACE.search(message)
    if code := _CODE.search(message):
        document["code"] = code[1]
    if task:
        document["task"] = task[0]
    if place:
        document |= {"topic": place[1], "partition": int(place[2])}
        if place[3]:
            document["offset"] = int(place[3])
    return document


def json_line(document: dict[str, Any]) -> str:
    """One line, in which what others wrote does nothing to a terminal."""
    return printable_json(json.dumps(document, ensure_ascii=False))
