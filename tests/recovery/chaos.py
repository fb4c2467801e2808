"""Chaos: two jobs, one of which reads what the other writes, over brokers, a network and disks that are hit as well.

The first is a ChainTask job under load; the second repartitions its output by another key. Both reach Kafka through a proxy. What can be hit: every
process of either job, every broker (one at a time: of three replicas one may be away), all connections, the local stores of a container that is
down, and the disk of the first job, which is small. `World` is what there is; a kind of fault is a function of it and the step, and says by False
that there is nothing of that kind now.
"""

from __future__ import annotations

import random
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from samzapy.dev.kafka import LocalKafka
from tests.proxy.faults import storm
from tests.proxy.proxy import KafkaProxy
from tests.proxy.wire import Api
from tests.recovery.damage import copied, corrupt, delete, open_stores, put_back
from tests.recovery.fault_run import FaultRun, now_ms
from tests.recovery.faults import Fault, Proc, is_alive, send
from tests.recovery.scenario import (
    KILL_CONTAINER,
    KILL_DAEMON,
    KILL_DRIVER,
    KILL_EXECUTOR,
    PAUSE_BOTH,
    PAUSE_CONTAINER,
    PAUSE_DAEMON,
    PAUSE_DRIVER,
    PAUSE_EXECUTOR,
    STRIKES,
    Step,
    steps,
    victim_of,
)

DELETED, STALE, CORRUPTED, DISK_FULL = "state deleted", "state stale", "state corrupted", "disk full"
KILL_BROKER, PAUSE_BROKER, CUT, DELAY = "kill broker", "pause broker", "cut connections", "delay connections"
WEIGHTS = {
    KILL_CONTAINER: 32, PAUSE_CONTAINER: 2, KILL_DRIVER: 1.5, PAUSE_DRIVER: 0.7, PAUSE_BOTH: 1, DELETED: 2, STALE: 1.5, CORRUPTED: 2, DISK_FULL: 0.4,
    KILL_BROKER: 1.5, PAUSE_BROKER: 1, CUT: 2, DELAY: 1.5, KILL_EXECUTOR: 2, KILL_DAEMON: 2, PAUSE_EXECUTOR: 0.7, PAUSE_DAEMON: 0.7,
}  # fmt: skip
KILLS = (KILL_CONTAINER, KILL_DRIVER, KILL_EXECUTOR, KILL_DAEMON)
OF_SPARK = (KILL_EXECUTOR, KILL_DAEMON, PAUSE_EXECUTOR, PAUSE_DAEMON)
OF_DRIVERS = (KILL_DRIVER, PAUSE_DRIVER)
OF_BROKERS = (KILL_BROKER, PAUSE_BROKER)
OF_NETWORK = (CUT, DELAY)
PATIENT = {*WEIGHTS} - {KILL_CONTAINER, KILL_EXECUTOR, KILL_DAEMON}
STORMY = (
    Api.PRODUCE, Api.FETCH, Api.LIST_OFFSETS, Api.METADATA, Api.FIND_COORDINATOR, Api.INIT_PRODUCER_ID, Api.ADD_PARTITIONS_TO_TXN, Api.END_TXN,
)  # fmt: skip
BROKER_AWAY_S = 6.0
ZOMBIE_S = 5.0  # in which a container that was stopped beyond its lease has to end when it wakes
ENDS_S = 120.0  # in which a job that cannot go on ends, on a busy machine
FLUSHED_S = 30.0  # in which every store is flushed, which is done each ten seconds: until then a full disk and damaged files must have been met
LOCAL, SPARK = "local", "Spark"


def kinds_of(spark: bool, brokers: bool, network: bool, small_disk: bool) -> tuple[str, ...]:
    """What can be done where there is this."""
    missing = {*(() if spark else OF_SPARK), *(() if brokers else OF_BROKERS), *(() if network else OF_NETWORK)}
    return tuple(k for k in WEIGHTS if k not in missing and (small_disk or k != DISK_FULL))


