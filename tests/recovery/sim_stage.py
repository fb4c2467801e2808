"""What the parts of a simulated story share: the plan, the world, what was seen of it, and who is told."""

from __future__ import annotations

import random
from collections.abc import Callable

from samzapy.model.checkpoint import CHECKPOINT_KEY, Checkpoint, checkpoint_from_bytes
from samzapy.model.offsets import TopicPartition
from samzapy.testing.memory_partition import State
from tests.recovery.sim_counting import Coverage
from tests.recovery.sim_judge import History
from tests.recovery.sim_plan import Plan
from tests.simulation.baton import SimProcess
from tests.simulation.disk import Generation, Place
from tests.simulation.simulation import SimDriver, Simulation

LIVELY_S = 120.0  # within which a healed job must have come to rest


class Stage:
    """One seed's plan and world.

    Attributes:
        draw: for what is not in the plan.
        completed: bounded runs that ended with 0.
        truncated: inputs were removed unread, and the job has to refuse.
        disturbed: the times when things went wrong, from and until.
        backups: by host, a copy of its disk as it was once.
    """

    def __init__(self, plan: Plan, sim: Simulation, coverage: Coverage, trace: Callable[[str], None] | None) -> None:
        self.plan, self.sim, self.coverage, self._trace = plan, sim, coverage, trace
        self.draw = random.Random(f"{plan.seed}/story")
        self.history = History(sim)
        self.completed: set[str] = set()
        self.truncated = False
        self.disturbed: list[tuple[float, float]] = []
        self.backups: dict[str, dict[Place, dict[str, Generation]]] = {}

    def was_disturbed(self, at: float) -> bool:
        return any(since <= at <= until for since, until in self.disturbed)

    def say(self, line: str) -> None:
        if self._trace is not None:
            self._trace(f"{self.sim.baton.now:.6f} == {line}")

    def until(self, condition: Callable[[], bool], what: str, within_s: float = LIVELY_S) -> bool:
        deadline = self.sim.baton.now + within_s
        while not condition():
            if self.sim.baton.now >= deadline:
                self.sim.problem(f"not within {within_s:.0f} s: {what}")
                return False
            self.sim.baton.sleep(0.3)
        return True

    def is_at_rest(self) -> bool:
        drivers = [d for d in self.sim.live_drivers() if d.coordinator.roster.state == "RUNNING"]
        if len(drivers) != 1 or drivers[0].coordinator.roster.is_changing:
            return False
        return all(
            (c := self.checkpoint(place.partition)) is not None and c.inputs[str(place)].next_offset >= self.sim.end(place)
            for place in self.sim.places(self.plan.inputs)
        )

    def is_decided(self) -> bool:
        return all(self.sim.end(place) == self.sim.cluster.partition(place).end for place in self.sim.places(self.plan.inputs))

    def checkpoint(self, partition: int) -> Checkpoint | None:
        """A task's newest committed one."""
        records = self.sim.cluster.partition(TopicPartition(self.sim.job.checkpoint_topic, partition)).records
        newest = next((r for r in reversed(records) if r.key() == CHECKPOINT_KEY and r.state is State.COMMITTED), None)
        return None if newest is None else checkpoint_from_bytes(newest.value() or b"")

    def freeze(self, process: SimProcess, seconds: float) -> None:
        """Often with its whole machine, so that it cannot be killed before it wakes up."""
        baton = self.sim.baton
        for container in self.sim.live_containers():
            if container.process is process and self.draw.random() < 0.7:
                container.unreachable_until = baton.now + seconds + self.draw.random() * 2.0
        baton.freeze(process, seconds)

    def thaw(self, process: SimProcess) -> None:
        if process.frozen_until > self.sim.baton.now:
            self.sim.baton.thaw(process)


def code_of(driver: SimDriver) -> str:
    """Of the error that ended a driver, or "" if none did."""
    if driver.error is not None:
        return driver.error.code
    failure = driver.coordinator.roster.failure
    return str(failure[1].get("code", "")) if failure is not None else "SZ312" if driver.exit_code == 5 else ""


def told(driver: SimDriver) -> str:
    failure = driver.coordinator.roster.failure
    what = driver.error.message if driver.error is not None else str(failure[1]["message"]) if failure is not None else ""
    return f"{code_of(driver)} {what}".strip()
