"""Event time as a job file says it, as what a container needs: what a record's time is, and the rules of its input."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from samzapy.config.schema import InputSettings, TimeSettings
from samzapy.config.task_class import import_time_function
from samzapy.container.partition_watermark import TimeRules
from samzapy.container.spec import TimeSpec
from samzapy.model.event_time import LARGEST, NEVER, in_ms

RECORD, PROCESSING = "record", "processing"


def time_spec(settings: InputSettings, folders: Sequence[Path]) -> TimeSpec | None:
    """The event time of an input; None: it has none.

    Raises:
        ConfigError: `time.from` names a function that cannot be imported.
    """
    time = settings.time
    if time is None:
        return None
    rules = TimeRules(
        time.watermark_delay_ms or 0, time.idle_timeout_ms, time.max_ahead_ms, time.when_idle, by_clock=time.source == PROCESSING
    )
    return TimeSpec(_of(settings.topic, time, folders), rules)


def _of(topic: str, settings: TimeSettings, folders: Sequence[Path]) -> Callable[[Any], int]:
    source = settings.source
    if source == PROCESSING:
        return lambda envelope: NEVER  # the clock moves its time, not its records
    if source == RECORD:
        return lambda envelope: _kafkas(topic, envelope)
    get = import_time_function(source, folders) if ":" in source else _field(source)

    def of(envelope: Any) -> int:
        value = envelope.message
        try:
            found = get(value)
        except Exception as error:
            raise ValueError(f"input {topic}, `time: {{from: {source}}}`: {type(error).__name__}: {error}") from error
        if isinstance(found, datetime) and found.tzinfo is not None:
            return in_ms(found)
        if type(found) is int and -LARGEST <= found <= LARGEST:
            return found
        raise ValueError(
            f"input {topic}, `time: {{from: {source}}}` gave {_named(found)}; milliseconds since 1970 (int) or a datetime with a time zone are needed"
        )

    return of


def _kafkas(topic: str, envelope: Any) -> int:
    time: int = envelope.timestamp
    if time < 0:
        raise ValueError(f"input {topic}, `time: {{from: record}}`: the record has no timestamp")
    return time


def _field(name: str) -> Callable[[Any], Any]:
    """Of a dict, or of an object."""

    def get(value: Any) -> Any:
        return value[name] if isinstance(value, dict) else getattr(value, name)

    return get


def _named(found: object) -> str:
    return "a datetime without a time zone" if isinstance(found, datetime) else f"{type(found).__name__} {str(found)[:40]!r}"
