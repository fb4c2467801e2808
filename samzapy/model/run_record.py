"""The record of a run in the coordinator topic: how it was started, with which configuration, what happened in it, how it ended and who ended it.

One for each run, under the key `history/<run id>`; a new run deletes those of all but the last runs. Nothing of exactness depends on them: who reads
the topic for other records passes over these, and one that cannot be read is one that is not shown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from samzapy.model.bounded_json import NOT_UNDERSTOOD, read_object, to_bytes

VERSION = 1
HISTORY = "history/"
MAX_RUNS = 10
MAX_BYTES = 64 << 10
MAX_EVENTS, MAX_EVENT_TEXT = 200, 300
MAX_ERRORS = 20
MAX_KEYS = 1000  # of a configuration
MAX_TEXT = 1000
COUNTED = ("processed", "sent", "skipped", "dead_letters", "too_late", "commits", "restarts")


def history_key(run_id: str) -> bytes:
    """The key of a run's record."""
    return f"{HISTORY}{run_id}".encode()


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """A run.

    Attributes:
        began_ms, told_ms, ended_ms: when it began, when this was written, when it ended (milliseconds since 1970; 0: not yet).
        started_by: user@host.
        how: the options of `samzapy run` that say where containers run and until when.
        config: key, value (secrets: ***) and from (file:line, --set, default) of every key of the configuration.
        outcome: FINISHED (it came to its end by itself), STOPPED (somebody asked), FAILED, REPLACED (another run took over), LOST (its process
            ended without a word); "": it goes on.
        ended_by: who or what ended it, in words.
        error, remedy: of a run that failed.
        counts: records processed, sent, skipped, set aside, too late for a window; commits; restarts of containers. Of all its processes, as far as they told.
        events: what happened, the newest MAX_EVENTS: at_ms, kind, what, text, container.
        errors: errors of records by line, those that occurred last first: type, place, count, first_ms, last_ms, text, record.
    """

    run_id: str
    began_ms: int
    told_ms: int
    started_by: str = ""
    host: str = ""
    pid: int = 0
    version: str = ""
    how: str = ""
    containers: int = 0
    tasks: int = 0
    config: Sequence[Mapping[str, Any]] = ()
    ended_ms: int = 0
    outcome: str = ""
    ended_by: str = ""
    error: str = ""
    remedy: str = ""
    counts: Mapping[str, int] = field(default_factory=dict)
    events: Sequence[Mapping[str, Any]] = ()
    errors: Sequence[Mapping[str, Any]] = ()

    def to_json(self) -> dict[str, Any]:
        """All of it."""
        return asdict(self)

    def to_bytes(self) -> bytes:
        """At most MAX_BYTES: of a record that would have more, the older half of its events is left out, then errors, then configuration."""
        record = self
        while len(data := to_bytes({"v": VERSION, **record.to_json()})) > MAX_BYTES:
            if record.events:
                record = replace(record, events=record.events[len(record.events) // 2 + 1 :])
            elif record.errors:
                record = replace(record, errors=record.errors[: len(record.errors) // 2])
            else:
                record = replace(record, config=record.config[: len(record.config) // 2])
        return data


_NUMBERS, _TEXTS, _LISTS = (
    [f.name for f in fields(RunRecord) if f.type == kind] for kind in ("int", "str", "Sequence[Mapping[str, Any]]")
)


def run_record(data: bytes) -> RunRecord:
    """
    Raises:
        ValueError: it is none.
    """
    raw = read_object(data, 4 * MAX_BYTES)
    if raw.get("v") != VERSION:
        raise ValueError("an unknown version")
    values: dict[str, Any] = {}
    for names, kind in ((_NUMBERS, int), (_TEXTS, str), (_LISTS, list)):
        for name in names:
            if name in raw or name in ("run_id", "began_ms", "told_ms"):
                if type(raw.get(name)) is not kind:
                    raise ValueError(f"field {name!r} is not understood")
                values[name] = raw[name]
    for name in _LISTS:
        if not all(isinstance(row, dict) for row in values.get(name, ())):
            raise ValueError(f"field {name!r} is not understood")
    counts = raw.get("counts", {})
    return RunRecord(**values, counts={name: int(counts[name]) for name in COUNTED if name in counts})


def runs_of(history: Mapping[str, bytes]) -> list[RunRecord]:
    """The runs that the coordinator topic tells of, the newest first. `history`: by run id, records as they were written."""
    found = []
    for data in history.values():
        try:
            found.append(run_record(data))
        except NOT_UNDERSTOOD:  # another version's, or nobody's: it is not shown
            continue
    return sorted(found, key=lambda run: (-run.began_ms, -run.told_ms))


def surplus(history: Mapping[str, bytes], keep: int = MAX_RUNS) -> list[str]:
    """The ids of runs beyond the newest `keep`, and of those whose records nobody can read."""
    kept = {run.run_id for run in runs_of(history)[:keep]}
    return sorted(run_id for run_id in history if run_id not in kept)


def changed(before: Sequence[Mapping[str, Any]], now: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The keys whose values differ between two configurations: key, before, now (None: it is not there), and where both come from."""
    old, new = ({str(row.get("key")): row for row in rows} for rows in (before, now))
    rows = []
    for key in sorted(old.keys() | new.keys()):
        was, is_ = old.get(key, {}), new.get(key, {})
        if was.get("value") != is_.get("value"):
            rows.append({"key": key, "before": was.get("value"), "now": is_.get("value"), "before_from": was.get("from"), "now_from": is_.get("from")})
    return rows
