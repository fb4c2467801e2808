"""A container's life in the coordinator: its phases, and the events that are legal in each. What the known facts lead to: declared_dead.py.

`TRANSITIONS` is the whole life of a container. Each event is applied by `next_phase`, which refuses one that the table does not have: a
container that is started twice, or named after it was ended, is a defect, and going on with it might give a task two owners.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum


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
    APPLY = "registers"
    NAME = "the coordinator topic names it as the owner of its tasks"
    ASK_TO_STOP = "is asked to stop"
    LOSE = "its process ended, its lease is over, it did not register, or it did not release a task"
    LEAVE = "stopped in an orderly way and is needed again"
    FINISH = "reported its orderly end, and no more is to be done"
    FAIL = "its error ends the job"
    DISMISS = "the job stops, or no task is left to run"
    RESTART = "ended in the topic and fenced; is started again"
    END = "ended in the topic and fenced; is not needed any more"
    REMOVE = "there are more containers than wanted"


STARTED = (Phase.LAUNCHED, Phase.APPLYING, Phase.LIVE, Phase.STOPPING)  # there should be a process, and it is not being ended
GETS_NO_TASKS = (Phase.PARKED, Phase.DONE)  # it has no slot, or runs no more: a plan gives its tasks to the others

MEANING: Mapping[Phase, str] = {
    Phase.WANTED: "to be launched: at once, after a back-off, or when its host has a slot",
    Phase.PARKED: "there was no slot; its tasks run elsewhere",
    Phase.LAUNCHED: "its process starts",
    Phase.APPLYING: "it has registered; the coordinator topic does not name it yet",
    Phase.LIVE: "the coordinator topic names its incarnation as the owner of its tasks",
    Phase.STOPPING: "still an owner, and asked to commit and stop: for a restart, or because it is not needed",
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
        raise IllegalTransition(f"container {container} is {phase}, so this must not happen: {event}")
    return after


def transitions_table() -> str:
    """The table as Markdown, as ARCHITECTURE.md has it."""
    rows = ["| phase | meaning | what may happen, and the phase after it |", "|---|---|---|"]
    for phase, events in TRANSITIONS.items():
        ways = "<br>".join(f"{event} → **{after}**" for event, after in events.items()) or "nothing"
        rows.append(f"| **{phase}** | {MEANING[phase]} | {ways} |")
    return "\n".join(rows) + "\n"
