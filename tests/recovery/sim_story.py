"""A plan carried out: the world's actors (feeder, strangers, cleaner, supervisor), strikes and events, then healing, then the end.

The supervisor does what an operator's init system does: a driver that ended is started again, one that does not answer gets a second beside
it. A driver may end with an error of Kafka's while the world is disturbed; any other error, and any after healing, is a finding.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from samzapy.api.errors import ConfigurationError, LauncherError, LogError
from samzapy.container import restorer, standby
from samzapy.container.spec import ContainerSpec
from samzapy.model.checkpoint import CHECKPOINT_KEY, Checkpoint, checkpoint_from_bytes
from samzapy.model.offsets import TopicPartition
from samzapy.testing.baton import SimProcess
from samzapy.testing.memory_transactions import Session
from samzapy.testing.simulated_process import SimContainer
from samzapy.testing.simulation import SimDriver, Simulation
from tests.recovery.sim_counting import AT_POINTS, Coverage, counting
from tests.recovery.sim_judge import History
from tests.recovery.sim_plan import CRASH, FAILURES, LATE_CRASH, LONGEST_S, Event, Plan, Strike, phase_of
from tests.recovery.sim_task import ENDS, INPUT, KEYS, OUTPUT, TABLE, SimTask, document, pausing

LIVELY_S = 120.0  # within which a healed job must have come to rest
TABLE_KEYS = 40
KAFKAS = {"SZ300", "SZ301", "SZ310", "SZ311", "SZ312", "SZ313", "SZ314"}  # errors that a disturbed Kafka excuses
OUT_OF_RANGE = "SZ320"
TOMBSTONES_STAY_MS = 120_000
FEW = 7


@contextmanager
def batches_of(records: int) -> Iterator[None]:
    """Restores and warm copies take so many records at a time."""
    before = restorer.BATCH_RECORDS, standby.BATCH_RECORDS
    restorer.BATCH_RECORDS = standby.BATCH_RECORDS = records
    try:
        yield
    finally:
        restorer.BATCH_RECORDS, standby.BATCH_RECORDS = before


class Story:
    """One seed's history. `tell` makes it happen.

    Attributes:
        findings: what must not be.
        truncated: inputs were removed unread, and the job has to refuse.
        completed: bounded runs that ended with 0.
    """

    def __init__(self, plan: Plan, trace: Callable[[str], None] | None = None) -> None:
        self.plan, self.trace = plan, trace
        self.draw = random.Random(f"{plan.seed}/story")
        self.coverage = Coverage()
        topics = dict.fromkeys((INPUT, OUTPUT, ENDS, *((TABLE,) if plan.job["table"] else ())), plan.tasks)
        self.sim = Simulation(
            plan.seed, document(plan.job), self._new_task, topics, plan.hosts, plan.odds, LONGEST_S, trace=trace, adjust=self._adjusted
        )  # fmt: skip
        self.sim.times.late_kills, self.sim.times.lost_batches = plan.late_kills, plan.lost_batches
        self.sim.drivers_share_host, self.sim.switch_odds = plan.drivers_share_host, plan.switch_odds
        self._pause = pausing(random.Random(f"{plan.seed}/pauses"), self.sim.baton.sleep, plan.pause_odds)
        counting(self.sim, self.coverage)
        self.sim.strike, self.sim.on_thaw, self.sim.on_container_end = self._strike, self._on_thaw, self._on_end
        self.sim.on_driver_thaw = self._on_driver_thaw
        self.history = History(self.sim)
        self.first_ends: dict[str, int] = {}  # of INPUT, when a task's init() was first called
        self.truncated = False
        self.completed: set[str] = set()
        self._armed: list[tuple[Strike, list[int]]] = []
        self._took_over: set[SimDriver] = set()
        self._began = 0.0
        self._is_disturbed = self._is_written = False
        self._wants_driver = self._until_end = False
        self._restored: set[int] = set()
        self._backups: dict[str, object] = {}
        self._fed = 0
        self._feeding = Session("", self.sim.cluster.new_producer_id(), 0)
        self._sequences: Counter[TopicPartition] = Counter()
        self._known: set[SimDriver] = set()

    @property
    def findings(self) -> list[str]:
        return self.sim.problems

    # -- the whole -------------------------------------------------------------------------------------------------------------------

    def tell(self) -> None:
        """From the first start to the last end."""
        with batches_of(FEW if self.plan.small_batches else restorer.BATCH_RECORDS):
            self._tell()

    def _tell(self) -> None:
        plan, sim = self.plan, self.sim
        self._configure()
        if plan.job["table"]:
            for number in range(TABLE_KEYS):
                for partition in range(plan.tasks):
                    self._append(TABLE, partition, f"user-{number}", str(number))
        self.feed(20)
        writers = [sim.baton.spawn(name, work) for name, work in (("feeder", self._feed_on), ("strangers", self._write_on))]
        for name, work in (("cleaner", self._clean_on), ("post", self._deliver)):
            sim.baton.spawn(name, work)
        sim.baton.spawn("supervisor", self._supervise)
        self._disturb(plan.strikes)
        self._wants_driver = True
        self._live_through(plan.events, plan.faults_s)
        if plan.rests:
            self._heal()
            self._until(self._is_at_rest, "the healed job has come to rest")
        self._end_first_run()
        self._interlude()
        self._until_end = self._wants_driver = True
        if plan.late_strikes and not self.truncated:
            self._disturb(plan.late_strikes)
            sim.baton.sleep(6.0)
        self._heal()
        self._await_end()
        self._is_written = True
        for writer in writers:
            writer.join()
        if not self.truncated:
            self._restore_afresh()
        self.history.look()

    def _configure(self) -> None:
        for topic in {place.topic for place in self.history.places if place.topic.endswith("-changelog")}:
            self.sim.cluster.configure(topic, {"delete.retention.ms": str(TOMBSTONES_STAY_MS)})
        self.sim.look_at_topics()

    def _end_first_run(self) -> None:
        sim, ending = self.sim, self.plan.ending
        self._wants_driver = False
        if ending == "overlap":
            self.say("the second run begins beside the first")
            sim.start(until_end=True, takeover=True)
            return
        for driver in sim.live_drivers():
            self._thaw(driver.process)
            if ending == "stop":
                driver.coordinator.request_stop()
        if ending == "stop":
            self._until(lambda: not sim.live_drivers(), "a driver that was asked to stop has ended", 60.0)
        for driver in sim.live_drivers():
            sim.baton.kill(driver.process, "killed at the end of the first run")

    def _interlude(self) -> None:
        sim, what = self.sim, self.plan.interlude
        if what == "":
            self.feed(10)
            return
        self._until(lambda: not sim.live_containers(), "no process is left", 60.0)
        if what == "age":
            self._clean()
            sim.baton.sleep(TOMBSTONES_STAY_MS / 1000 + 5.0)
            self._clean()
        if what in ("age", "bring_back"):
            for host, copy in sorted(self._backups.items()):
                self.say(f"{host} has an older copy of its state again")
                sim.disk.bring_back(host, copy)  # type: ignore[arg-type]
                self.coverage.count("old copy brought back")
        if what == "delete":
            for host in self.plan.hosts:
                if self.draw.random() < 0.6:
                    sim.disk.delete(host)
                    self.coverage.count("local state deleted")
        self.feed(10)
        if what == "truncate":
            self._truncate()

    def _truncate(self) -> None:
        for partition in range(self.plan.tasks):
            self._append(INPUT, partition, "key-0", "unread")
            self._append(INPUT, partition, "key-1", "unread too")
            place, checkpoint = TopicPartition(INPUT, partition), self.checkpoint(partition)
            end = self.sim.end(place)
            if checkpoint is not None and checkpoint.inputs[str(place)].next_offset < end - 1:
                self.history.look()
                self.sim.cluster.delete_records(place, end - 1)
                self.truncated = True

    def _await_end(self) -> None:
        sim = self.sim
        if self.truncated:
            self.coverage.count("inputs truncated")
            refused = self._until(
                lambda: any(code_of(d) == OUT_OF_RANGE for d in sim.drivers), "a job whose unread input was removed refuses to go on"
            )
            self._wants_driver = False
            if not refused:
                self.say("it did not refuse")
            return
        self._until(lambda: bool(self.completed), "a bounded run has come to its end")
        self._wants_driver = False

    def _restore_afresh(self) -> None:
        """One more run on empty disks, undisturbed: what it restores is judged with the rest."""
        sim = self.sim
        for driver in sim.live_drivers():
            self._until(lambda d=driver: bool(d.process.ended), f"{driver.process.name} has ended", 60.0)  # type: ignore[misc]
        self._until(lambda: not sim.live_containers(), "no process is left", 60.0)
        for host in self.plan.hosts:
            sim.disk.delete(host)
        self._until(self._is_decided, "no transaction is open in the input", 60.0)
        driver = sim.start(until_end=True)
        self._until(lambda: bool(driver.process.ended), "the run that restores everything has ended", 60.0)
        if driver.exit_code != 0:
            sim.problem(f"{driver.process.name}, on empty disks, ended with {driver.exit_code}: {told(driver)}")
        else:
            self.completed.add(driver.run_id)

    # -- waiting ---------------------------------------------------------------------------------------------------------------------

    def _until(self, condition: Callable[[], bool], what: str, within_s: float = LIVELY_S) -> bool:
        deadline = self.sim.baton.now + within_s
        while not condition():
            if self.sim.baton.now >= deadline:
                self.sim.problem(f"not within {within_s:.0f} s: {what}")
                return False
            self.sim.baton.sleep(0.3)
        return True

    def _is_at_rest(self) -> bool:
        drivers = [d for d in self.sim.live_drivers() if d.coordinator.roster.state == "RUNNING"]
        if len(drivers) != 1 or drivers[0].coordinator.roster.is_changing:
            return False
        return all(
            (c := self.checkpoint(place.partition)) is not None and c.inputs[str(place)].next_offset >= self.sim.end(place)
            for place in self.sim.places([INPUT])
        )

    def _is_decided(self) -> bool:
        return all(self.sim.end(place) == self.sim.cluster.partition(place).end for place in self.sim.places([INPUT]))

    def checkpoint(self, partition: int) -> Checkpoint | None:
        """A task's newest committed one."""
        records = self.sim.cluster.partition(TopicPartition(self.sim.job.checkpoint_topic, partition)).records
        newest = next((r for r in reversed(records) if r.key() == CHECKPOINT_KEY and r.state.value == "committed"), None)
        return None if newest is None else checkpoint_from_bytes(newest.value() or b"")

    # -- the world ---------------------------------------------------------------------------------------------------------------------

    def _append(self, topic: str, partition: int, key: str, value: str) -> None:
        place = TopicPartition(topic, partition)
        with self.sim.cluster.lock:
            self.sim.cluster.produce(self._feeding, self._sequences[place], place, key.encode(), value.encode(), 0, None)
        self._sequences[place] += 1

    def feed(self, records: int) -> None:
        for _ in range(records):
            self._fed += 1
            self._append(INPUT, self.draw.randrange(self.plan.tasks), f"key-{self.draw.randrange(KEYS)}", str(self._fed))

    def _feed_on(self) -> None:
        bursts = 25
        for _ in range(bursts):
            if self._is_written:
                return
            self.sim.baton.sleep(self.draw.random() * 1.6 * self.plan.faults_s / bursts)
            self.feed((self.plan.records - 30) // bursts + 1)

    def _clean(self) -> None:
        self.history.look()
        self.sim.cluster.clean()

    def _clean_on(self) -> None:
        while self.plan.cleans:
            self.sim.baton.sleep(self.draw.uniform(3.0, 8.0))
            self._clean()

    def _write_on(self) -> None:
        """Others write to the input too, in transactions that stay open for a while and may be aborted."""
        baton = self.sim.baton
        while self.plan.strangers and not self._is_written:
            producer = self.sim.log.transactional_producer("stranger")
            try:
                producer.init()
                producer.begin()
                for _ in range(self.draw.randint(1, 4)):
                    producer.send(INPUT, b"of a stranger", f"key-{self.draw.randrange(KEYS)}".encode(), self.draw.randrange(self.plan.tasks))
                producer.flush()
                baton.sleep(self.draw.random() * 3.0)
                producer.commit() if self.draw.random() < 0.5 else producer.abort()
            except LogError:
                self.coverage.count("strangers in doubt")
            baton.sleep(self.draw.uniform(0.5, 4.0))

    def _deliver(self) -> None:
        """What was held on purpose arrives some time."""
        while True:
            self.sim.baton.sleep(self.draw.uniform(1.0, 8.0))
            for request in ("end", "marker"):
                self.sim.cluster.deliver_held(request)

    def _supervise(self) -> None:
        baton, sim = self.sim.baton, self.sim
        while True:
            baton.sleep(self.draw.uniform(0.3, 0.8))
            for driver in sim.drivers:
                if driver.process.ended and driver not in self._known:
                    self._known.add(driver)
                    self._note_end(driver)
            if not self._wants_driver:
                continue
            live = sim.live_drivers()
            frozen = [d for d in live if d.process.frozen_until > baton.now]
            obsolete = self._until_end and all(d.ends is None for d in live)
            if obsolete or not live or (len(frozen) == len(live) == 1 and self.draw.random() < 0.3):
                baton.sleep(self.draw.random())
                if self._wants_driver:
                    self.say(f"the supervisor starts a driver{' beside a frozen one' if live else ''}")
                    sim.start(until_end=self._until_end, takeover=bool(live) and (obsolete or self.draw.random() < 0.5))

    def _note_end(self, driver: SimDriver) -> None:
        self.say(f"{driver.process.name}: {driver.process.ended}: {told(driver)}")
        if driver.exit_code == 0 and driver.ends is not None:
            self.completed.add(driver.run_id)
            self._wants_driver = False
        if driver.exit_code in (None, 0):
            return
        code = code_of(driver)
        expected = code == OUT_OF_RANGE and self.truncated
        if not expected and (code not in KAFKAS or (not self._is_disturbed and code not in ("SZ312", "SZ314"))):
            self.sim.problem(f"{driver.process.name} ended with {driver.exit_code}, {told(driver)}")
        self.coverage.count("runs that failed")

    # -- disturbing --------------------------------------------------------------------------------------------------------------------

    def _disturb(self, strikes: tuple[Strike, ...]) -> None:
        self._is_disturbed = True
        self._began = self.sim.baton.now
        self._armed = [(strike, [0]) for strike in strikes]

    def _note(self, name: str, process: SimProcess) -> None:
        what = AT_POINTS.get(name)
        if what is not None:
            self.coverage.count(what)
        if name == "coordinator.taken_over":
            driver = next(d for d in self.sim.drivers if d.process is process)
            self._took_over.add(driver)
            if driver.number > 1 and self.sim.drivers[driver.number - 2].exit_code != 0:
                self.coverage.count("fail-overs")

    def _strike(self, name: str, process: SimProcess) -> None:
        self._note(name, process)
        if not self._armed:
            return
        now, phase = self.sim.baton.now - self._began, phase_of(name)
        for entry in self._armed:
            strike, met = entry
            if strike.phase == phase and strike.at <= now:
                met[0] += 1
                if met[0] >= strike.nth:
                    self._armed.remove(entry)
                    self._carry_out(strike, name, process)
                    return

    def _carry_out(self, strike: Strike, name: str, process: SimProcess) -> None:
        self.say(f"STRIKE {strike.action} {strike.seconds:.1f} at {name} in {process.name}")
        self.coverage.count(f"struck in {strike.phase}")
        baton = self.sim.baton
        if strike.action == CRASH:
            baton.kill(process, f"crashed at {name}")
        elif strike.action == LATE_CRASH:
            baton.doom(process, strike.seconds, f"crashed after {name}")
        else:
            baton.freeze(process, strike.seconds)

    def _live_through(self, events: tuple[Event, ...], seconds: float) -> None:
        baton = self.sim.baton
        for event in events:
            baton.sleep(max(0.0, event.at - baton.now))
            self.say(f"EVENT {event.kind} {event.dice:.2f} {event.seconds:.1f}")
            EVENTS[event.kind](self, event)
        baton.sleep(max(0.0, seconds - baton.now))

    def _heal(self) -> None:
        """From now on nothing goes wrong; what is under way already may still arrive."""
        self.say("HEALED")
        sim = self.sim
        self._armed = []
        sim.times.late_kills, sim.switch_odds = 0.0, 0.0
        sim.chance.end()
        sim.cluster.forget_faults()
        for driver in sim.live_drivers():
            self._thaw(driver.process)
        for container in sim.live_containers():
            self._thaw(container.process)
            container.hears_nothing_until = 0.0
        self._is_disturbed = False

    def _thaw(self, process: SimProcess) -> None:
        if process.frozen_until > self.sim.baton.now:
            self.sim.baton.thaw(process)

    def a_container(self, event: Event) -> SimContainer | None:
        live = [c for c in self.sim.live_containers() if c.container is not None]
        return live[int(event.dice * len(live))] if live else None

    def a_driver(self) -> SimDriver | None:
        return next((d for d in reversed(self.sim.live_drivers()) if d.process.frozen_until <= self.sim.baton.now), None)

    # -- what is counted -----------------------------------------------------------------------------------------------------------------

    def _adjusted(self, spec: ContainerSpec) -> ContainerSpec:
        return replace(spec, poll_records=FEW) if self.plan.small_batches else spec

    def _new_task(self) -> SimTask:
        return SimTask(self._pause, self._saw_init)

    def _saw_init(self, task: str) -> None:
        partition = int(task.rsplit(" ", 1)[1])
        self.first_ends.setdefault(task, self.sim.cluster.partition(TopicPartition(INPUT, partition)).end)
        for container in self.sim.live_containers():
            for one in container.container.tasks.values() if container.container is not None else ():
                if one.restored and id(one) not in self._restored:
                    self._restored.add(id(one))
                    for restored in one.restored.values():
                        self.coverage.count(f"restored: {restored.source}")

    def _on_thaw(self, container: SimContainer, seconds: float) -> None:
        newest = self.sim.drivers[-1].coordinator.roster.members.get(container.number)
        if newest is None or newest.incarnation != container.incarnation:
            self.coverage.count("zombie containers")
            self.say(f"{container.process.name} wakes up as a zombie after {seconds:.1f} s")

    def _on_driver_thaw(self, driver: SimDriver, seconds: float) -> None:
        if any(d.number > driver.number and d in self._took_over for d in self.sim.drivers):
            self.coverage.count("zombie drivers")
            self.say(f"{driver.process.name} wakes up as a zombie after {seconds:.1f} s")

    def _on_end(self, container: SimContainer) -> None:
        self.say(f"{container.process.name}: {container.process.ended}")

    def say(self, line: str) -> None:
        if self.trace is not None:
            self.trace(f"{self.sim.baton.now:.6f} == {line}")


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


# -- events ------------------------------------------------------------------------------------------------------------------------------


def _scale(story: Story, event: Event) -> None:
    _ask(story, lambda d: d.coordinator.changes.scale(1 + int(event.dice * sum(story.plan.hosts.values()))), "scalings")


def _restart(story: Story, event: Event) -> None:
    number = int(event.dice * 4)
    _ask(story, lambda d: d.coordinator.changes.restart(None if number == 3 else number), "restarts")


def _ask(story: Story, request: Callable[[SimDriver], object], what: str) -> None:
    driver = story.a_driver()
    if driver is None:
        return
    try:
        request(driver)
        story.coverage.count(what)
    except (ConfigurationError, LauncherError):
        story.coverage.count("requests refused")


def _second_driver(story: Story, event: Event) -> None:
    story.sim.start(takeover=event.dice < 0.7)
    story.coverage.count("second drivers")


def _kill_driver(story: Story, event: Event) -> None:
    driver = story.a_driver()
    if driver is not None:
        story.sim.baton.kill(driver.process, "SIGKILL")


def _freeze_driver(story: Story, event: Event) -> None:
    driver = story.a_driver()
    if driver is not None:
        story.sim.baton.freeze(driver.process, event.seconds)


def _kill_container(story: Story, event: Event) -> None:
    container = story.a_container(event)
    if container is not None:
        story.sim.baton.kill(container.process, "SIGKILL")


def _freeze_container(story: Story, event: Event) -> None:
    container = story.a_container(event)
    if container is not None:
        story.sim.baton.freeze(container.process, event.seconds)


def _cut_off_container(story: Story, event: Event) -> None:
    container = story.a_container(event)
    if container is not None:
        story.sim.cluster.cut_off(event.seconds, container.process.name)


def _cut_off_from_driver(story: Story, event: Event) -> None:
    container = story.a_container(event)
    if container is not None:
        container.hears_nothing_until = story.sim.baton.now + event.seconds


def _outage(story: Story, event: Event) -> None:
    story.sim.cluster.cut_off(event.seconds)
    story.coverage.count("outages")


def _fail(story: Story, event: Event) -> None:
    call, kind = FAILURES[int(event.dice * len(FAILURES))]
    story.sim.cluster.fail_next(call, kind)


def _expire(story: Story, event: Event) -> None:
    story.sim.cluster.expire(story.sim.job.container_transactional_id(int(event.dice * 3)))
    story.coverage.count("transaction timeouts")


def _hold_end(story: Story, event: Event) -> None:
    story.sim.cluster.disturb_next("end", "held")
    story.coverage.count("held EndTxn")


def _hold_marker(story: Story, event: Event) -> None:
    story.sim.cluster.disturb_next("marker", "held")


def _lose_host(story: Story, event: Event) -> None:
    """All processes there end, and its disk is gone."""
    sim, host = story.sim, list(story.plan.hosts)[int(event.dice * len(story.plan.hosts))]
    for container in [c for c in sim.live_containers() if c.host == host]:
        sim.baton.kill(container.process, "its host is gone")
    sim.disk.delete(host)
    story.coverage.count("local state deleted")


def _back_up(story: Story, event: Event) -> None:
    for host in story.plan.hosts:
        story._backups.setdefault(host, story.sim.disk.copy(host))


EVENTS: dict[str, Callable[[Story, Event], None]] = {
    "scale": _scale, "restart": _restart, "second_driver": _second_driver, "kill_driver": _kill_driver, "freeze_driver": _freeze_driver,
    "kill_container": _kill_container, "freeze_container": _freeze_container, "cut_off_container": _cut_off_container,
    "cut_off_from_driver": _cut_off_from_driver, "outage": _outage, "fail": _fail, "expire": _expire, "hold_end": _hold_end,
    "hold_marker": _hold_marker, "lose_host": _lose_host, "back_up": _back_up,
}  # fmt: skip
