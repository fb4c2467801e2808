"""The facts of a job that does not run, from what Kafka has of it: how its last run ended, where its tasks stand, how much waits for them.

The page of such a job is the page of one that runs, of the same routes; only nothing can be done to it but to start it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

from samzapy.api.errors import ConfigurationError
from samzapy.model.run_record import RunRecord
from samzapy.model.states import JobState, RunOutcome, TaskState
from samzapy.web.facts import Rows

FRESH_S = 5.0
NEVER_RAN = "NEVER RAN"
NOT_KNOWN = "NOT KNOWN"  # Kafka could not be read


@dataclass(frozen=True, slots=True, kw_only=True)
class StillTask:
    """A task as its checkpoint has it. `positions`: next offset by topic[partition]; `lag` None: not known, or it never committed.
    `stores`: by name, the offset of the changelog that is committed."""

    name: str
    partitions: Sequence[str]
    positions: Mapping[str, int] = field(default_factory=dict)
    lag: int | None = None
    sequence: int = -1
    stores: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class StillFacts:
    """What was read from Kafka.

    Attributes:
        runs: the last runs, the newest first.
        state: how the last run ended, in a word; RUNNING: another is under way by now.
        sentence: the same for people.
        url: of a run that is under way.
        problem: what could not be read, and why.
    """

    tasks: Sequence[StillTask]
    runs: Sequence[RunRecord] = ()
    state: str = RunOutcome.STOPPED
    sentence: str = ""
    url: str = ""
    error: str = ""
    run_id: str = ""
    heard_ms: int = 0
    problem: str = ""


class Still:
    """Facts and Actions of a job that does not run. `read`: reads Kafka; called again every FRESH_S seconds while somebody looks."""

    def __init__(self, about: Mapping[str, Any], read: Callable[[], StillFacts], clock: Callable[[], float] = time.monotonic) -> None:
        self._about = about
        self._read, self._clock = read, clock
        self._lock = threading.Lock()
        self._known: StillFacts | None = None
        self._read_at = 0.0

    def _now(self) -> StillFacts:
        with self._lock:
            if self._known is None or self._clock() - self._read_at >= FRESH_S:
                self._known, self._read_at = self._read(), self._clock()
            return self._known

    def status(self) -> dict[str, Any]:
        found = self._now()
        lags = [task.lag for task in found.tasks]
        lag = None if None in lags else sum(n for n in lags if n is not None)
        last = found.runs[0] if found.runs else None
        return {
            "job": self._about["job"], "id": self._about["id"], "state": found.state, "run_id": found.run_id, "coordinator": found.url,
            "reason": found.problem, "paused": None, "target": self._about["containers"], "containers": [],
            "tasks": [_task(task) for task in found.tasks], "moves": [],
            "rates": {
                "in": 0.0, "out": 0.0, "sent": {}, "lag": lag, "behind_s": None, "lag_rate": 0.0, "caught_up_in_s": None, "loop": {},
                "commits": {"count": 0, "p50_s": None, "p99_s": None}, "end_to_end": {"least_s": None, "most_s": None},
            },
            "hints": self.hints(), "notes": [], "is_still": True, "last_run": None if last is None else _brief(last),
        }  # fmt: skip

    def state(self) -> str:
        return self._now().state

    def model(self) -> dict[str, Any]:
        return {"tasks": {task.name: {"partitions": list(task.partitions)} for task in self._now().tasks}, "containers": {}}

    def reports(self) -> Mapping[int, Mapping[str, Any]]:
        return {}

    def events(self, since: int) -> Rows:
        """Those of the last run, as its record has them."""
        runs = self._now().runs
        rows = [{"container": None, **event, "n": n} for n, event in enumerate(runs[0].events if runs else (), 1)]
        return [row for row in rows if row["n"] > since and {"at_ms", "kind", "what", "text"} <= row.keys()]

    def commits(self) -> Rows:
        return []

    def errors(self) -> Rows:
        runs = self._now().runs
        more: dict[str, Any] = {"tasks": [], "action": None, "stack": None, "record": None, "text": None}
        return [{**more, **group} for group in (runs[0].errors if runs else ()) if {"type", "place", "count", "first_ms", "last_ms"} <= group.keys()]

    def series(self, step_s: float) -> Rows:
        return []

    def hints(self) -> Rows:
        found = self._now()
        is_bad = found.state in (RunOutcome.FAILED, RunOutcome.LOST)
        remedy = f"samzapy ui JOB.yaml ({found.url})" if found.state == JobState.RUNNING else "samzapy run JOB.yaml"
        if found.state == NOT_KNOWN:
            remedy = "samzapy doctor JOB.yaml"
        evidence, detail = dict[str, Any](), ""
        if found.runs and found.runs[0].remedy:
            evidence["what_to_do_first"] = found.runs[0].remedy
            detail = f"What to do first: {found.runs[0].remedy}"
        told = {"code": "not-running", "severity": "act" if is_bad else "know", "sentence": found.sentence, "evidence": evidence, "remedy": remedy}
        return [{**told, "detail": detail, "since_ms": found.heard_ms}]

    def about(self) -> dict[str, Any]:
        return dict(self._about)

    def runs(self) -> Rows:
        """The last runs, the newest first, in brief."""
        return [_brief(run) for run in self._now().runs]

    # -- what may be done: nothing, there is nobody who could ---------------------------------------------------------------------------

    def stop(self, by: str, dry_run: bool) -> dict[str, Any]:
        _refuse()

    def scale(self, containers: int, by: str, dry_run: bool) -> dict[str, Any]:
        _refuse()

    def restart(self, container: int | None, by: str, dry_run: bool, *, is_checked: bool) -> dict[str, Any]:
        _refuse()

    def pause(self, by: str, dry_run: bool) -> dict[str, Any]:
        _refuse()

    def resume(self, by: str, dry_run: bool) -> dict[str, Any]:
        _refuse()

    def commit(self, by: str, dry_run: bool) -> dict[str, Any]:
        _refuse()


def _refuse() -> NoReturn:
    raise ConfigurationError("the job is not running, so this is not possible.", "Start it: `samzapy run JOB.yaml`.")


def _task(task: StillTask) -> dict[str, Any]:
    return {
        "name": task.name, "state": TaskState.STOPPED, "container": None, "partitions": [f"kafka.{text}" for text in task.partitions], "lag": task.lag,
        "processed": 0, "skipped": 0, "dead_letters": 0, "positions": dict(task.positions), "sequence": task.sequence, "standby": [], "metrics": {},
        "reason": "" if task.positions else "it never committed", "rate": None, "arriving": None, "busy": None, "busy_s": None, "us": None, "behind_s": None,
        "stores": {name: {"committed": offset} for name, offset in task.stores.items()},
    }  # fmt: skip


def _brief(run: RunRecord) -> dict[str, Any]:
    """A run without its events, errors and configuration."""
    told = run.to_json()
    return {name: value for name, value in told.items() if name not in ("config", "events", "errors")}
