"""A plan carried out: a first run that is disturbed, an interlude, a bounded run that is disturbed too, healing, and a run on empty disks."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from samzapy.container import purge, restore_end, restorer, standby
from samzapy.container.spec import ContainerSpec
from samzapy.model.offsets import TopicPartition
from tests.recovery.sim_counting import Coverage, counting
from tests.recovery.sim_events import EVENTS
from tests.recovery.sim_judge import judge
from tests.recovery.sim_plan import LONGEST_S, Event, Plan, Strike
from tests.recovery.sim_program import SimProgram
from tests.recovery.sim_stage import Stage, code_of, told
from tests.recovery.sim_task import ENDS, INPUT, OUTPUT, TABLE, BatchTask, SimTask, document, pausing
from tests.recovery.sim_watch import Strikes, Watch
from tests.recovery.sim_world import OUT_OF_RANGE, REPLACED, Broker, Supervisor, Writers
from tests.simulation.baton import SimProcess
from tests.simulation.simulation import Simulation

TOMBSTONES_STAY_MS = 120_000
ENDS_WITHIN_S = 60.0
DECIDED_WITHIN_S = 60.0 + ENDS_WITHIN_S  # a stranger that was killed leaves a transaction open for its timeout, 60 s, and the broker may be late with that
ATTEMPTS = 3
FEW = 7
OFTEN_S = 4.0  # no container lives for long
BATCHES_THAT_FAIL = 0.1


@contextmanager
def batches_of(records: int) -> Iterator[None]:
    """Restores and warm copies take so many records at a time."""
    before = restore_end.BATCH_RECORDS, restorer.BATCH_RECORDS, standby.BATCH_RECORDS
    restore_end.BATCH_RECORDS = restorer.BATCH_RECORDS = standby.BATCH_RECORDS = records
    try:
        yield
    finally:
        restore_end.BATCH_RECORDS, restorer.BATCH_RECORDS, standby.BATCH_RECORDS = before


@contextmanager
def purges_every(seconds: float) -> Iterator[None]:
    """Containers remove what was read of internal topics so often."""
    before, purge.PURGE_S = purge.PURGE_S, seconds
    try:
        yield
    finally:
        purge.PURGE_S = before


class Story:
    """One seed's history. `tell` makes it happen; what must not be is in `sim.problems` then."""

    def __init__(self, plan: Plan, trace: Callable[[str], None] | None = None) -> None:
        self.plan = plan
        self._program = SimProgram(plan) if plan.program else None
        topics = dict.fromkeys((INPUT, OUTPUT, ENDS, *((TABLE,) if plan.job["table"] else ())), plan.tasks)
        job, new_task = document(plan.job), self._new_task
        if self._program is not None:
            job, topics, new_task = self._program.document, self._program.topics, self._program.new_task
        self.sim = sim = Simulation(
            plan.seed, job, new_task, topics, plan.hosts, plan.odds, LONGEST_S, trace=trace, adjust=self._adjusted
        )  # fmt: skip
        sim.times.late_kills, sim.times.lost_batches = plan.late_kills, plan.lost_batches
        sim.drivers_share_host, sim.switch_odds = plan.drivers_share_host, plan.switch_odds
        self._pause = pausing(random.Random(f"{plan.seed}/pauses"), sim.baton.sleep, plan.pause_odds)
        self._stumbles = random.Random(f"{plan.seed}/stumbles")
        self.coverage = Coverage()
        counting(sim, self.coverage)
        self.stage = Stage(plan, sim, self.coverage, trace)
        self.watch, self._strikes = Watch(self.stage), Strikes(self.stage)
        sim.strike = self._at_point
        self._writers = Writers(self.stage)

    def tell(self) -> None:
        """From the first start to the last end."""
        with batches_of(FEW if self.plan.small_batches else restorer.BATCH_RECORDS), purges_every(OFTEN_S):
            self._tell()

    def judge(self, to_the_end: bool) -> list[str]:
        """What is wrong with what it left. `to_the_end`: every input record must have been processed."""
        if self._program is not None:
            return self._program.judge(self.sim, self.stage.history, to_the_end, self.coverage)
        return judge(self.sim, self.stage.history, self.watch.first_ends, self.stage.completed, to_the_end)

    def _tell(self) -> None:
        plan, sim = self.plan, self.sim
        self._configure()
        self._writers.begin({} if self._program is None else self._program.table)
        self._broker, self._supervisor = Broker(self.stage), Supervisor(self.stage)
        self._disturb(plan.strikes)
        self._supervisor.wants_driver = True
        self._live_through(plan.events, plan.faults_s)
        if plan.rests:
            self._heal()
            self.stage.until(self.stage.is_at_rest, "the healed job has come to rest")
        self._end_first_run()
        self._interlude()
        self._writers.go_together()
        self._supervisor.until_end = self._supervisor.wants_driver = True
        if plan.late_strikes and not self.stage.truncated:
            self._disturb(plan.late_strikes)
            sim.baton.sleep(6.0)
        self._heal()
        self._await_end()
        self._writers.end()
        if not self.stage.truncated:
            self._restore_afresh()
        self.stage.history.look()

    def _configure(self) -> None:
        for topic in {place.topic for place in self.stage.history.places if place.topic.endswith("-changelog")}:
            self.sim.cluster.configure(topic, {"delete.retention.ms": str(TOMBSTONES_STAY_MS)})
        self.sim.look_at_topics()

    def _end_first_run(self) -> None:
        sim, ending = self.sim, self.plan.ending
        self._supervisor.wants_driver = False
        if ending == "overlap":
            self.stage.say("the second run begins beside the first")
            self._writers.go_together()
            sim.start(until_end=True, takeover=True)
            return
        for driver in sim.live_drivers():
            self.stage.thaw(driver.process)
            if ending == "stop":
                driver.coordinator.request_stop()
        if ending == "stop":
            self.stage.until(lambda: not sim.live_drivers(), "a driver that was asked to stop has ended", ENDS_WITHIN_S)
        for driver in sim.live_drivers():
            sim.baton.kill(driver.process, "killed at the end of the first run")

    def _interlude(self) -> None:
        sim, what = self.sim, self.plan.interlude
        if what == "":
            self._writers.feed(10)
            return
        self.stage.until(lambda: not sim.live_containers(), "no process is left", ENDS_WITHIN_S)
        if what == "age":
            self._broker.clean()
            sim.baton.sleep(TOMBSTONES_STAY_MS / 1000 + 5.0)
            self._broker.clean()
        if what in ("age", "bring_back"):
            for host, copy in sorted(self.stage.backups.items()):
                self.stage.say(f"{host} has an older copy of its state again")
                sim.disk.bring_back(host, copy)
                self.coverage.count("old copy brought back")
        if what == "delete":
            for host in self.plan.hosts:
                if self.stage.draw.random() < 0.6:
                    sim.disk.delete(host)
                    self.coverage.count("local state deleted")
        self._writers.feed(10)
        if what == "truncate":
            self._truncate()

    def _truncate(self) -> None:
        for partition in range(self.plan.tasks):
            self._writers.append(INPUT, partition, "key-0", "unread")
            self._writers.append(INPUT, partition, "key-1", "unread too")
            place, checkpoint = TopicPartition(INPUT, partition), self.stage.checkpoint(partition)
            end = self.sim.end(place)
            if checkpoint is not None and checkpoint.inputs[str(place)].next_offset < end - 1:
                self.stage.history.look()
                self.sim.cluster.delete_records(place, end - 1)
                self.stage.truncated = True

    def _await_end(self) -> None:
        sim = self.sim
        if self.stage.truncated:
            self.coverage.count("inputs truncated")
            refused = self.stage.until(
                lambda: any(code_of(d) == OUT_OF_RANGE for d in sim.drivers), "a job whose unread input was removed refuses to go on"
            )
            self._supervisor.wants_driver = False
            if not refused:
                self.stage.say("it did not refuse")
            return
        self.stage.until(lambda: bool(self.stage.completed), "a bounded run has come to its end")
        self._supervisor.wants_driver = False

    def _restore_afresh(self) -> None:
        """One more run on empty disks, undisturbed: what it restores is judged with the rest."""
        sim = self.sim
        for driver in sim.live_drivers():  # e.g. one that took over after the bounded run had ended
            driver.coordinator.request_stop()
            self.stage.until(lambda d=driver: bool(d.process.ended), f"{driver.process.name} has ended", ENDS_WITHIN_S)  # type: ignore[misc]
        self.stage.until(lambda: not sim.live_containers(), "no process is left", ENDS_WITHIN_S)
        for host in self.plan.hosts:
            sim.disk.delete(host)
        self.stage.until(self.stage.is_decided, "no transaction is open in the input", DECIDED_WITHIN_S)
        for _ in range(ATTEMPTS):
            driver = sim.start(until_end=True)
            self.stage.until(lambda d=driver: bool(d.process.ended), "the run that restores everything has ended", ENDS_WITHIN_S)  # type: ignore[misc]
            if code_of(driver) not in REPLACED:  # by an init that was sent long ago and came late
                break
        if driver.exit_code != 0:
            sim.problem(f"{driver.process.name}, on empty disks, ended with {driver.exit_code}: {told(driver)}")
        else:
            self.stage.completed.add(driver.run_id)

    # -- disturbing --------------------------------------------------------------------------------------------------------------------

    def _at_point(self, name: str, process: SimProcess) -> None:
        self.watch(name, process)
        self._strikes(name, process)

    def _disturb(self, strikes: tuple[Strike, ...]) -> None:
        self.stage.disturbed.append((self.sim.baton.now, math.inf))
        self._strikes.arm(strikes)

    def _live_through(self, events: tuple[Event, ...], seconds: float) -> None:
        baton = self.sim.baton
        for event in events:
            baton.sleep(max(0.0, event.at - baton.now))
            self.stage.say(f"EVENT {event.kind} {event.dice:.2f} {event.seconds:.1f}")
            EVENTS[event.kind](self.stage, event)
        baton.sleep(max(0.0, seconds - baton.now))

    def _heal(self) -> None:
        """From now on nothing goes wrong; what is under way already may still arrive."""
        self.stage.say("HEALED")
        sim = self.sim
        self._strikes.arm(())
        sim.times.late_kills, sim.switch_odds = 0.0, 0.0
        sim.chance.end()
        sim.cluster.forget_faults()
        for driver in sim.live_drivers():
            self.stage.thaw(driver.process)
        for container in sim.live_containers():
            self.stage.thaw(container.process)
            container.hears_nothing_until = container.unreachable_until = 0.0
        self.stage.disturbed = [(since, min(until, sim.baton.now)) for since, until in self.stage.disturbed]

    # -- what the job is made of ---------------------------------------------------------------------------------------------------------

    def _adjusted(self, spec: ContainerSpec) -> ContainerSpec:
        return replace(spec, poll_records=FEW) if self.plan.small_batches else spec

    def _new_task(self) -> SimTask:
        if self.plan.by_batch:
            return BatchTask(self._pause, self.watch.saw_init, self._fails)
        return SimTask(self._pause, self.watch.saw_init)

    def _fails(self) -> bool:
        fails = self._stumbles.random() < BATCHES_THAT_FAIL
        if fails:
            self.coverage.count("batches undone")
        return fails
