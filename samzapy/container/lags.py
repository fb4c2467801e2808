"""How far behind a container's tasks and warm copies are, and which of the partitions that they read or wait to write no broker leads: asked of
the broker on a thread of its own.

Neither the run loop nor the heartbeat waits for the broker: while it cannot be asked, heartbeats go on and lags are unknown.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

from samzapy.api.errors import SamzapyError
from samzapy.model.offsets import TopicPartition, lag
from samzapy.ports import START_ITS_BROKER, Admin, Clock, Joinable, Log, Spawn

LOG = logging.getLogger("samzapy.container")


@dataclass(frozen=True, slots=True)
class Written:
    """What a commit may be waiting for: topics, and whether one of their partitions is written at all."""

    topics: Collection[str]
    writes: Callable[[TopicPartition], bool]


class Lags:
    """The read_committed ends of partitions, asked every `interval_s` seconds.

    Args:
        wanted: the partitions to ask for, as str(TopicPartition).
        waits_for: the topics that a commit may be waiting for now, and which of their partitions; None: it does not wait.
        purge: called with the client each time.
    """

    def __init__(
        self,
        log: Log,
        interval_s: float,
        wanted: Callable[[], Iterable[str]],
        clock: Clock,
        spawn: Spawn,
        waits_for: Callable[[], Written | None] = lambda: None,
        purge: Callable[[Admin], None] = lambda admin: None,
    ) -> None:
        self._log = log
        self._interval_s = interval_s
        self._wanted = wanted
        self._ends: dict[str, int] = {}
        self._leaderless: frozenset[str] = frozenset()
        self._waits_for = waits_for
        self._purge = purge
        self._awaited: Written | None = None
        self._unwritable: frozenset[str] = frozenset()
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
        """What keeps these partitions from being read, or what is done from being committed, as far as the broker told; "" if nothing does."""
        down = self._leaderless
        unread = (leaderless(partition) for partition in sorted(positions) if partition in down)
        return next(unread, "") or next((leaderless(partition, "written") for partition in sorted(self._unwritable)), "")

    @property
    def cannot_write(self) -> bool:
        """Whether a commit waits for a partition that no broker leads."""
        return bool(self._unwritable)

    def _run(self) -> None:
        admin: Admin | None = None
        while not self._stopping.is_set():
            is_known = False
            try:
                admin = admin or self._log.admin()
                self._look_at_written(admin)
                self._purge(admin)
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
        before, self._leaderless = self._leaderless, frozenset(map(str, found))
        _tell(before, self._leaderless, "read")

    def _look_at_written(self, admin: Admin) -> None:
        """One request, and only while a commit seems to wait, or a partition that one waited for had no leader when this was last looked at."""
        awaited = self._waits_for() or (self._awaited if self._unwritable else None)
        if awaited is None:
            return
        self._awaited = awaited
        found = {partition for partition in admin.leaderless(awaited.topics) if awaited.writes(partition)}
        before, self._unwritable = self._unwritable, frozenset(map(str, found))
        _tell(before, self._unwritable, "written")


def _tell(before: frozenset[str], now: frozenset[str], done: str) -> None:
    for topic_partition in sorted(now - before):
        LOG.warning("%s. %s", leaderless(topic_partition, done), START_ITS_BROKER)
    for topic_partition in sorted(before - now):
        LOG.info("%s: a broker leads it again", topic_partition)


def leaderless(partition: str, done: str = "read") -> str:
    """What is said of a partition that no broker leads. `done`: what cannot be done with it."""
    return f"{partition}: no broker leads this partition, so it cannot be {done}: the broker that holds it is down"


def _parsed(topic_partition: str) -> TopicPartition:
    topic, _, partition = topic_partition.rpartition("[")
    return TopicPartition(topic, int(partition.rstrip("]")))
