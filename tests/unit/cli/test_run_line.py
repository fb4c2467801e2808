"""What a run shows while it runs and says at its end; how its log looks as JSON; the line below the log."""

from __future__ import annotations

import json
import logging
import os
import pty
import re
import select
import threading
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from samzapy.cli.run_line import line_of, restored, summary_of
from samzapy.cli.run_watch import RunWatch
from samzapy.coordinator.diagnosing import Diagnosing
from samzapy.coordinator.events import Events
from samzapy.kafka.own_certificate import Certificate
from samzapy.log_form import JsonLines
from samzapy.log_output import QueuedOutput
from samzapy.plan.totals import Totals
from samzapy.ports import TopicSpec
from samzapy.testing.manual_clock import ManualClock
from samzapy.testing.memory_log import MemoryCluster, MemoryLog

STATUS: dict[str, Any] = {
    "state": "RUNNING", "rates": {"in": 12345.6, "out": 10.0, "lag": 4567},
    "containers": [{"restarts": 1}, {"restarts": 2}],
    "tasks": [
        {"name": "Partition 0", "container": 0, "state": "RUNNING", "stores": {
            "s": {"restore": {"source": "local", "reason": "why", "records": 5, "seconds": 0.5, "remaining": 0}}}},
        {"name": "Partition 1", "container": 0, "state": "RESTORING", "stores": {"s": {"restore": {"remaining": 7}}, "t": {}}},
    ],
}  # fmt: skip


def report(commits: int, sent: int, *processed: int, letters: int = 0) -> dict[str, Any]:
    tasks = [{"name": f"Partition {n}", "processed": count, "skipped": 0, "dead_letters": letters} for n, count in enumerate(processed)]
    return {"commits": commits, "sent": {"out": sent}, "tasks": tasks}


def test_the_line_tells_rates_lag_commits_and_restarts() -> None:
    totals = Totals()
    totals.take({0: report(3, 1, 1)})
    expected = "RUNNING  in 12,346/s  out 10/s  behind 4,567  commits 3  restarts 3  restoring 1 of 2 tasks"
    assert expected == line_of(STATUS, totals, None, 200)
    assert "RUNNING  Kafka does not answer (4 s)  in" in line_of(STATUS, totals, 4.2, 200)
    assert expected[:39] == line_of(STATUS, totals, None, 40), "never as wide as the terminal: that would begin a new line"


def test_a_new_process_of_a_container_counts_on() -> None:
    totals = Totals()
    for reports in ({0: report(2, 10, 5, 5)}, {0: report(3, 12, 6, 6), 1: report(1, 1, 0, 0)}, {0: report(1, 4, 2, 2, letters=1), 1: report(1, 1, 0, 0)}):
        totals.take(reports)
    assert [5, 17, 16, 2] == [totals.of(name) for name in ("commits", "sent", "processed", "dead_letters")]
    assert "records: at least 16 in, 17 out, 2 set aside; 5 commits, 1 restart; 1 min 4 s, 0 records/s" == summary_of(totals, 1, 64.0)
    totals.take({2: {**report(1, 0, 4), "committed": {"processed": 4, "too_late": 3}}})
    assert summary_of(totals, 0, 64.0).startswith("records: 20 in, 17 out, 2 set aside, 3 too late for a window; 6 commits"), "all was reported"
    assert "2 set aside, 3 too late for a window (internal topics included); 6 commits" in summary_of(totals, 1, 64.0, has_stages=True)


def test_restores_that_are_done_are_told() -> None:
    assert ["container 0: Partition 0, store s: restored from local, 5 records in 0.5 s: why"] == list(restored(STATUS).values())


def test_a_log_as_json_has_what_its_message_names() -> None:
    form = JsonLines(job="visits-1", container=2)
    record = logging.LogRecord("samzapy.x", logging.WARNING, "f", 1, "%s: record %s: \x1b[31mbad", ("Partition 3", "vi-sits[4]@17"), None)
    document = json.loads(form.format(record))
    assert {"task": "Partition 3", "topic": "vi-sits", "partition": 4, "offset": 17, "container": 2, "job": "visits-1"}.items() <= document.items()
    assert "\x1b" not in form.format(record)
    plain = json.loads(form.format(logging.LogRecord("samzapy", logging.INFO, "f", 1, "nothing [of] that", (), None)))
    assert {"time", "level", "logger", "message", "job", "container"} == plain.keys()


