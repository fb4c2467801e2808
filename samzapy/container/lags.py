"""How far behind a container's tasks and warm copies are, and which of their partitions no broker leads: asked of the broker on a thread of
its own.

Neither the run loop nor the heartbeat waits for the broker: while it cannot be asked, heartbeats go on and lags are unknown.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Mapping

from samzapy.api.errors import SamzapyError
from samzapy.model.offsets import TopicPartition, lag
from samzapy.ports import START_ITS_BROKER, Admin, Clock, Joinable, Log, Spawn

LOG = logging.getLogger("samzapy.container")


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
        self._leaderless: frozenset[str] = frozenset()
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
        if any(partition not in ends for partition in positions):
            return None
        return sum(lag(max(ends[partition], at), at) for partition, at in positions.items())

    def why_it_waits(self, positions: Mapping[str, int]) -> str:
        """What keeps these partitions from being read, as far as the broker told; "" if nothing does."""
        down = self._leaderless
        return next((leaderless(partition) for partition in sorted(positions) if partition in down), "")

    def _run(self) -> None:
        admin: Admin | None = None
        while not self._stopping.is_set():
            is_known = False
            try:
                admin = admin or self._log.admin()
                names = {_parsed(name): name for name in self._wanted()}
                self._ends = {names[partition]: end for partition, end in admin.ends(names).items()}
                self._look_for_leaders(admin, [partition for partition, name in names.items() if name not in self._ends])
                is_known = all(name in self._ends or name in self._leaderless for name in names.values())
            except SamzapyError:  # said by those who need the broker; here it only means: not known
                self._ends = {}
            if admin is not None and not is_known:
                # After a broker was away, a client may get no answer for minutes although the broker is back. A new one is answered at once.
                admin.close()
                admin = None
            self._clock.wait(self._stopping, self._interval_s)
        if admin is not None:
            admin.close()

    def _look_for_leaders(self, admin: Admin, unknown: Iterable[TopicPartition]) -> None:
        wanted = set(unknown)
        found = admin.leaderless({partition.topic for partition in wanted}) & wanted
        before = self._leaderless
        self._leaderless = frozenset(map(str, found))
        for topic_partition in sorted(self._leaderless - before):
            LOG.warning("%s. %s", leaderless(topic_partition), START_ITS_BROKER)
        for topic_partition in sorted(before - self._leaderless):
            LOG.info("%s: a broker leads it again", topic_partition)


def leaderless(partition: str) -> str:
    """What is said of a partition that no broker leads."""
    return f"{partition}: no broker leads this partition, so it cannot be read: the broker that holds it is down"


def _parsed(topic_partition: str) -> TopicPartition:
    topic, _, partition = topic_partition.rpartition("[")
    return TopicPartition(topic, int(partition.rstrip("]")))