def script(seed: int, kinds: Sequence[str], calm_s: float, impatient: float) -> Iterator[Step]:
    """The faults in turn, without end: the same for the same arguments; the first round has every kind once."""
    return steps(seed, kinds, calm_s, impatient, WEIGHTS, PATIENT)


@dataclass
class World:
    """What can be hit.

    Attributes:
        kafka: the brokers, if they are ours and several.
        disk: where the first job's stores lie, if that is a small disk of its own.
        problems: promises that a fault showed to be broken, in words.
        looks: called now and then, between faults.
        woken: how long each stopped container that woke beyond its lease went on to exist, in seconds.
    """

    first: FaultRun
    second: FaultRun
    scratch: Path
    kafka: LocalKafka | None = None
    proxy: KafkaProxy | None = None
    disk: Path | None = None
    problems: list[str] = field(default_factory=list)
    woken: list[float] = field(default_factory=list)
    looks: list[Callable[[], None]] = field(default_factory=list)
    _away: tuple[int, float] | None = None
    _returning: bool = False
    _pending: list[tuple[FaultRun, Fault]] = field(default_factory=list)
    _pause: threading.Event = field(default_factory=threading.Event)

    @property
    def fault_runs(self) -> tuple[FaultRun, FaultRun]:
        return self.first, self.second

    def faults(self) -> list[Fault]:
        return sorted((f for t in self.fault_runs for f in t.faults), key=lambda f: f.at_ms)

    def chosen(self, step: Step) -> tuple[FaultRun, Step]:
        """Which of the jobs a step is about, three times of four the first; and the step with what is left of its dice."""
        return (
            (self.first, replace(step, pick=step.pick / 0.75))
            if step.pick < 0.75
            else (self.second, replace(step, pick=(step.pick - 0.75) * 4))
        )

    def note(self, kind: str, target: str, seconds: float = 0.0) -> Fault:
        """A fault of everything: it stands with the first job's, and both must recover."""
        fault = Fault(now_ms(), kind, target, self.first.tasks(), part=self.first.part)
        self.first.faults.append(fault)
        self.second.hit_as_well(fault.at_ms)
        self._pending += [(self.first, fault), (self.second, replace(fault, tasks=self.second.tasks()))]
        return fault

    def awaits(self, fault_run: FaultRun) -> None:
        """The trial's last fault is to be recovered from."""
        self._pending.append((fault_run, fault_run.faults[-1]))

    def recovered(self) -> None:
        """Wait until both jobs are whole, and all that was hit has committed."""
        for fault_run, fault in self._pending:
            fault_run.recovered(fault)
        self._pending.clear()

    def runs(self) -> None:
        """Both drivers do; else this breaks off, near to what ended one."""
        for fault_run in self.fault_runs:
            code = fault_run.job.exited()
            assert code is None, f"the driver of {fault_run.job.name} ended with {code}:\n{fault_run.job.log_tail()}"

    def look(self) -> None:
        """Whether all is well so far; a trial that finds otherwise breaks off."""
        for look in (*(t.look for t in self.fault_runs), *self.looks):
            look()

    # -- brokers -----------------------------------------------------------------------------------------------------------------------

    def tend(self) -> None:
        """Bring back the broker that was away long enough."""
        if self.kafka is not None and self._away is not None and time.monotonic() >= self._away[1]:
            self.kafka.start_broker(self._away[0], tied=True)
            self._away, self._returning = None, True
        if self.kafka is not None and self._returning and self.kafka.is_answering():
            self._returning = False

    def may_lose_a_broker(self) -> bool:
        return self.kafka is not None and self._away is None and not self._returning

    def loses(self, broker: int, seconds: float) -> None:
        assert self.kafka is not None, "the brokers are not ours"
        self.kafka.kill_broker(broker)
        self._away = broker, time.monotonic() + seconds

    def brokers_back(self) -> None:
        """Every broker runs, or is on its way."""
        if self._away is not None:
            self._away = self._away[0], 0.0
        self.tend()

    def is_short_of_a_broker(self) -> bool:
        return self._away is not None or self._returning

    def passed(self, seconds: float) -> None:
        self._pause.wait(seconds)


