"""What a seed stands for: the job, what goes wrong, and when. Drawn at once and as data, so that a failing seed can be told.

A fault phase, an interlude, a bounded run that is disturbed too. Strikes wait for somebody to come to a point of their phase of the protocol;
a commit is ten times as likely to be struck as any other, and the first strike is always at a commit.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from tests.recovery.sim_task import INPUT, SECOND

PHASES = ("commit", "flush", "own", "start", "process", "move", "end", "standby", "coordinator")
PHASE_WEIGHTS = (10, 1, 1, 1, 1, 1, 1, 1, 1)
PREFIXES = {
    "commit.": "commit", "marks.": "commit", "purge.": "flush", "store.apply": "commit", "store.flush": "flush", "own.": "own", "start.": "start", "store.": "start",
    "restore.": "start", "init.": "start", "inputs.": "start", "process.": "process", "release.": "process", "move.": "move",
    "end.": "end", "stop.": "end", "standby.": "standby", "coordinator.": "coordinator",
}  # fmt: skip
MOST = {  # the highest odds of what goes wrong by chance; a seed has some of them
    "end.held": 0.06, "end.reply_lost": 0.08, "end.request_lost": 0.08, "end.slow": 0.15, "add.held": 0.02, "add.request_lost": 0.03,
    "add.reply_lost": 0.03, "produce.request_lost": 0.02, "produce.reply_lost": 0.02, "produce.held": 0.01, "init.held": 0.05,
    "init.request_lost": 0.1, "init.reply_lost": 0.1, "init.slow": 0.1, "bounds.request_lost": 0.02, "bounds.slow": 0.02,
    "marker.late": 0.15, "timeout.late": 0.5, "linger": 0.3, "outage": 0.001, "fetch.empty": 0.2, "fetch.short": 0.3,
}  # fmt: skip
LONGEST_S = {"held": 12.0, "outage": 8.0, "slow": 3.0, "marker.late": 1.5}
EVENTS = {  # with their weights
    "scale": 3, "restart": 3, "second_driver": 2, "kill_driver": 2, "freeze_driver": 2, "kill_container": 2, "freeze_container": 3,
    "cut_off_container": 3, "cut_off_from_driver": 2, "outage": 1, "fail": 6, "expire": 2, "hold_end": 2, "hold_marker": 1, "lose_host": 2,
    "leave_host": 1, "back_up": 2,
}  # fmt: skip
FAILURES = (
    ("commit", "aborted"), ("commit", "aborted"), ("commit", "in_doubt_committed"), ("commit", "in_doubt_lost"), ("commit", "suspicious"),
    ("flush", "aborted"), ("abort", "in_doubt_lost"), ("send", "aborted"), ("init", "in_doubt_lost"),
)  # fmt: skip
PROGRAMS = 1 / 3  # of the seeds
OF_TWO = 1 / 2  # of the programs
CRASH, LATE_CRASH, FREEZE = "crash", "late crash", "freeze"


def phase_of(point: str) -> str:
    """The phase of the protocol that a failpoint stands in."""
    return next(phase for prefix, phase in PREFIXES.items() if point.startswith(prefix))


@dataclass(frozen=True, slots=True)
class Strike:
    """From `at` on, in seconds after the start of its run: whoever comes to the `nth` point of this phase is struck."""

    at: float
    phase: str
    nth: int
    action: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Event:
    at: float
    kind: str
    dice: float  # what it falls on, from 0 to 1
    seconds: float


@dataclass(frozen=True, slots=True)
class Plan:
    """A seed's story. Seconds are virtual.

    Attributes:
        odds: of what goes wrong by chance.
        by_batch: whether the task defines process_batch.
        program: whether the job is a program of streams, drawn by the seed (sim_program).
        second_from: when the first record comes in the second input of a program, maybe after all is over; None: it reads one.
        rests: whether the job is healed and comes to rest between its two runs.
        small_batches: whether a poll, a restore and a warm copy take few records at a time.
        ending: how the first run ends: stop, crash, or overlap (the second begins beside it).
        interlude: what happens while nobody runs: "", delete, bring_back, age (a long time with cleaning, and an old copy), truncate.
    """

    seed: int
    job: Mapping[str, Any]
    tasks: int
    hosts: Mapping[str, int]
    odds: Mapping[str, float]
    records: int
    faults_s: float
    pause_odds: float
    switch_odds: float
    late_kills: float
    lost_batches: float
    drivers_share_host: bool
    strangers: bool
    cleans: bool
    small_batches: bool
    rests: bool
    by_batch: bool
    program: bool
    second_from: float | None
    ending: str
    interlude: str
    strikes: tuple[Strike, ...]
    events: tuple[Event, ...]
    late_strikes: tuple[Strike, ...]

    @property
    def inputs(self) -> tuple[str, ...]:
        """The topics whose records all count."""
        return (INPUT,) if self.second_from is None else (INPUT, SECOND)


def plan_of(seed: int, program: bool | None = None) -> Plan:
    """`program`: whether the job is one; None: as the seed says."""
    if program is None:
        program = random.Random(f"{seed}/is a program").random() < PROGRAMS  # a draw of its own: the other seeds' stories stay what they were
    draw = random.Random(f"{seed}/plan")
    containers = draw.choice((2, 2, 3))
    job = {
        "exactly_once": draw.random() < 0.6,
        "containers": containers,
        "standby": int(draw.random() < 0.3),
        "table": draw.random() < 0.4,
        "start": "latest" if draw.random() < 0.1 else "earliest",
    }
    job["table_of_all"] = job["table"] and random.Random(f"{seed}/table of all").random() < 0.5  # a draw of its own, as above
    hosts = {f"h{n}": draw.choice((1, 1, 2)) for n in range(containers + draw.choice((0, 0, 1)))}
    noisy = draw.random() < 0.7
    odds = {name: most * draw.random() for name, most in MOST.items() if noisy and draw.random() < 0.35}
    faults_s = draw.uniform(15.0, 25.0)
    ending = draw.choice(("stop", "crash", "crash", "overlap"))
    strikes, events = _strikes(draw, draw.randint(2, 5), faults_s), _events(draw, draw.randint(2, 7), faults_s)
    if job["table"] and draw.random() < 0.5:  # while the table is read
        events = (Event(draw.uniform(1.5, 4.0), "fail", 0.0, 0.0), *events)
    scalings = [event.at for event in events if event.kind == "scale"]
    if scalings and draw.random() < 0.5:
        strikes = (*strikes, Strike(scalings[0], "move", draw.choice((1, 1, 2)), draw.choice((CRASH, FREEZE)), draw.uniform(0.1, 9.0)))
    interlude = draw.choices(("", "delete", "bring_back", "age", "truncate"), (50, 15, 10, 20, 5))[0]
    made = Plan(
        seed=seed, job=job, tasks=draw.choice((3, 3, 4)), hosts=hosts, odds=odds, records=draw.randint(210, 280), faults_s=faults_s,
        pause_odds=draw.choice((0.0, 0.05, 0.3)), switch_odds=draw.choice((0.0, 0.02, 0.1)), late_kills=draw.choice((0.0, 0.3, 0.9)),
        lost_batches=draw.choice((0.0, 0.5, 1.0)), drivers_share_host=draw.random() < 0.7, strangers=draw.random() < 0.3,
        cleans=interlude == "age" or draw.random() < 0.6, rests=interlude in ("age", "truncate") or draw.random() < 0.4,
        program=program, second_from=None,
        by_batch=random.Random(f"{seed}/batches").random() < 0.3,  # a draw of its own: the other seeds' stories stay what they were
        ending=ending if interlude == "" else ("crash" if ending == "overlap" else ending), interlude=interlude,
        strikes=strikes, events=tuple(sorted(events, key=lambda event: event.at)), small_batches=draw.random() < 0.3,
        late_strikes=() if interlude == "truncate" else _strikes(draw, draw.randint(0, 3), 4.0, ending=True),
    )  # fmt: skip
    return of_program(made) if program else made


def of_program(plan: Plan) -> Plan:
    """The same story of a program: it reads one input or two, whose texts are numbers that nobody else writes, from their start."""
    draw = random.Random(f"{plan.seed}/second input")
    second_from = draw.uniform(-0.5, 1.2) * plan.faults_s if draw.random() < OF_TWO else None
    job = {**plan.job, "table": False, "table_of_all": False, "start": "earliest"}
    return replace(plan, job=job, strangers=False, by_batch=False, second_from=second_from, interlude=plan.interlude if plan.interlude != "truncate" else "delete")


def _strikes(draw: random.Random, count: int, within_s: float, ending: bool = False) -> tuple[Strike, ...]:
    made = []
    for number in range(count):
        phase = "commit" if number == 0 and not ending else draw.choices(PHASES, PHASE_WEIGHTS)[0]
        if ending and draw.random() < 0.4:
            phase = "end"
        action = draw.choices((CRASH, LATE_CRASH, FREEZE), (20, 10, 70) if phase == "own" else (55, 15, 30))[0]
        short, long = draw.uniform(0.1, 2.0), draw.uniform(3.5, 12.0)
        seconds = {CRASH: 0.0, LATE_CRASH: draw.random() * 1.5, FREEZE: long if phase == "own" else draw.choice((short, long))}
        at = draw.uniform(1.0, within_s * 0.6) if number == 0 else draw.uniform(0.0, within_s)
        made.append(Strike(at, phase, draw.choice((1, 1, 2, 3, 5, 8)), action, seconds[action]))
    return tuple(made)


def _events(draw: random.Random, count: int, within_s: float) -> tuple[Event, ...]:
    kinds = draw.choices(list(EVENTS), list(EVENTS.values()), k=count)
    return tuple(Event(draw.uniform(0.5, within_s), kind, draw.random(), draw.uniform(0.5, 9.0)) for kind in kinds)
