"""All jobs of the Kafka cluster, by name, state and link; read now and then, however many ask."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from samzapy.api.errors import SamzapyError

FRESH_S = 10.0


class Cluster:
    """`read`: the jobs, each with job, id, state, url, run_id, error, heard_ms; called once in FRESH_S at most."""

    def __init__(self, read: Callable[[], Sequence[Mapping[str, Any]]], clock: Callable[[], float] = time.monotonic) -> None:
        self._read, self._clock = read, clock
        self._lock = threading.Lock()
        self._read_at, self._known = float("-inf"), list[dict[str, Any]]()

    def jobs(self) -> list[dict[str, Any]]:
        """As they were when they were last read. None where they cannot be: this job's own page goes on."""
        with self._lock:
            if self._clock() - self._read_at >= FRESH_S:
                try:
                    self._known = [dict(job) for job in self._read()]
                except SamzapyError:  # nobody may list topics, or no broker answers, which the job itself tells
                    self._known = []
                self._read_at = self._clock()
            return self._known
