"""What `samzapy validate --connect` finds: what Kafka or the Schema Registry lacks, or what a run would be refused for."""

from __future__ import annotations

from pathlib import Path

from samzapy.api.errors import NotAuthorized, SamzapyError, TopicMisconfigured, TopicMissing
from samzapy.cli.job import Job
from samzapy.cli.run_refusals import what_a_run_refuses
from samzapy.ops.acls import missing_access
from samzapy.ops.schemas import what_schemas_lack
from samzapy.ops.topic_rows import topic_rows


def problems_of(file: Path, more: list[Path] | None, sets: list[str] | None) -> tuple[list[str], int]:
    """In words, and the exit code of a run that would be refused for them; 0: it would not."""
    refused: SamzapyError | None
    with Job(file, more, sets, classes=True) as job:
        lacking = _access_problems(job)
        try:
            problems, refused = _topic_problems(job)
        except NotAuthorized as error:
            if not lacking:
                raise
            problems, refused = [], error
    lacks = what_schemas_lack(job.settings, job.loaded.folders)
    if lacks is not None:
        problems, refused = [*problems, str(lacks)], refused or lacks
    if lacking:
        problems, refused = [*lacking, *problems], NotAuthorized("", "")
    return problems, 0 if refused is None else refused.exit_code


def _topic_problems(job: Job) -> tuple[list[str], SamzapyError | None]:
    """What is wrong with topics, in words, and what `run` would refuse to begin with."""
    problems = [f"{row[0]}: {row[-1]}" for kind, row in topic_rows(job.settings, job.log, job.clock) if kind in ("missing", "wrong")]
    refused = what_a_run_refuses(job)
    if refused is not None and not (problems and isinstance(refused, TopicMissing | TopicMisconfigured)):
        problems.append(str(refused))
    return problems, refused


def _access_problems(job: Job) -> list[str]:
    return [f"{one}\n  {one.command}" for one in missing_access(job.settings, job.log)]
