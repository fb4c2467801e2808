"""What a long trial does: faults of several kinds in an order that its seed decides, some of them while the job still recovers from the last.

Kinds differ in whom they need: some need Spark's processes, some a cluster of ours (whose workers can be brought back), some the driver
whose links can be cut. Each is a function of the trial, the step and the lease; what it cannot do now, because there is no such process, it
says by False.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tests.recovery.fault_run import FaultRun
from tests.recovery.faults import JobProcesses, Proc, Table, containers_below, processes

KILL_CONTAINER, PAUSE_CONTAINER, KILL_DRIVER, PAUSE_DRIVER = "kill container", "pause container", "kill driver", "pause driver"
PAUSE_BOTH, CUT_LINK, CUT_LINKS = "pause driver and container", "cut link", "cut all links"
SCALE, RESTART_ONE, RESTART_ALL = "scale", "restart one", "restart all"
KILL_EXECUTOR, KILL_DAEMON, PAUSE_EXECUTOR, PAUSE_DAEMON = "kill executor", "kill daemon", "pause executor", "pause daemon"
PAUSE_WORKER, KILL_WORKER, KILL_HOST = "pause worker", "kill worker", "kill host"
WEIGHTS = {
    KILL_CONTAINER: 12, PAUSE_CONTAINER: 3, KILL_DRIVER: 1, PAUSE_DRIVER: 1, PAUSE_BOTH: 2, CUT_LINK: 2, CUT_LINKS: 1,
    SCALE: 4, RESTART_ONE: 2, RESTART_ALL: 1, KILL_EXECUTOR: 3, KILL_DAEMON: 2, PAUSE_EXECUTOR: 1, PAUSE_DAEMON: 1, PAUSE_WORKER: 1,
    KILL_WORKER: 2, KILL_HOST: 2,
}  # fmt: skip
OF_EXECUTORS = (KILL_EXECUTOR, KILL_DAEMON, PAUSE_EXECUTOR, PAUSE_DAEMON, PAUSE_WORKER)
OF_OUR_CLUSTER = (KILL_WORKER, KILL_HOST)
OF_LINKS = (CUT_LINK, CUT_LINKS)
NEEDS_A_WHOLE_JOB = {PAUSE_CONTAINER, PAUSE_BOTH, CUT_LINK, CUT_LINKS, SCALE, RESTART_ONE, RESTART_ALL, *OF_OUR_CLUSTER}


def kinds_for(has_executors: bool, has_cluster: bool) -> tuple[str, ...]:
    """All that can be done to a job that runs so."""
    return tuple(k for k in WEIGHTS if (has_executors or k not in OF_EXECUTORS) and (has_cluster or k not in OF_OUR_CLUSTER))


@dataclass(frozen=True, slots=True)
class Step:
    """One fault: after `calm_s` seconds; `pick` (0 to 1) chooses among the processes there are; not `patient`: before the job is whole again."""

    kind: str
    calm_s: float
    pick: float
    patient: bool


def steps(
    seed: int, kinds: Sequence[str], calm_s: float, impatient: float, weights: Mapping[str, float] = WEIGHTS,
    needs_a_whole_job: Collection[str] = NEEDS_A_WHOLE_JOB,
) -> Iterator[Step]:  # fmt: skip
    """Without end: the same for the same arguments. The first round has every kind once, in an order of its own."""
    chance = random.Random(seed)
    first = chance.sample(list(kinds), len(kinds))
    while True:
        kind = first.pop() if first else chance.choices(kinds, [weights[k] for k in kinds])[0]
        patient = chance.random() >= impatient or kind in needs_a_whole_job
        yield Step(kind, calm_s * (0.2 + 1.6 * chance.random()), chance.random(), patient)


def play(fault_run: FaultRun, script: Iterator[Step], enough: Callable[[], bool], lease_s: float, say: Callable[[str], None]) -> None:
    """One step after the other until `enough`; after each that is waited for, owners and output are looked at. The job is whole at the end."""
    while not enough():
        step = next(script)
        if fault_run.faults and step.patient:
            fault_run.recovered()
            fault_run.look()
        fault_run.passed(step.calm_s if step.patient else step.calm_s / 4)
        if not strike(fault_run, step, lease_s):
            say(f"{step.kind}: no such process now")
            fault_run.whole()
            continue
        fault = fault_run.faults[-1]
        say(
            f"{len(fault_run.faults)}: {fault.kind}, {fault.target}, {len(fault.tasks)} tasks {fault.phase or 'of unknown state'} {fault.note}".rstrip()
        )
    if fault_run.faults:
        fault_run.recovered()
        fault_run.look()


def strike(fault_run: FaultRun, step: Step, lease_s: float) -> bool:
    """Carry a step out; False: there is no process of that kind now."""
    if step.kind in NEEDS_A_WHOLE_JOB:
        fault_run.whole()
    return STRIKES[step.kind](fault_run, step, lease_s + 1.0 + step.pick)


# -- one function per kind: (trial, step, how long something that lasts is to last) ----------------------------------------------------


def _kill(fault_run: FaultRun, step: Step, _: float) -> bool:
    victim = victim_of(fault_run, step)
    return victim is not None and fault_run.kill(step.kind, victim)


def _pause_container(fault_run: FaultRun, step: Step, _: float) -> bool:
    victim = victim_of(fault_run, step)
    return victim is not None and fault_run.pause(step.kind, victim)


def _pause(fault_run: FaultRun, step: Step, seconds: float) -> bool:
    """What lies above containers stops, they themselves go on."""
    victim = victim_of(fault_run, step)
    return victim is not None and fault_run.stop_for(step.kind, [victim], seconds, ends_containers=False)


def _pause_driver(fault_run: FaultRun, step: Step, seconds: float) -> bool:
    """Every container gives up: nobody answers it."""
    return fault_run.stop_for(step.kind, [fault_run.driver()], seconds, ends_containers=True)


def _pause_both(fault_run: FaultRun, step: Step, seconds: float) -> bool:
    """The container that wakes up with its coordinator must not have kept its tasks; who wakes first is the seed's to choose."""
    victim = victim_of(fault_run, step)
    if victim is None:
        return False
    both = [fault_run.driver(), victim]
    return fault_run.stop_for(step.kind, both if step.pick < 0.5 else both[::-1], seconds, ends_containers=True)


