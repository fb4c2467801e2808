"""The processes of a simulated job: a container as its launcher sees it, its line to the driver, and the lock of a driver.

What runs in them is real: `ContainerRunner` with its heartbeat and its lags, each in an actor of the process. What is simulated is what lies
between processes: how long a start takes, that a kill comes late to a machine that cannot be reached, that an answer is lost, that a
driver which is frozen does not answer and one that is gone refuses.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from samzapy.api.errors import ClusterUnreachable, Superseded
from samzapy.container.container import Container
from samzapy.container.runner import ContainerRunner
from samzapy.coordinator.roster import Roster
from samzapy.model.process_end import ProcessEnd, other
from samzapy.ports import Assignment, Supervision
from tests.simulation.baton import Actor, Baton, SimProcess

if TYPE_CHECKING:
    from tests.simulation.simulation import SimDriver, Simulation

T = TypeVar("T")
ANSWER_S = 1.0  # how long an answer of the driver is waited for
NOT_YET_S = 0.1
RETRY_S = 0.5
REGISTER_PATIENCE_S = 30.0


class BatonLock:
    """threading.RLock among actors: whoever waits for it gives the baton away."""

    def __init__(self, baton: Baton) -> None:
        self._baton = baton
        self._owner: Actor | None = None
        self._depth = 0

    def __enter__(self) -> None:
        while self._owner is not None and self._owner is not self._baton.current:
            self._baton.sleep(0.01)
        self._owner = self._baton.current
        self._depth += 1

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._depth -= 1
        if not self._depth:
            self._owner = None


class SimControl:
    """ports.Control: a container's line to its driver."""

    def __init__(self, container: SimContainer) -> None:
        self._container = container
        self._sim = container.sim
        self._driver = container.driver

    def register(self, incarnation: str, facts: Mapping[str, Any]) -> Assignment:
        deadline = self._sim.baton.now + REGISTER_PATIENCE_S
        number, launch_id = self._container.number, self._container.launch_id
        while True:
            try:
                given = self._ask(lambda roster: roster.register(number, launch_id, incarnation, facts))
                if given is not None:
                    return given
                self._sim.baton.sleep(NOT_YET_S)
            except ClusterUnreachable:
                if self._sim.baton.now >= deadline:
                    raise
                self._sim.baton.sleep(RETRY_S)

    def heartbeat(self, incarnation: str, report: Mapping[str, Any]) -> Mapping[str, Any]:
        return self._ask(lambda roster: roster.heartbeat(self._container.number, incarnation, dict(report)))

    def report_final(self, incarnation: str, report: Mapping[str, Any]) -> bool:
        for _ in range(3):
            try:
                self._ask(lambda roster: roster.report_final(self._container.number, incarnation, dict(report)))
                return True
            except Superseded:
                return False
            except ClusterUnreachable:
                self._sim.baton.sleep(RETRY_S)
        return False

    def _ask(self, call: Callable[[Roster], T]) -> T:
        sim, driver = self._sim, self._driver
        sim.travel()
        self._check_answers(driver)
        answer = call(driver.coordinator.roster)
        sim.travel()
        self._check_answers(driver)
        return answer

    def _check_answers(self, driver: SimDriver) -> None:
        """The driver is there and is not cut off; one that is frozen is waited for a little."""
        baton, until = self._sim.baton, self._sim.baton.now + ANSWER_S
        while not driver.process.ended and (driver.process.frozen_until > baton.now or self._container.hears_nothing_until > baton.now):
            if baton.now >= until:
                raise ClusterUnreachable(f"{driver.process.name} does not answer.", "")
            baton.sleep(ANSWER_S / 4)
        if driver.process.ended:
            raise ClusterUnreachable(f"{driver.process.name} is gone.", "")


class SimContainer:
    """A container's process; also its handle (ports.ContainerHandle).

    Attributes:
        hears_nothing_until: until then its driver cannot be reached from there.
        unreachable_until: until then a kill does not arrive, as on a machine that is paused.
        container: what runs in it; None before it is named.
    """

    def __init__(self, sim: Simulation, driver: SimDriver, number: int, payload: Mapping[str, Any], host: str, name: str) -> None:
        self.sim, self.driver, self.number, self.host = sim, driver, number, host
        self.launch_id = str(payload["launch_id"])
        self.incarnation = sim.new_id()
        self.container: Container | None = None
        self.hears_nothing_until = self.unreachable_until = 0.0
        self._seen_ended_at: float | None = None
        self._ended_as = ""
        self.process = SimProcess(name, on_end=self._on_end, on_thaw=lambda seconds: sim.on_thaw(self, seconds))
        sim.baton.spawn(f"{name} loop", self._main, self.process, sim.times.start())

    def exited(self) -> ProcessEnd | None:
        return other(self._ended_as) if self._seen_ended_at is not None and self.sim.baton.now >= self._seen_ended_at else None

    def kill(self) -> None:
        """The process ends soon, or late; its launcher believes that it has."""
        if not self.process.ended:
            delay_s = max(self.sim.times.kill(), self.unreachable_until - self.sim.baton.now)
            self.sim.baton.doom(self.process, delay_s, "killed by its launcher")
            self._note_end("killed")

    def _main(self) -> None:
        sim = self.sim
        log = sim.new_log(self.process.name)

        def build(assignment: Assignment, incarnation: str, supervision: Supervision) -> Container:
            spec = sim.container_spec(self.number, self.host, self.process)
            self.container = Container(
                spec, incarnation, assignment.run_id, assignment.end_offsets, log, sim.baton,
                supervision=supervision, new_id=sim.new_id, caution=assignment.caution,
            )  # fmt: skip
            return self.container

        runner = ContainerRunner(
            number=self.number,
            build=build,
            control=SimControl(self),
            log=log,
            clock=sim.baton,
            facts={"host": self.host, "pid": sim.next_pid()},
            heartbeat_s=sim.settings.containers.heartbeat_ms / 1000,
            lease_s=sim.settings.containers.lease_ms / 1000,
            stuck_hook_s=sim.settings.commit.timeout_ms / 1000,
            die=lambda why: sim.baton.kill(self.process, why),
            spawn=lambda name, work: sim.baton.spawn(f"{self.process.name} {name}", work, self.process),
            new_id=lambda: self.incarnation,
            settle_memory=lambda: None,
            resident=lambda: 50 << 20,
        )
        try:
            code = runner.run()
        except Exception as error:
            if not self.process.ended:  # else it was on its way out
                sim.problem(f"{self.process.name}: {type(error).__name__}: {error}")
            code = 70
        sim.baton.kill(self.process, f"exit {code}")

    def _on_end(self) -> None:
        self.sim.disk.crash(self.process, self.sim.times.kept_batches)
        self._note_end(self.process.ended)
        self.sim.on_container_end(self)

    def _note_end(self, how: str) -> None:
        if self._seen_ended_at is None:
            self._seen_ended_at, self._ended_as = self.sim.baton.now + self.sim.times.notice(), how
