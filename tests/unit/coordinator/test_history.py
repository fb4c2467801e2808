"""The record of a run in the coordinator topic: begun, in between, ended, lost; and that nothing depends on it."""

from __future__ import annotations

import logging
import signal
from typing import Any

import pytest

from samzapy.coordinator.events import CONTAINER, RESTORE
from samzapy.coordinator.history import RunFacts
from samzapy.coordinator.settings import Process
from samzapy.model.process_end import killed_by
from samzapy.model.run_record import MAX_BYTES, MAX_RUNS, RunRecord, changed, history_key, run_record, runs_of
from tests.unit.coordinator.test_job_coordinator import JOB, Stage, beat

FACTS = RunFacts(
    started_by="ann@here", how="--local", version="1", config=[{"key": "containers.count", "value": "1", "from": "default"}],
    hide=lambda text: text.replace("hunter2hunter2", "***"),
)  # fmt: skip


def stage(beside: Stage | None = None, **settings: Any) -> Stage:
    made = Stage(beside, **settings)
    made.coordinator.history._facts = FACTS
    return made


def runs(of: Stage) -> list[RunRecord]:
    return runs_of(of.ledger().history)


def ended(beside: Stage | None = None) -> Stage:
    with stage(beside) as run:
        run.await_launch(1)
        run.coordinator.request_stop("ann (127.0.0.1)")
        assert 0 == run.await_end()
    return run


def test_a_run_tells_how_it_was_started_and_who_ended_it() -> None:
    with stage() as run:
        _, launch, _ = run.await_launch(1)
        (told,) = runs(run)
        assert ("ann@here", "--local", "1", "", 0, "") == (told.started_by, told.how, told.version, told.outcome, told.ended_ms, told.ended_by)
        assert FACTS.config == told.config
        run.register(0, launch, "one", {"host": "h", "pid": 7})
        beat(run, "one")
        run.coordinator.request_stop("ann (127.0.0.1)")
        run.coordinator.roster.report_final(0, "one", {"outcome": "stopped", "error": None, "number": 9, "tasks": [{"name": "Partition 0", "processed": 5}]})
        assert 0 == run.await_end()
    (told,) = runs(run)
    assert ("STOPPED", "ann (127.0.0.1)", "") == (told.outcome, told.ended_by, told.error)
    assert told.began_ms <= told.ended_ms
    counts = {"processed": 6, "sent": 0, "skipped": 0, "dead_letters": 0, "too_late": 0, "commits": 1, "restarts": 0}
    assert counts == told.counts, "1 + 1 by heartbeat, 5 in the last report"
    assert {"container 0 runs as process 7 on h", "the job is FINISHED"} <= {str(e["text"]) for e in told.events}


def test_a_run_with_many_restores_still_tells_of_a_death() -> None:
    with stage() as run:
        run.await_launch(1)
        for kind, what, times in ((CONTAINER, "died", 1), (RESTORE, "restored", 400), (CONTAINER, "begun", 60)):
            for n in range(times):
                run.coordinator.roster.events.add(kind, what, f"{what} {n}")
        kept = run.coordinator.history.record().events
    assert "died 0" in {e["text"] for e in kept}
    assert (200, sorted(int(e["n"]) for e in kept)) == (len(kept), [int(e["n"]) for e in kept])
    assert "restored 399" in {e["text"] for e in kept}


def test_a_run_that_failed_tells_the_error_without_secrets() -> None:
    with stage() as run:
        _, launch, _ = run.await_launch(1)
        run.register(0, launch, "one", {})
        error = {"code": "SZ210", "message": "password hunter2hunter2 is wrong", "remedy": "change it", "fatal": True, "exit_code": 1}
        run.coordinator.roster.report_final(0, "one", {"outcome": "failed", "error": error})
        assert 1 == run.await_end()
    (told,) = runs(run)
    assert ("FAILED", "an error of container 0", "SZ210: password *** is wrong", "change it") == (told.outcome, told.ended_by, told.error, told.remedy)
    assert "hunter2" not in repr(told)


@pytest.mark.parametrize(("takeover", "outcome", "by"), [(False, "LOST", "nobody: its process"), (True, "REPLACED", "ann@here: `samzapy run JOB.yaml --takeover`")])
def test_of_a_run_that_ended_without_a_word_the_next_one_tells(takeover: bool, outcome: str, by: str) -> None:
    first = stage(lease_s=2.0)
    with first:
        first.await_launch(1)
        heard_ms = first.ledger().lease.renewed_ms  # type: ignore[union-attr]
        first.clock.sleep(1.0)
        second = stage(first, takeover=takeover, lease_s=2.0)
        second.coordinator._lease._process = Process("h", 1, "s", lambda host, pid, start: True)
        with second:
            second.await_launch(1)
            now, before = runs(second)
    assert ("", second.coordinator._run_id) == (now.outcome, now.run_id)
    assert outcome == before.outcome
    assert before.ended_by.startswith(by)
    assert before.began_ms <= before.ended_ms
    assert heard_ms <= before.ended_ms


