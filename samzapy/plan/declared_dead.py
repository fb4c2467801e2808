"""When a container is declared dead, and what else follows from what is known of it: it is left alone, started again, finished, or its error ends the job."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from samzapy.api.errors import NotAuthenticated, NotAuthorized, TlsFailed
from samzapy.model.process_end import ProcessEnd, other, silent
from samzapy.model.states import ContainerOutcome
from samzapy.plan.container_phases import Event, Phase

ASKED = "asked to stop"
REFUSED = frozenset(c.code for c in (NotAuthorized, NotAuthenticated, TlsFailed))
REFUSALS = 3  # of one container within `containers.restart_window`: somebody must give it access, starting again does not


@dataclass(frozen=True, slots=True, kw_only=True)
class LifeSigns:
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
    exited: ProcessEnd | None = None
    silent_s: float = 0.0
    overdue: tuple[str, ...] = ()
    outcome: str = ""
    error: Mapping[str, Any] | None = None
    not_taken_up: tuple[str, ...] = ()
    refusals: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class JobCondition:
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

    end: ProcessEnd


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


def judge(facts: LifeSigns, job: JobCondition, limits: Limits) -> Judgement:
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


def _judge_report(facts: LifeSigns, job: JobCondition) -> Judgement | None:
    """What its final report alone decides; None: nothing, or there is none."""
    error = facts.error
    if facts.outcome == ContainerOutcome.FINISHED and not job.is_stopping and facts.not_taken_up:
        return Leave(f"it finished before it learned that it also has {', '.join(facts.not_taken_up)}")
    if facts.outcome == ContainerOutcome.FINISHED or (facts.outcome == ContainerOutcome.STOPPED and job.is_stopping):
        return Finish()
    if facts.outcome == ContainerOutcome.STOPPED:
        return Leave()
    if facts.outcome == ContainerOutcome.SUPERSEDED:  # by its own account, e.g. because this process was stopped for most of its lease
        return Lose(other(str((error or {}).get("message", "")).rstrip(".") or "it gave its tasks up"))
    if error and (error.get("fatal") or job.all_failed_alike or (error.get("code") in REFUSED and facts.refusals >= REFUSALS)):
        return Fail(error)
    return None


def _judge_named(facts: LifeSigns, limits: Limits) -> Judgement:
    if facts.silent_s > limits.lease_s:
        return Lose(silent(facts.silent_s, limits.lease_s))
    if facts.overdue:
        return Lose(other(f"did not release {', '.join(facts.overdue)} within its lease of {limits.lease_s:g} s"))
    return Wait()


def _judge_starting(facts: LifeSigns, job: JobCondition, limits: Limits) -> Judgement:
    if facts.silent_s > limits.register_timeout_s:
        return Lose(other(f"did not register within {limits.register_timeout_s:g} s, in which it starts and imports the job's modules"))
    return Dismiss() if job.is_stopping else Wait()


def after_end(is_asked: bool, is_stopping: bool, all_finished: bool, is_surplus: bool) -> Event:
    """What follows for a container that was ended in the topic and fenced. `is_asked`: it stopped because it was asked to."""
    if is_stopping or (is_asked and all_finished):
        return Event.END
    return Event.REMOVE if is_surplus else Event.RESTART