def play(
    world: World, turns: Iterator[Step], enough: Callable[[], bool], lease_s: float, look_every: int, say: Callable[[str], None]
) -> None:
    """One step after the other until `enough`. Every so many, owners and output are looked at."""
    struck = 0
    while not enough():
        step = next(turns)
        world.tend()
        world.runs()
        if step.patient:
            world.recovered()
            if struck and struck % look_every == 0:
                world.look()
        world.passed(step.calm_s if step.patient else step.calm_s / 4)
        short = world.is_short_of_a_broker()
        before = len(world.faults())
        if not CHAOS[step.kind](world, step, lease_s + 1.0 + step.pick):
            say(f"{step.kind}: not possible now")
            continue
        struck += 1
        for fault in [f for f in world.faults()[before:] if short]:
            fault.note = f"{fault.note}, a broker is away".removeprefix(", ")
        for new in world.faults()[before:]:
            say(f"{struck}: {new.part} {new.kind}, {new.target}, {len(new.tasks)} tasks {new.phase} {new.note}".rstrip())


# -- one function per kind: (world, step, how long something that lasts is to last) -----------------------------------------------------


def _of_a_job(world: World, step: Step, seconds: float) -> bool:
    """What `scenario` does to one job."""
    to_first = step.kind in OF_SPARK or (world.first.part == SPARK and step.kind in OF_DRIVERS)
    fault_run, rest = (world.first, step) if to_first else world.chosen(step)
    if step.kind in PATIENT:
        fault_run.whole()
    if not STRIKES[step.kind](fault_run, rest, seconds):
        return False
    world.awaits(fault_run)
    return True


def _kill_container(world: World, step: Step, seconds: float) -> bool:
    """One of the first job, or of the second, or at once one of each."""
    rest = replace(step, pick=step.pick * 20 % 1.0)
    fault_runs = (world.first,) if step.pick < 0.5 else (world.second,) if step.pick < 0.65 else world.fault_runs
    hit = [fault_run for fault_run in fault_runs if STRIKES[step.kind](fault_run, rest, seconds)]
    for fault_run in hit:
        world.awaits(fault_run)
    return bool(hit)


def _pause_container(world: World, step: Step, seconds: float) -> bool:
    """Beyond its lease; if it still wakes, it must end soon."""
    fault_run, rest = world.chosen(step)
    fault_run.whole()
    victim = victim_of(fault_run, rest)
    if victim is None or not fault_run.pause(step.kind, victim):
        return False
    if fault_run.faults[-1].note == "woke up":
        _watch_zombie(world, fault_run, victim)
    world.awaits(fault_run)
    return True


def _watch_zombie(world: World, fault_run: FaultRun, victim: Proc) -> None:
    began = time.monotonic()
    while is_alive(victim) and time.monotonic() - began < 4 * ZOMBIE_S:
        world.passed(0.05)
    lived = time.monotonic() - began
    world.woken.append(lived)
    fault = fault_run.faults[-1]
    fault.note = f"woke up, gone after {lived:.1f} s"
    if lived > ZOMBIE_S:
        world.problems.append(f"{fault.target} of {fault_run.job.name} woke up beyond its lease and lived on for {lived:.1f} s")


def _damage(world: World, step: Step, _: float) -> bool:
    """A container is stopped, its open stores are changed, and then it is killed: to them, they changed while nobody ran."""
    fault_run, rest = world.chosen(step)
    fault_run.whole()
    victim = victim_of(fault_run, rest)
    if victim is None or not send(victim, signal.SIGSTOP):
        return False
    state = fault_run.job.folder / "state"
    if step.kind == STALE:
        copies = copied(open_stores(victim, state), world.scratch / f"copy-{now_ms()}")
        send(victim, signal.SIGCONT)
        world.passed(2.0 + 10.0 * step.pick)
        if not send(victim, signal.SIGSTOP):
            return False
        told = put_back(copies)
        shutil.rmtree(world.scratch, ignore_errors=True)
    elif step.kind == DELETED:
        told = delete(open_stores(victim, state))
    else:
        told = corrupt(open_stores(victim, state), random.Random(step.pick))
    if not fault_run.kill(step.kind, victim):
        return False
    fault_run.faults[-1].note = told
    world.awaits(fault_run)
    return True


