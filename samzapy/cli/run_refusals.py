"""What a run started now would be refused for: the same for `plan` and for `validate --connect`."""

from __future__ import annotations

from samzapy.api.errors import SamzapyError
from samzapy.cli.job import Job
from samzapy.ops.inspection import other_program
from samzapy.ops.topics import what_run_refuses
from samzapy.wiring.tasks import tasks_of


def what_a_run_refuses(job: Job) -> SamzapyError | None:
    """Because of topics, of what earlier runs left in them, or of a program that has changed; the first of them. Changes nothing."""
    refused = what_run_refuses(job.settings, job.log, job.ledger(), job.clock)
    if refused is not None:
        return refused
    return other_program(job.settings, tasks_of(job.settings, job.loaded.folders).operators, job.log, job.clock)
