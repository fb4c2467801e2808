"""The hint for event time that stands in the first weeks of 1970: seconds that were taken for milliseconds. Windows then hardly ever end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from samzapy.model.event_time import MILLISECONDS, as_utc, looks_like_seconds
from samzapy.plan.hint_rules import ACT, Finding


def times_in_seconds(tasks: Sequence[Mapping[str, Any]]) -> list[Finding]:
    """One finding for the job, of the task and stage that is furthest: the stages after it follow it. `tasks`: as status has them."""
    found = [
        (stage["watermark"], task["name"], name)
        for task in tasks
        for name, stage in (task.get("time") or {}).items()
        if stage["watermark"] is not None and looks_like_seconds(stage["watermark"])
    ]
    if not found:
        return []
    watermark, task, stage = max(found, key=lambda each: each[0])
    sentence = f"Event time of {stage} in {task} is {as_utc(watermark)}: its records' times look like seconds that are read as milliseconds."
    return [Finding("times-in-seconds", ACT, sentence, {"watermark": watermark, "tasks": len({name for _, name, _ in found})}, MILLISECONDS)]