def _said_full(world: World) -> int:
    """How often the first job's log tells of a full disk."""
    return world.first.job.log_tail(1 << 30).count("SZ403")


def _disk_full(world: World, step: Step, _: float) -> bool:
    """Fill the first job's disk until the job stops for it, then make room and start it again."""
    assert world.disk is not None, "the disk is not ours to fill"
    fault_run, ballast = world.first, world.disk / "ballast"
    fault_run.whole()
    fault = world.note(step.kind, "the first job's disk")
    fault.gone = frozenset(p.pid for p in fault_run.processes().containers.values())
    before = _said_full(world)
    with ballast.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(1 << 16))
        except OSError:
            fault.note = f"{file.tell() >> 20} MiB of ballast"
    deadline = time.monotonic() + FLUSHED_S
    while fault_run.job.exited() is None and time.monotonic() < deadline:
        world.passed(0.1)
    ballast.unlink()
    while fault_run.job.exited() is None and _said_full(world) > before and time.monotonic() < deadline + ENDS_S:
        world.passed(0.1)  # what met the full disk is on its way to its end, which takes long on a busy machine
    code = fault_run.job.exited()
    if code is not None:
        fault_run.job.wait()
        if code != 1 or "SZ403" not in fault_run.job.log_tail(20_000):
            world.problems.append(f"a full disk ended {fault_run.job.name} with {code} and without SZ403")
        fault_run.job.start()
    fault.over_ms = now_ms()
    fault.note += ", the job went on" if code is None else f", the job ended with {code} after {(fault.over_ms - fault.at_ms) / 1000:.1f} s"
    return True


def _broker(world: World, step: Step, seconds: float) -> bool:
    if world.kafka is None or not world.may_lose_a_broker():
        return False
    number = 1 + int(step.pick * len(world.kafka.nodes)) % len(world.kafka.nodes)
    fault = world.note(step.kind, f"broker {number}")
    if step.kind == KILL_BROKER:
        world.loses(number, BROKER_AWAY_S)
    else:
        world.kafka.pause_broker(number)
        world.passed(3 * seconds - 9.0 + 2.0)  # beyond the session of some, not of others
        world.kafka.resume_broker(number)
        fault.over_ms = now_ms()
        fault.note = f"for {(fault.over_ms - fault.at_ms) / 1000:.1f} s"
    return True


def _network(world: World, step: Step, seconds: float) -> bool:
    assert world.proxy is not None, "nobody is between the jobs and Kafka"
    fault = world.note(step.kind, "every connection")
    if step.kind == CUT:
        world.proxy.cut()
        return True
    traps = world.proxy.place_all(storm(int(step.pick * 1e6), STORMY, 0.1, 1.0))
    world.passed(seconds)
    world.proxy.calm()
    fault.over_ms = now_ms()
    fault.note = f"for {seconds:.1f} s, {sum(len(t.caught) for t in traps)} requests"
    return True


CHAOS: dict[str, Callable[[World, Step, float], bool]] = {
    **dict.fromkeys((KILL_DRIVER, PAUSE_DRIVER, PAUSE_BOTH, *OF_SPARK), _of_a_job),
    KILL_CONTAINER: _kill_container, PAUSE_CONTAINER: _pause_container, **dict.fromkeys((DELETED, STALE, CORRUPTED), _damage), DISK_FULL: _disk_full,
    **dict.fromkeys(OF_BROKERS, _broker), **dict.fromkeys(OF_NETWORK, _network),
}  # fmt: skip
