"""A container's life in the coordinator: its phases, the events that are legal in each, and the judgement of its facts.

`TRANSITIONS` is the whole life of a container. Each event is applied by `next_phase`, which refuses one that the table does not have: a
container that is started twice, or named after it was ended, is a defect, and going on with it might give a task two owners.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from samzapy.api.errors import NotAuthenticated, NotAuthorized, TlsFailed

FINISHED, STOPPED, SUPERSEDED = "finished", "stopped", "superseded"  # outcomes of a final report
ASKED = "asked to stop"
REFUSED = frozenset(c.code for c in (NotAuthorized, NotAuthenticated, TlsFailed))
REFUSALS = 3  # of one container within `containers.restart_window`: somebody must give it access, starting again does not


class Phase(StrEnum):
    """Where in its life a container is."""

    WANTED = "WANTED"
    PARKED = "PARKED"
    LAUNCHED = "LAUNCHED"
    APPLYING = "APPLYING"
    LIVE = "LIVE"
    STOPPING = "STOPPING"
    ENDING = "ENDING"
    DONE = "DONE"
    GONE = "GONE"


class Event(StrEnum):
    """An event of a container; the value is its text in ARCHITECTURE's table."""

    LAUNCH = "is launched"
    PARK = "there is no slot for it"
    UNPARK = "there is a slot again"
    APPLY = "asks to be named"
    NAME = "the coordinator topic names it"
    ASK_TO_STOP = "is asked to stop"
    LOSE = "its process ended, its lease is over, it did not register, or it did not release a task"
    LEAVE = "stopped in an orderly way and is needed again"
    FINISH = "reported its orderly end, and no more is to be done"
    FAIL = "its error ends the job"
    DISMISS = "the job stops"
    RESTART = "ended in the topic and fenced; is started again"
    END = "ended in the topic and fenced; is not needed any more"
    REMOVE = "there are too many"


STARTED = (Phase.LAUNCHED, Phase.APPLYING, Phase.LIVE, Phase.STOPPING)  # there should be a process, and it is not being ended

MEANING: Mapping[Phase, str] = {
    Phase.WANTED: "to be launched: at once, after a back-off, or when its host has a slot",
    Phase.PARKED: "there was no slot; its tasks run elsewhere",
    Phase.LAUNCHED: "its process starts",
    Phase.APPLYING: "it has registered and waits to be named",
    Phase.LIVE: "the coordinator topic names its incarnation",
    Phase.STOPPING: "named, and asked to commit and stop: for a restart, or because it is not needed",
    Phase.ENDING: "lost, or stopped; to be ended in the topic and fenced before anything else is decided",
    Phase.DONE: "it is not started again in this run",
    Phase.GONE: "it is not one of the job's containers any more",
}

TRANSITIONS: Mapping[Phase, Mapping[Event, Phase]] = {
    Phase.WANTED: {Event.LAUNCH: Phase.LAUNCHED, Event.PARK: Phase.PARKED, Event.DISMISS: Phase.DONE, Event.REMOVE: Phase.GONE},
    Phase.PARKED: {Event.UNPARK: Phase.WANTED, Event.DISMISS: Phase.DONE, Event.REMOVE: Phase.GONE},
    Phase.LAUNCHED: {Event.APPLY: Phase.APPLYING, Event.LOSE: Phase.ENDING, Event.DISMISS: Phase.DONE},
    Phase.APPLYING: {Event.NAME: Phase.LIVE, Event.LOSE: Phase.ENDING, Event.DISMISS: Phase.DONE},
    Phase.LIVE: {
        Event.ASK_TO_STOP: Phase.STOPPING, Event.LOSE: Phase.ENDING, Event.LEAVE: Phase.ENDING, Event.FINISH: Phase.DONE,
        Event.FAIL: Phase.DONE,
    },
    Phase.STOPPING: {Event.LOSE: Phase.ENDING, Event.LEAVE: Phase.ENDING, Event.FINISH: Phase.DONE, Event.FAIL: Phase.DONE},
    Phase.ENDING: {Event.RESTART: Phase.WANTED, Event.END: Phase.DONE, Event.REMOVE: Phase.GONE, Event.FAIL: Phase.DONE},
    Phase.DONE: {},
    Phase.GONE: {},
}  # fmt: skip


class IllegalTransition(AssertionError):
    """An event that a container's phase does not allow: a defect in the coordinator."""


def next_phase(container: int, phase: Phase, event: Event) -> Phase:
    """The phase after an event.

    Raises:
        IllegalTransition: the table does not have it.
    """
    after = TRANSITIONS[phase].get(event)
    if after is None:
        raise IllegalTransition(f"container {container} is {phase}, and what happens is not allowed then: {event}")
    return after