def _kill_driver(fault_run: FaultRun, _: Step, __: float) -> bool:
    fault_run.kill_driver()
    return True


def _cut(fault_run: FaultRun, step: Step, seconds: float) -> bool:
    numbers = sorted(fault_run.processes().containers)
    if not numbers:
        return False
    fault_run.cut(step.kind, numbers if step.kind == CUT_LINKS else [numbers[int(step.pick * len(numbers)) % len(numbers)]], seconds)
    return True


def _scale(fault_run: FaultRun, step: Step, _: float) -> bool:
    now = fault_run.containers()
    others = [n for n in range(1, fault_run.most_containers + 1) if n != now]
    wanted = others[int(step.pick * len(others)) % len(others)]
    fault_run.command(step.kind, f"{now} -> {wanted}", "scale", "--containers", str(wanted))
    return True


def _restart(fault_run: FaultRun, step: Step, _: float) -> bool:
    numbers = sorted(fault_run.processes().containers)
    if step.kind == RESTART_ALL or not numbers:
        fault_run.command(step.kind, "all", "restart")
        return True
    number = str(numbers[int(step.pick * len(numbers)) % len(numbers)])
    fault_run.command(step.kind, f"container {number}", "restart", "--container", number)
    return True


def _lose(fault_run: FaultRun, step: Step, _: float) -> bool:
    victim = victim_of(fault_run, step)
    return victim is not None and fault_run.lose_worker(step.kind, victim, whole_host=step.kind == KILL_HOST)


STRIKES: dict[str, Callable[[FaultRun, Step, float], bool]] = {
    KILL_CONTAINER: _kill, KILL_EXECUTOR: _kill, KILL_DAEMON: _kill, KILL_DRIVER: _kill_driver,
    PAUSE_CONTAINER: _pause_container, PAUSE_EXECUTOR: _pause, PAUSE_DAEMON: _pause, PAUSE_WORKER: _pause,
    PAUSE_DRIVER: _pause_driver, PAUSE_BOTH: _pause_both, CUT_LINK: _cut, CUT_LINKS: _cut,
    SCALE: _scale, RESTART_ONE: _restart, RESTART_ALL: _restart, KILL_WORKER: _lose, KILL_HOST: _lose,
}  # fmt: skip


def victim_of(fault_run: FaultRun, step: Step) -> Proc | None:
    """The process that a step hits; kinds that no table knows hit containers."""
    found, table = fault_run.processes(), processes()
    victims = _victims(found, table, step.kind)
    return victims[int(step.pick * len(victims)) % len(victims)] if victims else None


def _victims(found: JobProcesses, table: Table, kind: str) -> list[Proc]:
    """The processes that a kind may hit: of Spark's, those that have containers below them."""
    if kind in (KILL_CONTAINER, PAUSE_CONTAINER, PAUSE_BOTH) or kind not in WEIGHTS:
        return [found.containers[n] for n in sorted(found.containers)]
    if kind in (KILL_EXECUTOR, PAUSE_EXECUTOR):
        spark = found.executors
    elif kind in (KILL_DAEMON, PAUSE_DAEMON):
        spark = found.daemons
    else:
        spark = found.workers
    return [p for p in sorted(spark, key=lambda p: p.pid) if containers_below(table, found, p)]
