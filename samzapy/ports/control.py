"""Between a container, its process and the coordinator."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from samzapy.model.caution import Caution, Piece
from samzapy.model.job_model import TaskModel


@dataclass(frozen=True, slots=True)
class Assignment:
    """The coordinator's answer to a container that registers. Which tasks it owns is in the coordinator topic."""

    run_id: str
    end_offsets: Mapping[str, int] | None = None  # by str(TopicPartition); only with --until-end
    caution: Caution = field(default_factory=Caution)
    paused: bool = False  # people have paused the job: begin so


@dataclass(frozen=True, slots=True)
class Instructions:
    """The coordinator's instructions to a container, in every response to a heartbeat. Which tasks it owns is only in the coordinator topic.

    Attributes:
        epoch: of the newest record that names this container; one that is not adopted yet makes it read the topic again.
        release: tasks to commit, close and release.
        standby: tasks to keep a warm copy of.
        models: tasks that were added after this container was started, by name.
        paused: read no inputs.
        commit: commit, if this number is higher than that of the last commit that was ordered.
    """

    epoch: int = 0
    release: frozenset[str] = frozenset()
    standby: tuple[str, ...] = ()
    models: Mapping[str, TaskModel] = field(default_factory=dict)
    paused: bool = False
    commit: int = 0


@dataclass(frozen=True, slots=True)
class Supervision:
    """The run loop's connections to its process: whether to go on, reports, instructions.

    Attributes:
        raise_if_stopped: called during waits; raises to end them.
        report: called when the status has changed and should be reported soon; with True, at once.
        instructions: the newest instructions.
        announce: reports to the coordinator the records about to be processed, or with None that they are done; returns when it has the report.
    """

    raise_if_stopped: Callable[[], None] = lambda: None
    report: Callable[[bool], None] = lambda urgent: None
    instructions: Callable[[], Instructions] = Instructions
    announce: Callable[[Piece | None], None] = lambda piece: None


class Control(Protocol):
    """A container's connection to the coordinator. Every call is retried inside; the answer to a heartbeat has commands and instructions."""

    def register(self, incarnation: str, facts: Mapping[str, Any]) -> Assignment:
        """Ask to be named in the coordinator topic; waits until it is.

        Raises:
            Superseded: this launch was already used or is no longer wanted.
        """

    def heartbeat(self, incarnation: str, report: Mapping[str, Any]) -> Mapping[str, Any]:
        """Report the container's status; the answer is `{"command": "run" | "stop" | "exit", "epoch": …, "release": […], "standby": […], …}`.

        Raises:
            LogError: no answer. Superseded: this incarnation was replaced.
        """

    def report_final(self, incarnation: str, report: Mapping[str, Any]) -> bool:
        """The final report: how it ended; best effort. Returns whether the coordinator accepted it."""
