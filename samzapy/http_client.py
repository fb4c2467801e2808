"""One request over HTTP to one of ours, or to a Spark master: bounded in time and size, to the address given and nowhere else."""

from __future__ import annotations

import http.client
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

MAX_ANSWER_BYTES = 16 << 20
NO_ANSWER = (OSError, ValueError, http.client.HTTPException)  # what `ask` and `Answer.json` raise where nobody answers, or not soundly


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back."""

    status: int
    reason: str
    body: bytes

    @property
    def is_ok(self) -> bool:
        return self.status == http.client.OK

    def json(self) -> Any:
        """Raises: ValueError: it is none."""
        return json.loads(self.body)


def ask(
    method: str, host: str, port: int | None, path: str, timeout_s: float, body: bytes = b"", headers: Mapping[str, str] | None = None
) -> Answer:
    """One request on a connection of its own.

    Raises:
        NO_ANSWER: nobody answers there, or not with HTTP.
    """
    connection = http.client.HTTPConnection(host, port, timeout=timeout_s)
    try:
        connection.request(method, path, body or None, dict(headers or {}))
        response = connection.getresponse()
        return Answer(response.status, response.reason, response.read(MAX_ANSWER_BYTES))
    finally:
        connection.close()
