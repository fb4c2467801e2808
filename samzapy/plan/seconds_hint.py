"""The hint for event time that stands in the first weeks of 1970: seconds that were taken for milliseconds. Windows then hardly ever end."""

from __future__ import annotations

from collections.abc import Iterator

from samzapy.model.event_time import MILLISECONDS, as_utc, looks_like_seconds
from samzapy.plan.finding import ACT, Finding
from samzapy.plan.job_facts import JobFacts


def times_in_seconds(job: JobFacts) -> Iterator[Finding]:
    """One finding for the job, of the task and stage that is furthest: the stages after it follow it."""
    found = [(at, task.name, stage) for task in job.tasks for stage, at in task.watermarks.items() if looks_like_seconds(at)]
    if found:
        watermark, task, stage = max(found, key=lambda each: each[0])
        sentence = f"Event time of {stage} in {task} is {as_utc(watermark)}: its records' times look like seconds that are read as milliseconds."
        yield Finding("times-in-seconds", ACT, sentence, {"watermark": watermark, "tasks": len({name for _, name, _ in found})}, MILLISECONDS)
