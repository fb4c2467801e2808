"""Ask a Spark master what it has: its address, and the workers that are registered and alive.

The answer is the JSON of its web page. It names the master's own URL, so an answer from another cluster on the same port is not taken
for this one's. Anything but a whole, sound answer is no answer.
"""

from __future__ import annotations

import http.client
import json
from dataclasses import dataclass
from typing import Any

ALIVE = "ALIVE"
_MOST_BYTES = 16 << 20


@dataclass(frozen=True)
class RegisteredWorker:
    """A worker as its master sees it."""

    host: str
    port: int
    cores: int
    cores_used: int


@dataclass(frozen=True)
class Master:
    """What a master says of itself and of its workers that are alive."""

    url: str
    is_leading: bool
    workers: tuple[RegisteredWorker, ...]

    @property
    def hosts(self) -> frozenset[str]:
        return frozenset(worker.host for worker in self.workers)

    @property
    def cores(self) -> int:
        return sum(worker.cores for worker in self.workers)

    @property
    def free_cores(self) -> int:
        return sum(worker.cores - worker.cores_used for worker in self.workers)


def ask_master(host: str, port: int, timeout_s: float = 2.0) -> Master | None:
    """The master whose web page is at this address, None if it gives no answer."""
    connection = http.client.HTTPConnection(host, port, timeout=timeout_s)
    try:
        connection.request("GET", "/json/")
        response = connection.getresponse()
        body = response.read(_MOST_BYTES)
        return read_master(json.loads(body)) if response.status == http.client.OK else None
    except (OSError, ValueError, TypeError, KeyError, http.client.HTTPException):
        return None
    finally:
        connection.close()


def read_master(told: Any) -> Master:
    """Decode an answer.

    Raises:
        TypeError, KeyError, ValueError: it is none.
    """
    workers = tuple(
        RegisteredWorker(str(w["host"]), int(w["port"]), int(w["cores"]), int(w["coresused"]))
        for w in told["workers"]
        if w["state"] == ALIVE
    )
    return Master(str(told["url"]), told["status"] == ALIVE, workers)
