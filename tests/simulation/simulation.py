"""A whole job in one thread of time: its coordinators, its containers, Kafka and the disks, scheduled by a seed.

Everything that decides is real: `JobCoordinator`, `ContainerRunner`, `Container` and all below them. The cluster, the disks and the time are
in memory, and who goes next, what goes wrong and how long anything takes is drawn from the seed. So the same seed is the same history, in
any process: `fingerprint()` tells. Nothing here judges what came out; `tests/recovery/simulate.py` shows how that is done.

    with Simulation(seed, document, MyTask, {"in": 3, "out": 3}, {"h0": 1, "h1": 1}) as sim:
        driver = sim.start()
        sim.baton.sleep(10)            # ten seconds of the job's life
        sim.baton.kill(driver.process, "SIGKILL")
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any

from samzapy import failpoints
from samzapy.api.errors import SamzapyError
from samzapy.api.task import StreamTask
from samzapy.config.document import settings_from_document
from samzapy.container.spec import ContainerSpec, StoreSpec
from samzapy.coordinator.job_coordinator import JobCoordinator
from samzapy.coordinator.settings import CoordinatorSettings, InputTopics, Process
from samzapy.model.offsets import TopicPartition
from samzapy.model.ownership import FirstRun
from samzapy.plan.internal_topics import internal_topics
from samzapy.ports import Log, StoreDirectory, TopicSpec
from samzapy.testing.memory_chance import Chance
from samzapy.testing.memory_cluster import MemoryCluster
from samzapy.testing.memory_log import MemoryLog
from samzapy.wiring.container import Location, container_spec
from samzapy.wiring.coordinator import coordinator_settings
from samzapy.wiring.job_topics import JobTopics, job_of
from samzapy.wiring.serdes import Serdes
from samzapy.wiring.tasks import Tasks
from tests.simulation.baton import Baton, SimProcess
from tests.simulation.disk import MemoryDisk
from tests.simulation.process import BatonLock, SimContainer

STATE_DIRECTORY = Path("memory")


@dataclass(slots=True)
class Times:
    """How long things take that are not requests, in seconds, and what a crash leaves of what was not flushed. Draws from the seed.

    Attributes:
        late_kills: how often a kill comes late, because the machine cannot be reached.
        lost_batches: how often a crash loses batches that were not flushed.
    """

    draw: random.Random
    late_kills: float = 0.0
    lost_batches: float = 1.0

    def start(self) -> float:
        return self.draw.uniform(0.05, 0.5)

    def travel(self) -> float:
        return self.draw.random() ** 4 * 0.02

    def notice(self) -> float:
        return self.draw.random() ** 2 * 1.5

    def kill(self) -> float:
        return self.draw.uniform(3.0, 25.0) if self.draw.random() < self.late_kills else self.draw.random() * 0.3

    def kept_batches(self, written: int) -> int:
        return self.draw.randint(0, written) if self.draw.random() < self.lost_batches else written


class SimDriver:
    """A driver's process: a coordinator, and the launcher of its containers.

    Attributes:
        exit_code: what `samzapy run` would exit with; None while it runs, or when it was killed.
        error: what ended it.
        ended_at: when its process ended, in seconds of the simulation.
    """

    def __init__(self, sim: Simulation, number: int, ends: Mapping[str, int] | None, takeover: bool) -> None:
        self.sim, self.number, self.ends = sim, number, ends
        self.run_id = f"run-{number}"
        self.exit_code: int | None = None
        self.error: SamzapyError | None = None
        self.ended_at = 0.0
        self.containers: list[SimContainer] = []
        self.process = SimProcess(f"driver {number}", on_end=self._on_end, on_thaw=lambda s: sim.on_driver_thaw(self, s))
        self.coordinator = self._new_coordinator(takeover)
        sim.baton.spawn(self.process.name, self._main, self.process)

    def _new_coordinator(self, takeover: bool) -> JobCoordinator:
        sim = self.sim
        url = f"http://{self.process.name.replace(' ', '-')}:1"  # as a lease has it; nobody listens there
        made = JobCoordinator(
            job=sim.job,
            run_id=self.run_id,
            tasks=sim.models,
            payload={},
            ends=self.ends,
            settings=replace(sim.coordinator_settings, takeover=takeover),
            log=sim.new_log(self.process.name),
            clock=sim.baton,
            launcher=self,
            process=Process("driver-host", self.number, "", sim.driver_is_gone),
            is_alive=sim.driver_answers,
            input_topics=sim.input_topics,
            new_id=sim.new_id,
        )
        made.roster.lock = BatonLock(sim.baton)  # type: ignore[assignment]
        made.listens_at(url, url)
        return made

    def _main(self) -> None:
        try:
            self.exit_code = self.coordinator.run()
        except SamzapyError as error:
            self.error, self.exit_code = error, error.exit_code
        except Exception as error:
            if not self.process.ended:  # else it was on its way out
                self.sim.problem(f"{self.process.name}: {type(error).__name__}: {error}")
            self.exit_code = 70
        self.sim.baton.kill(self.process, f"exit {self.exit_code}")

    def _on_end(self) -> None:
        self.ended_at = self.sim.baton.now
        for container in self.containers:
            container.kill()

    # -- ports.Launcher ----------------------------------------------------------------------------------------------------------------

    def slots(self, needed: int) -> int | None:
        return sum(self.sim.hosts.values())

    def hosts(self) -> Mapping[str, int | None]:
        return {host: slots for host, slots in self.sim.hosts.items() if host not in self.sim.leaving}

    def leaving(self) -> Collection[str]:
        return sorted(self.sim.leaving)

    def launch(self, container: int, payload: Mapping[str, Any], preferred_host: str | None) -> SimContainer:
        self.sim.baton.check_alive()
        host = preferred_host or next(iter(self.hosts()))
        name = f"container {container}/{len(self.containers)} of {self.run_id} on {host}"
        made = SimContainer(self.sim, self, container, payload, host, name)
        self.containers.append(made)
        return made

    def close(self) -> None:
        self.sim.baton.check_alive()
        for container in self.containers:
            container.kill()


class Simulation:
    """The world of one job. Whoever makes it is its first actor: it sleeps on `baton`, and others live meanwhile.

    Args:
        document: the job file.
        topics: the user's topics, with their partitions.
        hosts: slots by host.
        odds, longest_s: what goes wrong at the cluster by chance (memory_chance.Chance).
        tick_s: how often a coordinator takes a turn.
        adjust: makes of a container's spec what it is to be.

    Attributes:
        strike: called at every failpoint with its name and the process that is there; it may kill or freeze.
        switch_odds: how often the baton is given away at a failpoint.
        make_log: how a process's clients are made; for counting.
        leaving: hosts that are being decommissioned.
        problems: what no actor may do.
    """

    def __init__(
        self,
        seed: int,
        document: Mapping[str, Any],
        make_task: Callable[[], StreamTask],
        topics: Mapping[str, int],
        hosts: Mapping[str, int],
        odds: Mapping[str, float] | None = None,
        longest_s: Mapping[str, float] | None = None,
        tick_s: float = 0.2,
        trace: Callable[[str], None] | None = None,
        adjust: Callable[[ContainerSpec], ContainerSpec] = lambda spec: spec,
    ) -> None:
        self._adjust = adjust
        self.baton = Baton(seed)
        self.draw = random.Random(f"{seed}/world")
        self.times = Times(random.Random(f"{seed}/times"))
        self.chance = Chance(seed, odds, longest_s)
        self.cluster = MemoryCluster(self.baton, self.chance, trace)
        self.disk = MemoryDisk(self.new_id)
        self.settings = settings_from_document(document, {})
        self.job, self.hosts, self.make_task = job_of(self.settings), dict(hosts), make_task
        self.log: Log = MemoryLog(self.cluster, origin="outside")
        self._create_topics(topics)
        self.coordinator_settings = self._coordinator_settings(tick_s)
        self.input_topics = self._input_topics()
        self.strike: Callable[[str, SimProcess], None] = lambda name, process: None
        self.on_thaw: Callable[[SimContainer, float], None] = lambda container, seconds: None
        self.on_driver_thaw: Callable[[SimDriver, float], None] = lambda driver, seconds: None
        self.on_container_end: Callable[[SimContainer], None] = lambda container: None
        self.switch_odds = 0.0
        self.make_log: Callable[[MemoryCluster, int, int, str], Log] = MemoryLog
        self.problems: list[str] = []
        self.drivers: list[SimDriver] = []
        self.drivers_share_host = True
        self.leaving: set[str] = set()
        self._pids = 0
        self._calling = failpoints.calling(self._hit)
        self.look_at_topics()

    def look_at_topics(self) -> None:
        """What containers know of the topics is as it is now."""
        facts = {name: found for name in JobTopics.of(self.settings).all if (found := self.cluster.facts(name)) is not None}
        where = Location(0, "", STATE_DIRECTORY, self.cluster.cluster_id)
        spec = container_spec(self.settings, self.models, facts, where, Tasks(self.make_task), Serdes(self.settings, ()))
        self._spec = self._adjust(spec)

    def _input_topics(self) -> InputTopics:
        facts = [f for topic in JobTopics.of(self.settings).read if (f := self.cluster.facts(topic))]
        checkpoints = self.cluster.facts(self.job.checkpoint_topic)
        first_run = FirstRun(checkpoints.topic_id if checkpoints else "", max(f.partitions for f in facts) if self.settings.stores else 0)
        return InputTopics({f.topic_id: (f.name, f.partitions) for f in facts}, first_run=first_run)

    def _create_topics(self, topics: Mapping[str, int]) -> None:
        inputs = {i.topic: topics[i.topic] for i in self.settings.inputs}
        names = JobTopics.of(self.settings)
        self.models = names.tasks(inputs)
        changelogs = list(names.changelogs.values())
        for name, partitions in topics.items():
            self.cluster.create(TopicSpec(name, partitions))
        counts = names.counts(inputs)
        for spec in internal_topics(self.job, len(self.models), changelogs, False, between={topic: counts[topic] for topic in names.internal}):
            self.cluster.create(replace(spec, config={**spec.config, "min.compaction.lag.ms": "0"}))  # else no history is long enough

    def _coordinator_settings(self, tick_s: float) -> CoordinatorSettings:
        settings = coordinator_settings(self.settings)
        return replace(settings, stop_timeout_s=20.0, register_timeout_s=15.0, tick_s=tick_s, memory_bytes=0)

    def __enter__(self) -> Simulation:
        self._calling.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.baton.end()
        self._calling.__exit__(kind, error, trace)

    # -- processes ---------------------------------------------------------------------------------------------------------------------

    def start(self, until_end: bool = False, takeover: bool = False) -> SimDriver:
        """`samzapy run`."""
        inputs = JobTopics.of(self.settings).inputs
        whole = {i.topic for i in self.settings.inputs if i.bootstrap}  # read to what is written, as `samzapy run` has them read
        places = [p for m in self.models.values() for p in m.inputs if p.topic in inputs]
        ends = {str(p): self.cluster.partition(p).end if p.topic in whole else self.end(p) for p in places} if until_end else None
        driver = SimDriver(self, len(self.drivers) + 1, ends, takeover)
        self.drivers.append(driver)
        return driver

    def live_drivers(self) -> list[SimDriver]:
        return [d for d in self.drivers if not d.process.ended]

    def struck(self, driver: SimDriver, draw: random.Random, second: int, seconds: int) -> SimDriver:
        """In one second of a job's life: a container may be killed, but not in the last five; in the middle of it the driver is, and another starts."""
        containers = self.live_containers()
        if second < seconds - 5 and containers and draw.random() < 0.25:
            self.baton.kill(draw.choice(containers).process, "SIGKILL")
        if second == seconds // 2:
            self.baton.kill(driver.process, "SIGKILL")
            driver = self.start()
        return driver

    def live_containers(self) -> list[SimContainer]:
        return [c for d in self.drivers for c in d.containers if not c.process.ended]

    def driver_is_gone(self, host: str, pid: int, start: str) -> bool:
        return self.drivers_share_host and all(d.process.ended for d in self.drivers if d.number == pid)

    def driver_answers(self, url: str) -> bool:
        self.travel()
        return any(url == d.coordinator.roster.url and d.process.frozen_until <= self.baton.now for d in self.live_drivers())

    # -- what processes are given ------------------------------------------------------------------------------------------------------

    def new_id(self) -> str:
        return f"{self.draw.getrandbits(64):016x}"

    def next_pid(self) -> int:
        self._pids += 1
        return self._pids

    def new_log(self, origin: str) -> Log:
        return self.make_log(self.cluster, self.settings.commit.timeout_ms, self.settings.containers.lease_ms, origin)

    def travel(self) -> None:
        """A message between two processes is on its way."""
        self.baton.sleep(self.times.travel())

    def container_spec(self, number: int, host: str, holder: SimProcess) -> ContainerSpec:
        stores = {name: self._on_disk(spec, host, holder) for name, spec in self._spec.stores.items()}
        return replace(self._spec, number=number, host=host, stores=stores, sweep=lambda held: ())

    def _on_disk(self, spec: StoreSpec, host: str, holder: SimProcess) -> StoreSpec:
        def open_directory(task: str) -> StoreDirectory:
            return self.disk.directory((host, task, spec.name), holder)

        return replace(spec, open_directory=open_directory)

    def problem(self, what: str) -> None:
        """Something that must not be; told with the time."""
        self.problems.append(f"{self.baton.now:.3f} {what}")

    # -- what is seen of it ------------------------------------------------------------------------------------------------------------

    def end(self, place: TopicPartition) -> int:
        return self.cluster.bounds(place).end

    def places(self, topics: Sequence[str]) -> list[TopicPartition]:
        return [TopicPartition(t, p) for t in topics if (f := self.cluster.facts(t)) for p in range(f.partitions)]

    def fingerprint(self) -> str:
        """Of every record that the cluster has, and of the time."""
        digest = hashlib.sha256(f"{self.baton.now:.9f}".encode())
        for place, records in self.cluster.dump().items():
            digest.update(f"{place} {records}".encode())
        return digest.hexdigest()[:16]

    def _hit(self, name: str) -> None:
        process = self.baton.current.process
        if process is not None:
            self.baton.check_alive()
            self.strike(name, process)
            if self.switch_odds and self.times.draw.random() < self.switch_odds:
                self.baton.sleep(self.times.draw.random() ** 3 * 0.05)
