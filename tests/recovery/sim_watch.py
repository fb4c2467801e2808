"""What happens at the failpoints of a simulated job: strikes, and the counting of what was met there."""

from __future__ import annotations

from samzapy.container.task_instance import TaskInstance
from samzapy.model.offsets import TopicPartition
from tests.recovery.sim_counting import AT_POINTS
from tests.recovery.sim_plan import CRASH, LATE_CRASH, Strike, phase_of
from tests.recovery.sim_stage import Stage
from tests.recovery.sim_task import INPUT
from tests.simulation.baton import SimProcess
from tests.simulation.process import SimContainer
from tests.simulation.simulation import SimDriver


class Strikes:
    """Kills and freezes who comes to a point for which a strike is armed."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._armed: list[tuple[Strike, list[int]]] = []
        self._began = 0.0

    def arm(self, strikes: tuple[Strike, ...]) -> None:
        """From now on, in place of those that were armed."""
        self._began = self._stage.sim.baton.now
        self._armed = [(strike, [0]) for strike in strikes]

    def __call__(self, name: str, process: SimProcess) -> None:
        if not self._armed:
            return
        now, phase = self._stage.sim.baton.now - self._began, phase_of(name)
        for entry in self._armed:
            strike, met = entry
            if strike.phase == phase and strike.at <= now:
                met[0] += 1
                if met[0] >= strike.nth:
                    self._armed.remove(entry)
                    self._carry_out(strike, name, process)
                    return

    def _carry_out(self, strike: Strike, name: str, process: SimProcess) -> None:
        self._stage.say(f"STRIKE {strike.action} {strike.seconds:.1f} at {name} in {process.name}")
        self._stage.coverage.count(f"struck in {strike.phase}")
        baton = self._stage.sim.baton
        if strike.action == CRASH:
            baton.kill(process, f"crashed at {name}")
        elif strike.action == LATE_CRASH:
            baton.doom(process, strike.seconds, f"crashed after {name}")
        else:
            self._stage.freeze(process, strike.seconds)


class Watch:
    """Counts what processes meet and how they wake up, and notes when tasks began.

    Attributes:
        first_ends: by task, where INPUT ended when its `init` was first called.
    """

    def __init__(self, stage: Stage) -> None:
        self._stage, self._sim = stage, stage.sim
        self.first_ends: dict[str, int] = {}
        self._restored: dict[int, TaskInstance] = {}
        self._took_over: set[SimDriver] = set()
        self._sim.on_thaw, self._sim.on_driver_thaw, self._sim.on_container_end = self._thawed, self._driver_thawed, self._ended

    def __call__(self, name: str, process: SimProcess) -> None:
        what = AT_POINTS.get(name)
        if what is not None:
            self._stage.coverage.count(what)
        if name == "coordinator.taken_over":
            driver = next(d for d in self._sim.drivers if d.process is process)
            self._took_over.add(driver)
            if driver.number > 1 and self._sim.drivers[driver.number - 2].exit_code != 0:
                self._stage.coverage.count("fail-overs")

    def saw_init(self, task: str) -> None:
        partition = int(task.rsplit(" ", 1)[1])
        self.first_ends.setdefault(task, self._sim.cluster.partition(TopicPartition(INPUT, partition)).end)
        for container in self._sim.live_containers():
            for one in container.container.tasks.values() if container.container is not None else ():
                if one.restored and id(one) not in self._restored:
                    self._restored[id(one)] = one
                    for restored in one.restored.values():
                        self._stage.coverage.count(f"restored: {restored.source}")

    def _thawed(self, container: SimContainer, seconds: float) -> None:
        if seconds < self._sim.coordinator_settings.lease_s:
            return
        newest = self._sim.drivers[-1].coordinator.roster.members.get(container.number)
        if newest is None or newest.owner.incarnation != container.incarnation:
            self._stage.coverage.count("zombie containers")
            self._stage.say(f"{container.process.name} wakes up as a zombie after {seconds:.1f} s")

    def _driver_thawed(self, driver: SimDriver, seconds: float) -> None:
        if any(d.number > driver.number and d in self._took_over for d in self._sim.drivers):
            self._stage.coverage.count("zombie drivers")
            self._stage.say(f"{driver.process.name} wakes up as a zombie after {seconds:.1f} s")

    def _ended(self, container: SimContainer) -> None:
        self._stage.say(f"{container.process.name}: {container.process.ended}")
