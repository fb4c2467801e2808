"""The last runs of the job: how each began and ended, and what its configuration changed, against another run's or the job file as it is now."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from samzapy.api.errors import ConfigurationError, SamzapyError
from samzapy.config.errors import ConfigError
from samzapy.config.secrets import without_secrets
from samzapy.model.names import Job
from samzapy.model.run_record import MAX_RUNS, RunRecord, changed, runs_of
from samzapy.ports import Clock, Log
from samzapy.readers import read_ledger
from samzapy.web.route_errors import NotFound

FRESH_S = 5.0
BEFORE, FILE = "before", "file"
LONG = ("config", "events", "errors")  # of a run, what a list leaves out
Rows = Sequence[Mapping[str, Any]]


class Runs:
    """Of one job.

    Args:
        this: the run of this process as it is now; None: it runs none.
        file: the configuration that the job file has now.
    """

    def __init__(self, names: Job, log: Log, clock: Clock, this: Callable[[], RunRecord | None], file: Callable[[], Rows]) -> None:
        self._names, self._log, self._clock, self._this, self._file = names, log, clock, this, file
        self._lock = threading.Lock()
        self._read_at, self._known = float("-inf"), list[RunRecord]()

    def rows(self) -> dict[str, Any]:
        """The newest first, without what is long."""
        runs = self._runs()
        items = [{**_brief(run), "changes": len(changed(before.config, run.config))} for run, before in pairwise(runs)]
        return {"items": [*items, *({**_brief(run), "changes": None} for run in runs[-1:])]}

    def one(self, run_id: str, against: str) -> dict[str, Any]:
        """One run, and what its configuration changed against the run before it, the job file as it is now, or the run of that id.

        Raises:
            NotFound: there is no such run.
        """
        runs = self._runs()
        n = next((n for n, run in enumerate(runs) if run.run_id == run_id), None)
        if n is None:
            raise NotFound(f"nothing is known of a run {run_id[:100]!r}: the last {MAX_RUNS} are kept")
        whose, other, problem = self._other(runs, n, against)
        rows = [] if other is None else changed(runs[n].config, other) if against == FILE else changed(other, runs[n].config)
        return {**runs[n].to_json(), "against": whose, "changes": rows, "problem": problem}

    def _other(self, runs: Sequence[RunRecord], n: int, against: str) -> tuple[str, Rows | None, str]:
        """Whose configuration is compared with, that, and why it cannot be."""
        if against == FILE:
            try:
                return FILE, self._file(), ""
            except (SamzapyError, ConfigError, OSError) as error:
                return FILE, None, without_secrets(str(error))[:2000]
        if against == BEFORE:
            return (runs[n + 1].run_id, runs[n + 1].config, "") if n + 1 < len(runs) else ("", None, "nothing is known of a run before it")
        other = next((run for run in runs if run.run_id == against), None)
        if other is None:
            raise ConfigurationError(f"nothing is known of a run {against[:100]!r}.", "`GET …/runs` has the ids of those that are kept.")
        return other.run_id, other.config, ""

    def _runs(self) -> list[RunRecord]:
        with self._lock:
            if self._clock.monotonic() - self._read_at >= FRESH_S:
                topic = self._names.coordinator_topic
                with self._log.admin() as admin:
                    is_there = topic in admin.topics([topic])
                if is_there:
                    with self._log.restore_consumer("runs") as consumer:
                        self._known = runs_of(read_ledger(consumer, topic, self._clock).history)
                self._read_at = self._clock.monotonic()
            this = self._this()
            others = [run for run in self._known if this is None or run.run_id != this.run_id]
            return ([] if this is None else [this]) + others


def _brief(run: RunRecord) -> dict[str, Any]:
    return {name: value for name, value in run.to_json().items() if name not in LONG}