# -- the line in a terminal ------------------------------------------------------------------------------------------------------------------


def read_until(fd: int, words: str) -> str:
    found = ""
    while words not in found:
        ready, _, _ = select.select([fd], [], [], 60)
        assert ready, found
        found += os.read(fd, 65536).decode()
    return found


def test_the_line_stays_below_what_is_logged_and_goes_at_the_end() -> None:
    primary, secondary = pty.openpty()
    output = QueuedOutput(secondary, "terminal")
    output.show_line("one")
    assert "one" == read_until(primary, "one")
    output.write(b"logged\n")
    assert "\r\x1b[Klogged\r\none" == read_until(primary, "one")
    output.write(b"half ")
    assert "\r\x1b[Khalf " == read_until(primary, "half ")
    output.write(b"and whole\n")
    assert "and whole\r\none" == read_until(primary, "one")
    output.show_line("")
    assert "\r\x1b[K" == read_until(primary, "\x1b[K")
    output.write(b"last\n")
    output.close()
    assert "last\r\n" == read_until(primary, "last\r\n")
    os.close(primary)
    os.close(secondary)


# -- Kafka -------------------------------------------------------------------------------------------------------------------------------------


class Roster:
    """What a watch asks of a roster."""

    def status(self) -> dict[str, Any]:
        return STATUS

    def __init__(self) -> None:
        self.totals = Totals()
        self.totals.take({0: report(1, 2, 3)})


def test_a_kafka_that_does_not_answer_is_told_and_that_it_is_back(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    clock = ManualClock()
    cluster = MemoryCluster(clock)
    log = MemoryLog(cluster)
    log.admin().create([TopicSpec("t", 1)])
    watch = RunWatch(Roster(), log, clock, "t", is_shown=False, is_elsewhere=True)  # type: ignore[arg-type]
    with log.admin() as admin:
        watch.ask(admin)
        cluster.network.cut_off(60.0, "")
        watch.ask(admin)
        watch.ask(admin)
        clock.advance(60.0)
        watch.ask(admin)
        watch.ask(admin)
    said = [record.getMessage().partition(";")[0] for record in caplog.records]
    assert "Kafka does not answer" == said[0]
    assert re.fullmatch(r"Kafka answers again, after 6\d s", said[1])
    assert 2 == len(said)
    assert watch.summary(has_stages=False).startswith("records: at least 3 in, 2 out; 1 commit, 3 restarts;")
    watch.summary(has_stages=False)
    assert 1 == caplog.text.count("Partition 0, store s: restored from local"), "on another host, so told here, once"


def test_a_client_certificate_is_a_hint_that_waits_for_no_look_of_the_coordinator(caplog: pytest.LogCaptureFixture) -> None:
    clock = ManualClock()
    roster = Roster()
    roster.lock, roster.diagnosing = threading.RLock(), Diagnosing(clock, Events(clock))  # type: ignore[attr-defined]
    now = datetime.now(UTC)
    expires = [now + timedelta(days=30)]
    watch = RunWatch(
        roster, MemoryLog(MemoryCluster(clock)), clock, "t", is_shown=False, is_elsewhere=True,  # type: ignore[arg-type]
        certificate=lambda: Certificate("own.pem", expires[0]),
    )  # fmt: skip
    told = []
    for when in (expires[0], now + timedelta(days=3), now + timedelta(days=3), now - timedelta(days=1), now + timedelta(days=30)):
        expires[0] = when
        watch.look_at_certificate()
        told.append([(hint["code"], hint["severity"]) for hint in roster.diagnosing.to_json()])  # type: ignore[attr-defined]
        clock.advance(10.0)
    assert [[], [("certificate", "look")], [("certificate", "look")], [("certificate", "act")], []] == told
    assert ["own.pem expires in 3 days", "own.pem expired at"] == [
        found for record in caplog.records for found in re.findall(r"own.pem expire(?:s in 3 days|d at)", record.getMessage())
    ]
