"""What jobs, runs, containers and tasks may be, in the words that people, commands and metrics see. Reports and records hold the same words.
The phases of a container and what may follow each: plan/container_phases.py."""

from __future__ import annotations

from enum import StrEnum


class TaskState(StrEnum):
    WAITING = "WAITING"
    RESTORING = "RESTORING"
    BOOTSTRAPPING = "BOOTSTRAPPING"
    RUNNING = "RUNNING"
    STOPPED = "STOPPED"


class ContainerState(StrEnum):
    WAITING = "WAITING"
    STARTING = "STARTING"
    RUNNING = "RUNNING"
    STOPPING = "STOPPING"
    STOPPED = "STOPPED"
    LOST = "LOST"
    FAILED = "FAILED"


class ContainerOutcome(StrEnum):
    """How a container ended, as its final report says it. What its process exits with: api/exit_codes.py."""

    FINISHED = "finished"
    STOPPED = "stopped"
    FAILED = "failed"
    SUPERSEDED = "superseded"


class JobState(StrEnum):
    STARTING = "STARTING"
    RUNNING = "RUNNING"
    DEGRADED = "DEGRADED"
    PAUSED = "PAUSED"
    STOPPING = "STOPPING"
    FINISHED = "FINISHED"
    FAILED = "FAILED"
    FENCED = "FENCED"


class RunOutcome(StrEnum):
    """How a run ended, as its record says it."""

    FINISHED = "FINISHED"
    STOPPED = "STOPPED"
    FAILED = "FAILED"
    REPLACED = "REPLACED"
    LOST = "LOST"
