"""What a run started now would be refused for: the same for `plan`, for `validate --connect` and, where it would create topics, for `run`."""

from __future__ import annotations

from collections.abc import Collection

from samzapy.api.errors import SamzapyError, StateMismatch
from samzapy.cli.job import Job
from samzapy.config.load import LoadedJob
from samzapy.model.checkpoint import Checkpoint
from samzapy.model.ownership import Ledger
from samzapy.ops.inspection import JobInKafka, job_in_kafka, other_program, readable_checkpoints
from samzapy.ops.lost_positions import lost_positions
from samzapy.ops.moved_keys import moved_keys
from samzapy.ops.prepare_topics import what_run_refuses
from samzapy.ports import Clock, Log
from samzapy.wiring.growing_topics import growing
from samzapy.wiring.job_topics import JobTopics
from samzapy.wiring.serdes import Serdes
from samzapy.wiring.tasks import Tasks, tasks_of


def what_a_run_refuses(job: Job) -> SamzapyError | None:
    """Because of topics, of what earlier runs left in them, of a program that has changed, or of topics that were replaced or lost records unread; the first
    of them. Changes nothing."""
    ledger = job.ledger()
    refused = what_run_refuses(job.settings, job.log, ledger, job.clock)
    if refused is not None:
        return refused
    facts = job_in_kafka(job.settings, job.log)
    checkpoints = readable_checkpoints(job.settings, facts, job.log, job.clock)
    user = tasks_of(job.settings, job.loaded.folders)
    refused = _other_program(job.loaded, user, facts, checkpoints, job.log, job.clock, ledger)
    if refused is not None:
        return refused
    return next(iter(lost_positions(job.settings, facts, checkpoints, ledger, job.log, job.clock, user.tables or {}).values()), None)


def refuse_before_topics(loaded: LoadedJob, log: Log, clock: Clock) -> None:
    """Where a run would create topics, or give them more partitions, check first that its tasks can go on from their checkpoints: what is refused
    leaves all topics as they were.

    Raises:
        StateMismatch: they cannot.
    """
    facts = job_in_kafka(loaded.settings, log)
    are_all_there = set(JobTopics.of(loaded.settings).all) <= set(facts.topics)
    has_stages = loaded.settings.stages is not None and bool(loaded.settings.stages.internal)  # only here it is seen whether keys have moved
    if facts.tasks and not (are_all_there and not has_stages and not growing(loaded.settings, facts.topics, len(facts.tasks))):
        refuse_other_state(loaded, facts, log, clock)


def refuse_other_state(loaded: LoadedJob, facts: JobInKafka, log: Log, clock: Clock) -> None:
    """Check that tasks with the code as it is now can go on from the newest checkpoints.

    Raises:
        StateMismatch: they cannot.
    """
    user = tasks_of(loaded.settings, loaded.folders)
    refused = _other_program(loaded, user, facts, readable_checkpoints(loaded.settings, facts, log, clock), log, clock)
    if refused is not None:
        raise refused


def _other_program(
    loaded: LoadedJob, user: Tasks, facts: JobInKafka, checkpoints: Collection[Checkpoint], log: Log, clock: Clock, ledger: Ledger | None = None
) -> StateMismatch | None:
    settings = loaded.settings
    refused = other_program(settings, Serdes(settings, loaded.folders), user.operators, facts, checkpoints, ledger)
    return moved_keys(settings, user.key_of, facts.tasks, checkpoints, log, clock) if refused is None else refused