def transitions_table() -> str:
    """The table as Markdown, as ARCHITECTURE.md has it."""
    rows = ["| phase | meaning | what may happen, and the phase after it |", "|---|---|---|"]
    for phase, events in TRANSITIONS.items():
        ways = "<br>".join(f"{event} → **{after}**" for event, after in events.items()) or "nothing"
        rows.append(f"| **{phase}** | {MEANING[phase]} | {ways} |")
    return "\n".join(rows) + "\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """The facts about a container.

    Attributes:
        is_launched: its launcher has a process or Spark task for it.
        exited: how that ended; None: not that anybody knows.
        silent_s: seconds since it was last heard of, or launched.
        overdue: tasks that it was told to release longer than a lease ago.
        outcome: of its final report; "" before that.
        error: of its final report.
        not_taken_up: tasks that it was given and that its final report does not call finished.
        refusals: how often Kafka did not let it in, within `containers.restart_window`.
    """

    phase: Phase
    is_launched: bool = True
    exited: str | None = None
    silent_s: float = 0.0
    overdue: tuple[str, ...] = ()
    outcome: str = ""
    error: Mapping[str, Any] | None = None
    not_taken_up: tuple[str, ...] = ()
    refusals: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFacts:
    """The facts about the job. `all_failed_alike`: every container ended with the same error before any commit."""

    is_stopping: bool = False
    all_failed_alike: bool = False


@dataclass(frozen=True, slots=True)
class Limits:
    """In seconds."""

    lease_s: float
    register_timeout_s: float


@dataclass(frozen=True, slots=True)
class Wait:
    """Nothing is to be done now."""


@dataclass(frozen=True, slots=True)
class Lose:
    """It is declared dead and ended by force."""

    why: str


@dataclass(frozen=True, slots=True)
class Leave:
    """It stopped in an orderly way and is to be ended and started again. `restart_reason`: why; "" if it was asked to stop."""

    restart_reason: str = ""


@dataclass(frozen=True, slots=True)
class Finish:
    """It reported its end, and that is the end."""


@dataclass(frozen=True, slots=True)
class Fail:
    """Its error ends the job: starting again will not help."""

    error: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Dismiss:
    """The job stops, and it was never named: nobody waits for it."""


Judgement = Wait | Lose | Leave | Finish | Fail | Dismiss


def judge(facts: Facts, job: JobFacts, limits: Limits) -> Judgement:
    """What follows from what is known of a container: first what it said itself, then what is seen of it."""
    if facts.phase in (Phase.DONE, Phase.ENDING):
        return Wait()
    said = _judge_report(facts, job)
    if said is not None:
        return said
    if facts.phase in (Phase.WANTED, Phase.PARKED):
        return Dismiss() if job.is_stopping else Wait()
    if not facts.is_launched:
        return Wait()
    if facts.exited is not None:
        return Lose(facts.exited)
    return _judge_named(facts, limits) if facts.phase in (Phase.LIVE, Phase.STOPPING) else _judge_starting(facts, job, limits)


def _judge_report(facts: Facts, job: JobFacts) -> Judgement | None:
    """What its final report alone decides; None: nothing, or there is none."""
    error = facts.error
    if facts.outcome == FINISHED and not job.is_stopping and facts.not_taken_up:
        return Leave(f"it finished before it learned that it also has {', '.join(facts.not_taken_up)}")
    if facts.outcome == FINISHED or (facts.outcome == STOPPED and job.is_stopping):
        return Finish()
    if facts.outcome == STOPPED:
        return Leave()
    if facts.outcome == SUPERSEDED:  # by its own account, e.g. because this process was stopped for most of its lease
        return Lose(str((error or {}).get("message", "")).rstrip(".") or "it gave its tasks up")
    if error and (error.get("fatal") or job.all_failed_alike or (error.get("code") in REFUSED and facts.refusals >= REFUSALS)):
        return Fail(error)
    return None


def _judge_named(facts: Facts, limits: Limits) -> Judgement:
    if facts.silent_s > limits.lease_s:
        return Lose(f"silent for {facts.silent_s:.1f} s, its lease of {limits.lease_s:g} s is over")
    if facts.overdue:
        return Lose(f"did not release {', '.join(facts.overdue)} within its lease of {limits.lease_s:g} s")
    return Wait()


def _judge_starting(facts: Facts, job: JobFacts, limits: Limits) -> Judgement:
    if facts.silent_s > limits.register_timeout_s:
        return Lose(f"did not register within {limits.register_timeout_s:g} s")
    return Dismiss() if job.is_stopping else Wait()


def after_end(is_asked: bool, is_stopping: bool, all_finished: bool, is_surplus: bool) -> Event:
    """What follows for a container that was ended in the topic and fenced. `is_asked`: it stopped because it was asked to."""
    if is_stopping or (is_asked and all_finished):
        return Event.END
    return Event.REMOVE if is_surplus else Event.RESTART
