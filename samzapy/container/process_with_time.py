"""A task object's `process` and `process_batch` for inputs with event time. Inputs without get the task's own: nothing stands between."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from samzapy.container.envelopes import RecordEnvelope
from samzapy.container.task_instance import TaskInput

Process = Callable[[Any, Any, Any], Any]


def with_time(task_input: TaskInput, process: Process) -> Process:
    """`process`, for an input with a time: a record without one fails before it is processed, and time moves after it was."""
    watermark, spec = task_input.watermark, task_input.spec.time
    if watermark is None or spec is None:
        return process
    of = spec.of

    def timed(envelope: RecordEnvelope, collector: Any, requests: Any) -> Any:
        time = of(envelope)
        returned = process(envelope, collector, requests)
        if returned is None and time > watermark.quiet:
            watermark.advance(time)
        return returned

    return timed


def with_times(task_input: TaskInput, process_batch: Process) -> Process:
    """The same of `process_batch`. A program of streams moves time itself, record by record."""
    watermark, spec = task_input.watermark, task_input.spec.time
    if watermark is None or spec is None or task_input.task.takes_raw_records:
        return process_batch
    of = spec.of

    def timed(envelopes: Sequence[RecordEnvelope], collector: Any, requests: Any) -> Any:
        times = [of(envelope) for envelope in envelopes]
        returned = process_batch(envelopes, collector, requests)
        for time in times if returned is None else ():
            if time > watermark.quiet:
                watermark.advance(time)
        return returned

    return timed
