"""What a part of the coordinator stands on in its tests: a job's topic in memory, a clock that only the test moves, a launcher of nothing."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from samzapy.coordinator.coordinator_log import CoordinatorLog
from samzapy.coordinator.membership import Heard, Launch, Member, Owner
from samzapy.coordinator.ownership_records import Named, OwnershipRecords
from samzapy.coordinator.roster import Roster
from samzapy.coordinator.settings import CoordinatorSettings
from samzapy.model.names import Job
from samzapy.model.ownership import Ledger
from samzapy.model.process_end import ProcessEnd
from samzapy.model.states import ContainerState
from samzapy.plan.container_phases import Phase
from samzapy.plan.grouping import group
from samzapy.ports import TopicSpec
from samzapy.readers import read_ledger
from samzapy.testing.manual_clock import ManualClock
from samzapy.testing.memory_log import MemoryCluster, MemoryLog

JOB = Job("job", "1")
LEASE_S, REGISTER_S, AFFINITY_S = 10.0, 120.0, 5.0


class Handle:
    """A container that has not been started."""

    def __init__(self) -> None:
        self.ended: ProcessEnd | None = None
        self.was_killed = False

    def exited(self) -> ProcessEnd | None:
        return self.ended

    def kill(self) -> None:
        self.was_killed = True


class Launcher:
    """Hosts with slots, and what was launched: (container, preferred host)."""

    def __init__(self, slots: Mapping[str, int | None]) -> None:
        self.slots_of = dict(slots)
        self.launched: list[tuple[int, str | None]] = []
        self.payloads: list[Mapping[str, Any]] = []

    def slots(self, needed: int) -> int | None:
        return None

    def hosts(self) -> Mapping[str, int | None]:
        return dict(self.slots_of)

    def leaving(self) -> Collection[str]:
        return ()

    def launch(self, container: int, payload: Mapping[str, Any], preferred_host: str | None) -> Handle:
        self.launched.append((container, preferred_host))
        self.payloads.append(payload)
        return Handle()

    def close(self) -> None:
        """Nothing runs."""


class Parts:
    """A job of `tasks` tasks in `containers` containers, none of which is there yet; `add` brings them in."""

    def __init__(self, tasks: int = 2, containers: int = 1, **settings: Any) -> None:
        self.clock = ManualClock()
        self.clock.advance(1000.0)  # so that no time is 0 by chance
        self.cluster = MemoryCluster(self.clock)
        self.log = MemoryLog(self.cluster)
        self.log.admin().create([TopicSpec(JOB.coordinator_topic, 1)])
        self.settings = CoordinatorSettings(
            containers=containers, lease_s=LEASE_S, register_timeout_s=REGISTER_S, host_affinity_s=AFFINITY_S, **settings
        )
        self.ownership = OwnershipRecords(CoordinatorLog(JOB, "run", self.log, self.clock), "run", self.clock)
        self.ownership.take_over()
        self.roster = Roster(JOB, "run", group({"in": tasks}, set(), has_stores=False), containers, None, self.clock)

    def add(
        self, number: int = 0, tasks: tuple[str, ...] = (), phase: Phase = Phase.LIVE, host: str = "h", memory_bytes: int | None = None
    ) -> Member:
        """A container that was launched, and runs these tasks, as the topic and the roster say, if its phase is one in which it does."""
        incarnation = f"i{number}"
        epochs = self.ownership.name([Named(number, incarnation, tasks, "h", 100 + number)])
        owner = Owner(incarnation=incarnation, tasks=tasks, epoch=epochs[number], host=host, pid=100 + number)
        member = Member(
            number=number,
            phase=phase,
            state=ContainerState.RUNNING,
            launch=Launch() if phase in (Phase.WANTED, Phase.PARKED) else Launch(id="l", host=host, handle=Handle()),
            owner=owner if phase in (Phase.LIVE, Phase.STOPPING, Phase.DONE) else Owner(),
            heard=Heard(at=self.clock.monotonic(), memory_bytes=memory_bytes),
        )
        self.roster.members.add(member)
        self.roster.desired.update(dict.fromkeys(tasks, number))
        return member

    def ledger(self) -> Ledger:
        return read_ledger(self.log.restore_consumer("test"), JOB.coordinator_topic, self.clock)