def test_only_the_last_runs_are_kept_and_a_record_that_nobody_can_read_goes() -> None:
    ran = [ended()]  # all are kept: a run's id is made of where it lies
    while len(ran) < MAX_RUNS + 2:
        ran.append(ended(ran[-1]))
    last = ran[-1]
    assert MAX_RUNS == len(runs(last)) == len(last.ledger().history)
    assert last.coordinator._run_id == runs(last)[0].run_id
    producer = last.log.transactional_producer("other")
    producer.init()
    producer.begin()
    producer.send(JOB.coordinator_topic, b"{}", history_key("strange"), 0)
    producer.commit()
    assert "strange" in last.ledger().history
    assert not last.ledger().unreadable, "so nobody is refused for it"
    assert "strange" not in ended(last).ledger().history


def test_it_is_written_again_when_something_happened_and_now_and_then() -> None:
    with stage(lease_s=2000.0, tick_s=2.0) as run:
        _, launch, handle = run.await_launch(1)
        run.register(0, launch, "one", {})
        began = runs(run)[0].told_ms
        handle.ended = killed_by(signal.SIGKILL)
        run.await_launch(2)
        run.register(0, run.launches[1][1], "two", {})
        run.clock.sleep(62.0)
        news = runs(run)[0]
        assert (1, True) == (news.counts["restarts"], began < news.told_ms <= began + 66_000)
        run.clock.sleep(200.0)
        assert news.told_ms == runs(run)[0].told_ms
        run.clock.sleep(104.0)
        assert news.told_ms + 299_000 < runs(run)[0].told_ms


def test_where_kafka_does_not_take_it_the_job_runs_and_ends_as_ever(caplog: pytest.LogCaptureFixture) -> None:
    run = stage()
    run.coordinator.history._facts = RunFacts(config=[{"key": "params.x", "value": "y" * 1500, "from": ""}])
    run.cluster.configure(JOB.coordinator_topic, {"max.message.bytes": "1000"})
    with run, caplog.at_level(logging.WARNING):
        _, launch, _ = run.await_launch(1)
        run.register(0, launch, "one", {})
        run.coordinator.request_stop("ann")
        run.coordinator.roster.report_final(0, "one", {"outcome": "stopped", "error": None})
        assert 0 == run.await_end()
    assert [] == runs(run)
    assert run.ledger().lease.ended  # type: ignore[union-attr]
    assert 1 == caplog.text.count("the record of this run cannot be written")


def test_a_record_is_bounded_and_what_is_none_is_refused() -> None:
    events = [{"n": n, "text": "x" * 300} for n in range(400)]
    config = [{"key": f"params.k{n}", "value": "v" * 500, "from": "f:1"} for n in range(400)]
    record = RunRecord(run_id="r", began_ms=1, told_ms=2, events=events, config=config, counts={"processed": 1 << 60})
    data = record.to_bytes()
    assert len(data) <= MAX_BYTES
    read = run_record(data)
    assert ("r", 1 << 60) == (read.run_id, read.counts["processed"])
    assert read.config == config[: len(read.config)]
    for wrong in (b"", b"[]", b"{}", b'{"v":1}', b'{"v":1,"run_id":1,"began_ms":1,"told_ms":1}', b'{"v":2,"run_id":"r","began_ms":1,"told_ms":1}',
                  b'{"v":1,"run_id":"r","began_ms":1,"told_ms":1,"events":[1]}', b"\xff" * 10):  # fmt: skip
        assert [] == runs_of({"x": wrong})


def test_what_changed_between_two_configurations() -> None:
    before = [{"key": "a", "value": "1", "from": "f:1"}, {"key": "b", "value": "2", "from": "default"}, {"key": "c", "value": "3", "from": "f:2"}]
    now = [{"key": "a", "value": "1", "from": "g:9"}, {"key": "b", "value": "4", "from": "--set:1"}, {"key": "d", "value": "5", "from": "f:3"}]
    assert [
        {"key": "b", "before": "2", "now": "4", "before_from": "default", "now_from": "--set:1"},
        {"key": "c", "before": "3", "now": None, "before_from": "f:2", "now_from": None},
        {"key": "d", "before": None, "now": "5", "before_from": None, "now_from": "f:3"},
    ] == changed(before, now)
