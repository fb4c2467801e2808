"""What a long trial does: faults of several kinds in an order that its seed decides, some of them while the job still recovers from the last."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from tests.recovery.faults import Proc, containers_below, processes
from tests.recovery.trial import Trial

KILL_CONTAINER, PAUSE_CONTAINER, KILL_DRIVER, PAUSE_DRIVER = "kill container", "pause container", "kill driver", "pause driver"
KILL_EXECUTOR, KILL_DAEMON = "kill executor", "kill daemon"
WEIGHTS = {KILL_CONTAINER: 12, PAUSE_CONTAINER: 3, KILL_DRIVER: 1, PAUSE_DRIVER: 1, KILL_EXECUTOR: 3, KILL_DAEMON: 2}
WITHOUT_SPARK = (KILL_CONTAINER, PAUSE_CONTAINER, KILL_DRIVER, PAUSE_DRIVER)
NEEDS_A_WHOLE_JOB = {PAUSE_CONTAINER}  # its end is told by a change of the status


@dataclass(frozen=True, slots=True)
class Step:
    """One fault: after `calm_s` seconds; `pick` (0 to 1) chooses among the processes there are; not `patient`: before the job is whole again."""

    kind: str
    calm_s: float
    pick: float
    patient: bool


def steps(seed: int, kinds: Sequence[str], calm_s: float, impatient: float) -> Iterator[Step]:
    """Without end: the same for the same arguments. The first round has every kind once, in an order of its own."""
    chance = random.Random(seed)
    first = chance.sample(list(kinds), len(kinds))
    while True:
        kind = first.pop() if first else chance.choices(kinds, [WEIGHTS[k] for k in kinds])[0]
        patient = chance.random() >= impatient or kind in NEEDS_A_WHOLE_JOB
        yield Step(kind, calm_s * (0.2 + 1.6 * chance.random()), chance.random(), patient)


def play(trial: Trial, script: Iterator[Step], enough: Callable[[], bool], lease_s: float, say: Callable[[str], None]) -> None:
    """One step after the other until `enough`; the job is whole when this returns."""
    while not enough():
        step = next(script)
        if trial.faults and step.patient:
            trial.recovered()
        trial.passed(step.calm_s if step.patient else step.calm_s / 4)
        if not strike(trial, step, lease_s):
            say(f"{step.kind}: no such process now")
            trial.whole()
            continue
        fault = trial.faults[-1]
        say(
            f"{len(trial.faults)}: {fault.kind}, {fault.target}, {len(fault.tasks)} tasks {fault.phase or 'of unknown state'} {fault.note}".rstrip()
        )
    if trial.faults:
        trial.recovered()


def strike(trial: Trial, step: Step, lease_s: float) -> bool:
    """Carry a step out; False: there is no process of that kind now."""
    if step.kind == KILL_DRIVER:
        trial.kill_driver()
        return True
    if step.kind == PAUSE_DRIVER:
        trial.pause_driver(lease_s + 1.0 + step.pick)
        return True
    if step.kind in NEEDS_A_WHOLE_JOB:
        trial.whole()
    victims = _victims(trial, step.kind)
    if not victims:
        return False
    victim = victims[int(step.pick * len(victims)) % len(victims)]
    return (trial.pause if step.kind == PAUSE_CONTAINER else trial.kill)(step.kind, victim)


def _victims(trial: Trial, kind: str) -> list[Proc]:
    """The processes that a kind may hit: of Spark's, those that have containers below them."""
    found, table = trial.processes(), processes()
    if kind in (KILL_CONTAINER, PAUSE_CONTAINER):
        return [found.containers[n] for n in sorted(found.containers)]
    spark = found.executors if kind == KILL_EXECUTOR else found.daemons
    return [p for p in sorted(spark, key=lambda p: p.pid) if containers_below(table, found, p)]
