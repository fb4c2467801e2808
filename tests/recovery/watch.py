"""Looking at a running job all the time, in a thread: its status as it is now, and the samples from which recovery times are told."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from tests.beside import Beside
from tests.recovery.faults import Sample, sample_of
from tests.recovery.job import Status

LOOK_S = 0.05


@dataclass(frozen=True, slots=True)
class Restore:
    """How a store was there again, as the status told it."""

    source: str
    records: int
    seconds: float
    reason: str


class Watch(Beside):
    """Asks `look` every 50 ms while the block is open."""

    def __init__(self, look: Callable[[], Status | None]) -> None:
        super().__init__("watch")
        self._look = look
        self._changed = threading.Condition()
        self._looks = 0
        self._samples: list[Sample] = []
        self._restores: dict[tuple[object, ...], Restore] = {}
        self._status: Status | None = None
        self._failure: Exception | None = None

    def samples(self) -> list[Sample]:
        with self._changed:
            return list(self._samples)

    def restores(self) -> list[Restore]:
        """Every restore that was seen, one for each store of each task in each process that had it."""
        with self._changed:
            return list(self._restores.values())

    def _note_restores(self, status: Status) -> None:
        pids = {c["id"]: c.get("pid") for c in status["containers"]}
        for task in status["tasks"]:
            for store, told in task.get("stores", {}).items():
                if restore := told.get("restore"):
                    key = (pids.get(task["container"]), task["name"], store, restore["source"], restore["seconds"])
                    self._restores[key] = Restore(restore["source"], restore["records"], restore["seconds"], restore["reason"])

    def next(self, limit_s: float = 30.0) -> Status | None:
        """The status of a look that begins after this call; None where no coordinator answers.

        Raises:
            what ended the watch, if something did.
        """
        with self._changed:
            wanted = self._looks + 2  # one may be under way
            came = self._changed.wait_for(lambda: self._looks >= wanted or self._failure is not None, limit_s)
            if self._failure is not None:
                raise self._failure
            assert came, f"no look at the job's status within {limit_s:.0f} s"
            return self._status

    def _run(self) -> None:
        try:
            while not self._stopping.wait(LOOK_S):
                at_ms = time.time_ns() // 1_000_000
                status = self._look()
                with self._changed:
                    self._status = status
                    self._samples.append(sample_of(status, at_ms))
                    self._looks += 1
                    if status is not None:
                        self._note_restores(status)
                    self._changed.notify_all()
        except Exception as failure:
            with self._changed:
                self._failure = failure  # raised to whoever asks
                self._changed.notify_all()
