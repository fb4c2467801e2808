"""The lag of a container's tasks and warm copies; a thread of its own asks the broker.

Neither the run loop nor the heartbeat waits for the broker: while it cannot be asked, heartbeats go on and lags are unknown.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping

from samzapy.api.errors import SamzapyError
from samzapy.model.offsets import TopicPartition, lag
from samzapy.ports import Admin, Clock, Joinable, Log, Spawn


class Lags:
    """The read_committed ends of partitions, asked every `interval_s` seconds.

    Args:
        wanted: the partitions to ask for, as str(TopicPartition).
    """

    def __init__(self, log: Log, interval_s: float, wanted: Callable[[], Iterable[str]], clock: Clock, spawn: Spawn) -> None:
        self._log = log
        self._interval_s = interval_s
        self._wanted = wanted
        self._ends: dict[str, int] = {}
        self._stopping = threading.Event()
        self._clock = clock
        self._spawn = spawn
        self._thread: Joinable | None = None

    def start(self) -> None:
        self._thread = self._spawn("lags", self._run)

    def stop(self) -> None:
        self._stopping.set()
        if self._thread is not None:
            self._thread.join(timeout=5)

    def of(self, positions: Mapping[str, int]) -> int | None:
        """Records still to be read over these partitions; None while that is not known."""
        ends = self._ends
        if any(place not in ends for place in positions):
            return None
        return sum(lag(max(ends[place], at), at) for place, at in positions.items())

    def _run(self) -> None:
        admin: Admin | None = None
        while not self._stopping.is_set():
            try:
                admin = admin or self._log.admin()
                places = {_parsed(place): place for place in self._wanted()}
                self._ends = {places[partition]: end for partition, end in admin.ends(places).items()}
            except SamzapyError:  # said by those who need the broker; here it only means: not known
                self._ends = {}
            self._clock.wait(self._stopping, self._interval_s)
        if admin is not None:
            admin.close()


def _parsed(place: str) -> TopicPartition:
    topic, _, partition = place.rpartition("[")
    return TopicPartition(topic, int(partition.rstrip("]")))
