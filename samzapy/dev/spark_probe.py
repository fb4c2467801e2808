"""Ask a Spark master what it has: its address, and the workers that are registered and alive.

The answer is the JSON of its web page. It names the master's own URL, so an answer from another cluster on the same port is not taken
for this one's. Anything but a whole, sound answer is no answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from samzapy.http_client import NO_ANSWER, ask

ALIVE = "ALIVE"


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
    try:
        answer = ask("GET", host, port, "/json/", timeout_s)
        return read_master(answer.json()) if answer.is_ok else None
    except (*NO_ANSWER, TypeError, KeyError):
        return None


def read_master(state: Any) -> Master:
    """Decode an answer.

    Raises:
        TypeError, KeyError, ValueError: it is none.
    """
    workers = tuple(
        RegisteredWorker(str(w["host"]), int(w["port"]), int(w["cores"]), int(w["coresused"]))
        for w in state["workers"]
        if w["state"] == ALIVE
    )
    return Master(str(state["url"]), state["status"] == ALIVE, workers)
