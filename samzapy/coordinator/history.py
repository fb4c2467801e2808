"""Writes the record of this run, so that it can be read when the job does not run any more: at the start, now and then, and at the end.

Nothing waits for it, and the job goes on without it where Kafka does not take it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from samzapy.api.errors import RecordRejected, RecordTooLarge
from samzapy.coordinator.events import CONTAINER, JOB, PEOPLE, RESTORE
from samzapy.coordinator.ownership_records import OwnershipRecords
from samzapy.coordinator.roster import Roster
from samzapy.coordinator.settings import CoordinatorSettings, Process
from samzapy.model.ownership import Ledger
from samzapy.model.run_record import (
    COUNTED,
    MAX_ERRORS,
    MAX_EVENT_TEXT,
    MAX_EVENTS,
    MAX_KEYS,
    MAX_RUNS,
    MAX_TEXT,
    RunRecord,
    history_key,
    runs_of,
    surplus,
)
from samzapy.model.states import JobState, RunOutcome
from samzapy.ports import Clock

LOG = logging.getLogger("samzapy.coordinator")
NEWS_S, SELDOM_S = 60.0, 300.0  # it is written again so long after the last time if something happened, or in any case
KINDS = (JOB, CONTAINER, PEOPLE, RESTORE)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    """What a run's record tells of its start.

    Attributes:
        hide: gives a text without the secrets in it.
    """

    started_by: str = ""
    how: str = ""
    version: str = ""
    config: Sequence[Mapping[str, str]] = ()
    hide: Callable[[str], str] = field(compare=False, default=lambda text: text)


class History:
    """The record of one run."""

    def __init__(
        self, facts: RunFacts, roster: Roster, ownership: OwnershipRecords, settings: CoordinatorSettings, process: Process, clock: Clock
    ) -> None:
        self._facts, self._roster, self._ownership = facts, roster, ownership
        self._settings, self._process, self._clock = settings, process, clock
        self._began_ms = 0
        self._written_at, self._told = float("-inf"), 0
        self._is_refused = False

    def begin(self, ledger: Ledger) -> None:
        """Write that this run has begun, how the run before it ended if that did not say so, and delete the records of old runs. May be called again.

        Raises: as OwnershipRecords.write, but for a record that Kafka does not take.
        """
        self._began_ms = self._began_ms or self._clock.now_ms()
        records: list[tuple[bytes, bytes | None]] = [(history_key(run_id), None) for run_id in surplus(ledger.history, MAX_RUNS - 1)]
        records += [(history_key(run.run_id), run.to_bytes()) for run in self._ended_without_a_word(ledger)]
        self._write(*records, (history_key(self._roster.run_id), self.record().to_bytes()))

    def _ended_without_a_word(self, ledger: Ledger) -> list[RunRecord]:
        lease, this = ledger.lease, self._roster.run_id
        found = []
        for run in runs_of(ledger.history)[: MAX_RUNS - 1]:
            if run.outcome or run.run_id == this:
                continue
            heard_ms = lease.renewed_ms if lease is not None and lease.run_id == run.run_id else run.told_ms
            if self._settings.takeover:
                outcome, by = RunOutcome.REPLACED, f"{self._facts.started_by}: `samzapy run JOB.yaml --takeover`, run {this}"
            else:
                outcome, by = RunOutcome.LOST, "nobody: its process ended without a word, or was cut off"
            found.append(replace(run, ended_ms=max(heard_ms, run.began_ms), outcome=outcome, ended_by=by))
        return found

    def write_when_due(self) -> None:
        """Write it again if it is time. Raises as `begin`."""
        since_s = self._clock.monotonic() - self._written_at
        if since_s < NEWS_S:
            return
        with self._roster.lock:
            has_news = any(event["kind"] in KINDS for event in self._roster.events.since(self._told))
            record = self.record() if has_news or since_s >= SELDOM_S else None
        if record is not None:
            self._write((history_key(record.run_id), record.to_bytes()))

    def last_words(self) -> list[tuple[bytes, bytes | None]]:
        """The record of how this run has ended, for who writes its end."""
        return [] if self._is_refused else [(history_key(self._roster.run_id), self.record().to_bytes())]

    def _write(self, *records: tuple[bytes, bytes | None]) -> None:
        if self._is_refused:
            return
        self._written_at, self._told = self._clock.monotonic(), self._roster.events.last  # one that fails is not tried again at once
        try:
            self._ownership.write(*records)
        except (RecordTooLarge, RecordRejected) as error:
            self._is_refused = True
            LOG.warning("the record of this run cannot be written, so nothing will show later how it went: %s: %s", error.code, error.message)

    def record(self) -> RunRecord:
        """This run, as it is known now."""
        roster, facts, now_ms = self._roster, self._facts, self._clock.now_ms()
        with roster.lock:
            failure, is_over = roster.failure, roster.state in (JobState.FINISHED, JobState.FAILED)
            ended = RunOutcome.FAILED if failure else RunOutcome.STOPPED if roster.stop_asked_by else RunOutcome.FINISHED
            outcome = ended if is_over else ""
            error = failure[1] if failure else {}
            counts = {**roster.totals.counts, "restarts": roster.members.restarts}
            return RunRecord(
                run_id=roster.run_id, began_ms=self._began_ms, told_ms=now_ms, started_by=facts.started_by, host=self._process.host,
                pid=self._process.pid, version=facts.version, how=facts.how, containers=roster.target, tasks=len(roster.tasks),
                config=[dict(row) for row in facts.config[:MAX_KEYS]], ended_ms=now_ms if is_over else 0, outcome=outcome,
                ended_by=self._ended_by(is_over), error=self._short(f"{error['code']}: {error['message']}") if error else "",
                remedy=self._short(str(error.get("remedy", ""))), counts={name: counts.get(name, 0) for name in COUNTED},
                events=self._events(), errors=self._errors(),
            )  # fmt: skip

    def _ended_by(self, is_over: bool) -> str:
        roster = self._roster
        if not is_over:
            return ""
        if roster.failure is not None:
            return "an error" + (f" of container {roster.failure[0]}" if roster.failure[0] >= 0 else "")
        return roster.stop_asked_by or "itself: all its work was done"

    def _events(self) -> list[dict[str, Any]]:
        told = [e for e in self._roster.events.since() if e["kind"] in KINDS]
        restores, others = [e for e in told if e["kind"] == RESTORE], [e for e in told if e["kind"] != RESTORE]
        # A job with many tasks restores so many stores at once that they would leave no room for deaths and states.
        restores = restores[-max(MAX_EVENTS // 4, MAX_EVENTS - len(others)) :]
        events = sorted([*others[len(restores) - MAX_EVENTS :], *restores], key=lambda e: int(e["n"]))
        return [
            {name: event.get(name) for name in ("n", "at_ms", "kind", "what", "container", "state") if event.get(name) is not None}
            | {"text": self._facts.hide(event["text"])[:MAX_EVENT_TEXT]}
            for event in events
        ]

    def _errors(self) -> list[dict[str, Any]]:
        names = ("type", "place", "count", "first_ms", "last_ms", "record", "action")
        groups = self._roster.events.errors()[:MAX_ERRORS]
        return [{**{name: group.get(name) for name in names}, "text": self._short(str(group.get("text") or ""))[:MAX_EVENT_TEXT]} for group in groups]

    def _short(self, text: str) -> str:
        return self._facts.hide(text)[:MAX_TEXT]
