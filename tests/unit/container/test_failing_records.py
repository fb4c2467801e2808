"""Records that fail: what is left of them, how often they are tried, where they end, and how one that Kafka refuses is found."""

from __future__ import annotations

import itertools
import logging
from pathlib import Path
from typing import Any

import pytest

from samzapy import OutgoingMessageEnvelope, StreamTask, SystemStream, TaskError
from samzapy.api.errors import Fenced, InDoubt, RecordTooLarge, SerdeError, TimestampRefused
from samzapy.container.container import Container
from samzapy.container.failure import stack_of
from samzapy.model.dead_letter import HEADERS_NOT_READ, DeadLetter, Origin, read_letter
from samzapy.model.offsets import TopicPartition
from samzapy.ports import Supervision
from tests.unit.container.bench import JOB, Bench

OUT = SystemStream("kafka", "out")


class Summing(StreamTask):
    """Sum per key in a store, every update sent; `boom` fails after both, as often as `failures` says."""

    failures = 1 << 30

    def init(self, context):
        self.sums = context.get_store("s")
        self.failed = 0

    def process(self, envelope, collector, coordinator):
        total = (self.sums.get(envelope.key) or 0) + envelope.message
        self.sums.put(envelope.key, total)
        collector.send(OutgoingMessageEnvelope(OUT, key=envelope.key, message=total, partition=envelope.partition))
        if envelope.key == "boom" and self.failed < self.failures:
            self.failed += 1
            raise ValueError(f"boom number {self.failed}!")


def failing(times: int) -> type[Summing]:
    return type("FailingSometimes", (Summing,), {"failures": times})


def origins(bench: Bench, partition: int = 0) -> list[int]:
    return [letter.origin.offset for letter in bench.letters(partition)]


def run_until_idle(bench: Bench, container: Container) -> None:
    """Run until nothing more comes, with commits when they are due: what is aborted is replayed."""
    idle = 0
    while idle < 3:
        bench.clock.passed += 0.0 if container.step(0.0) else 2.0
        idle = 0 if container.step(0.0) else idle + 1


# -- retries ------------------------------------------------------------------------------------------------------------------------


def test_a_record_that_works_at_the_third_attempt_counts_once(tmp_path: Path) -> None:
    bench = Bench(tmp_path, failing(2), retries=2)
    bench.feed(("a", 1), ("boom", 5), ("a", 1))
    bench.drain(bench.start())
    assert [("a", 1), ("boom", 5), ("a", 2)] == bench.read("out")
    assert {"a": 2, "boom": 5} == bench.changelog()
    assert 0.03 == pytest.approx(bench.clock.passed), "10 ms, then 20 ms"


def test_attempts_that_are_used_up_stop_the_job_and_say_how_many(tmp_path: Path) -> None:
    bench = Bench(tmp_path, failing(3), retries=2)
    bench.feed(("a", 1), ("boom", 5))
    container = bench.start()
    with pytest.raises(TaskError, match=r"process failed 3 times on record in\[0\]@1: ValueError: boom number 3!"):
        bench.drain(container)
    assert [("a", 1)] == bench.read("out")


@pytest.mark.parametrize("exactly_once", [True, False])
def test_while_a_record_waits_the_heartbeat_and_commits_go_on_and_it_is_not_committed(tmp_path: Path, exactly_once: bool) -> None:
    bench = Bench(tmp_path, Summing, retries=12, exactly_once=exactly_once)
    bench.feed(("a", 1), ("boom", 5))
    alive: list[tuple[float, list[tuple[str, int | None]]]] = []
    spec = bench.spec()
    bench.name(0, "i", spec.tasks)
    container = Container(
        spec, "i", "run", None, bench.log, bench.clock, supervision=Supervision(lambda: alive.append((bench.clock.passed, bench.read("out"))))
    )
    container.start()
    with pytest.raises(TaskError, match="failed 13 times"):
        bench.drain(container)
    pauses = [later[0] - earlier[0] for earlier, later in itertools.pairwise(alive)]
    assert max(pauses) <= 0.11
    seen_at = next(at for at, seen in alive if seen == [("a", 1)])
    assert seen_at < bench.clock.passed - 1 if exactly_once else seen_at < 0.2
    assert [("a", 1)] == bench.read("out")
    assert {"a": 1} == bench.changelog()
    assert 1 == container.tasks["Partition 0"].committed.inputs["in[0]"].next_offset


def test_a_record_that_is_tried_again_for_long_is_told_of_as_the_reason_why_all_tasks_stand_still(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench(tmp_path, failing(90), retries=100, partitions=2)
    bench.feed(("boom", 5), ("a", 1))
    bench.feed(("b", 1), partition=1)
    reasons: list[tuple[float, list[str]]] = []
    bench.name(0, "i", bench.spec().tasks)
    look = Supervision(lambda: reasons.append((bench.clock.passed, [str(task["reason"]) for task in container.status()["tasks"]])))
    container = Container(bench.spec(), "i", "run", None, bench.log, bench.clock, supervision=look)
    container.start()
    bench.drain(container)
    told = [at for at, each in reasons if each and all(text.startswith("record in[0]@0 failed ") for text in each)]
    assert told[0] < 10
    assert told[-1] > 60
    assert "times in 5 s, and its container waits: it is tried again up to 100 times (on_error.retries): ValueError: boom number" in caplog.text
    assert 2 == caplog.text.count("and its container waits"), "after 5 s and once a minute"
    container.step()
    bench.clock.passed += 5
    container.step()
    assert ["", ""] == [task["reason"] for task in container.status()["tasks"]]
    assert [("boom", 5), ("a", 1)] == bench.read("out")


def test_records_before_and_after_one_that_is_tried_again_all_count(tmp_path: Path) -> None:
    bench = Bench(tmp_path, failing(1), retries=1, partitions=2)
    for partition in (0, 1):
        bench.feed(*[("a", 1), ("boom", 1), ("b", 1), ("boom", 1), ("c", 1)] * 20, partition=partition)
    bench.drain(bench.start())
    for partition in (0, 1):
        assert {"a": 20, "b": 20, "c": 20, "boom": 40} == bench.changelog(partition)
        assert 100 == len(bench.read("out", partition))


# -- dead letters ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("exactly_once", [True, False])
def test_a_dead_letter_is_the_record_as_it_was_and_what_happened_to_it(tmp_path: Path, exactly_once: bool) -> None:
    bench = Bench(tmp_path, Summing, on_error="dead_letter", retries=1, exactly_once=exactly_once)
    producer = bench.log.plain_producer("feed")
    producer.send("in", b"\x00" * 7 + b"\x05", b"boom", 0, 1234, [("trace", b"1"), ("none", None), ("samzapy-topic", b"elsewhere")])
    bench.feed_raw(b"no integer", b"k")
    bench.feed(("a", 1))
    bench.drain(bench.start())
    first, second = bench.letters()
    assert (Origin("in", 0, 0), b"boom", b"\x00" * 7 + b"\x05", 1234) == (first.origin, first.key, first.value, first.timestamp_ms)
    assert [("trace", b"1"), ("none", None), ("samzapy-topic", b"elsewhere")] == first.headers
    assert ("Partition 0", "ValueError: boom number 2!", 2) == (first.task, first.error, first.attempts)
    assert "test_failing_records.py" in first.stack
    assert "in process: raise ValueError" in first.stack
    assert (Origin("in", 0, 1), b"k", b"no integer", "SerdeError") == (second.origin, second.key, second.value, second.error.split(":")[0])
    assert [("a", 1)] == bench.read("out")
    assert {"a": 1} == bench.changelog()


def test_attempts_that_fail_alike_are_one_stack(tmp_path: Path) -> None:
    bench = Bench(tmp_path, failing(3), on_error="dead_letter", retries=2)
    bench.feed(("boom", 1))
    bench.drain(bench.start())
    [letter] = bench.letters()
    assert (3, 1) == (letter.attempts, letter.stack.count("-> ValueError"))


def test_the_stack_of_a_dead_letter_has_nothing_of_the_record(tmp_path: Path) -> None:
    class Telling(StreamTask):
        def process(self, envelope, collector, coordinator):
            secret = envelope.key
            try:
                raise KeyError(secret)
            except KeyError as error:
                raise RuntimeError(f"no {secret}") from error

    bench = Bench(tmp_path, Telling, on_error="dead_letter")
    bench.feed(("password-of-ada", 1))
    bench.drain(bench.start())
    [letter] = bench.letters()
    assert "password-of-ada" not in letter.stack
    assert ["-> KeyError", "-> RuntimeError"] == [line for line in letter.stack.splitlines() if line.startswith("->")]


@pytest.mark.parametrize("hook", ["__init__", "init", "process", "process_batch", "window", "end_of_stream", "close"])
def test_a_stack_has_the_users_frames_only(tmp_path: Path, hook: str) -> None:
    def fail(self, *given: Any) -> None:
        if hook in ("process", "process_batch", "window", "end_of_stream"):
            given[-2].send("nowhere", 1)  # raises within samzapy
        raise ValueError("boom")

    hooks = {"process": lambda *_: None, "window": lambda *_: None, hook: fail}
    bench = Bench(tmp_path, type("Failing", (StreamTask,), hooks), window_s=0.5 if hook == "window" else None)
    bench.feed(("a", 1))

    def run() -> None:
        container = bench.start({"in[0]": 1} if hook == "end_of_stream" else None)
        bench.clock.sleep(1.0)
        bench.drain(container)
        container.stop()

    with pytest.raises(TaskError) as raised:
        run()
    cause = raised.value.__cause__
    assert cause is not None
    stack = stack_of(cause).splitlines()
    assert stack[:-1], stack
    assert [] == [line for line in stack[:-1] if not line.startswith("test_failing_records.py:")]


@pytest.mark.parametrize("exactly_once", [True, False])
@pytest.mark.parametrize("kind", ["aborted", "in_doubt_lost", "in_doubt_committed", "fenced", "suspicious"])
def test_whatever_happens_to_a_commit_each_record_ends_once_as_output_or_dead_letter(tmp_path: Path, kind: str, exactly_once: bool) -> None:
    bench = Bench(tmp_path, Summing, on_error="dead_letter", exactly_once=exactly_once)
    container = bench.start()
    for round_ in range(5):
        bench.feed(("a", 1), ("boom", 1), ("b", 1))
        if round_ == 2:
            bench.cluster.fail_next("commit", kind)
        if round_ == 3:
            container.step(0.0)
            container.close()  # processed, not committed: a crash
            container = bench.start()
        for _ in range(3):
            try:
                run_until_idle(bench, container)
                break
            except (InDoubt, Fenced):
                container.start()
    assert [1, 4, 7, 10, 13] == origins(bench)
    assert {"a": 5, "b": 5} == bench.changelog()
    expected = [(k, n) for n in range(1, 6) for k in "ab"]
    assert expected == bench.read("out") if exactly_once else set(expected) == set(bench.read("out"))


def test_a_partition_of_bad_records_is_passed_and_counted(tmp_path: Path) -> None:
    bench = Bench(tmp_path, Summing, on_error="dead_letter")
    for _ in range(1500):
        bench.feed_raw(b"bad")
    container = bench.start()
    bench.drain(container)
    assert list(range(1500)) == origins(bench)
    assert 1500 == container.tasks["Partition 0"].committed.inputs["in[0]"].next_offset
    assert 1500 == container.status()["tasks"][0]["dead_letters"]


def test_a_dead_letter_is_cut_to_what_the_topic_takes_in_its_stack_first(tmp_path: Path) -> None:
    class Deep(StreamTask):
        def process(self, envelope, collector, coordinator):
            self.fall(40)

        def fall(self, depth):
            if depth:
                self.fall(depth - 1)
            raise ValueError("e" * 400)

    bench = Bench(tmp_path, Deep, on_error="dead_letter")
    bench.cluster.configure(JOB.dead_letter_topic, {"max.message.bytes": "2000"})
    bench.feed(("k", 1))
    bench.feed(("k" * 700, 1))
    bench.feed(("k" * 1400, 1))
    bench.drain(bench.start())
    small, middle, large = bench.letters()
    assert "e" * 400 in small.error
    assert 300 < len(small.stack) < 2000
    assert small.stack.endswith("-> ValueError"), "the innermost frames are kept"
    assert len(middle.stack) < len(small.stack)
    assert ("", True) == (large.stack, len(large.error) < 400)
    assert max(small.size, middle.size, large.size) <= 2000


def test_a_record_that_its_dead_letter_topic_cannot_take_is_shortened_and_says_so(tmp_path: Path) -> None:
    bench = Bench(tmp_path, Summing, on_error="dead_letter")
    bench.cluster.configure(JOB.dead_letter_topic, {"max.message.bytes": "2000"})
    bench.feed(("a", 1))
    bench.feed_raw(b"bad" * 1000)
    bench.feed(("a", 2))
    bench.drain(bench.start())
    assert [("a", 1), ("a", 3)] == bench.read("out")
    (letter,) = bench.letters()
    assert letter.truncated.endswith("value=3000 headers=0")
    assert (Origin("in", 0, 1), True) == (letter.origin, (letter.value or b"").startswith(b"badbad"))
    assert 1500 < letter.size <= 2000


def test_headers_that_do_not_fit_are_left_out_and_the_record_stays(tmp_path: Path) -> None:
    headers = [(f"h{i}", b"x" * 100) for i in range(100)]
    letter = DeadLetter(
        origin=Origin("in", 0, 1),
        key=b"key",
        value=b"value",
        headers=headers,
        task="Partition 0",
        error="ValueError: boom",
        stack="stack",
        attempts=1,
        timestamp_ms=0,
        time_ms=0,
    ).fitted(3000)
    assert letter is not None
    assert (b"key", b"value", "ValueError: boom") == (letter.key, letter.value, letter.error)
    assert headers[: len(letter.headers)] == list(letter.headers) != headers
    assert letter == read_letter(letter.key, letter.value, letter.to_headers())


def test_of_headers_that_nobody_could_read_a_shortened_letter_says_no_size() -> None:
    whole = DeadLetter(
        origin=Origin("in", 0, 1),
        key=b"key",
        value=b"v" * 5000,
        headers=(),
        task="Partition 0",
        error="",
        stack="",
        attempts=1,
        timestamp_ms=0,
        time_ms=0,
        truncated=HEADERS_NOT_READ,
    )
    letter = whole.fitted(2000)
    assert letter is not None
    assert "key=3 value=5000 headers=?" == letter.truncated


def test_a_topic_that_takes_not_even_an_origin_stops_the_job_by_name(tmp_path: Path) -> None:
    bench = Bench(tmp_path, Summing, on_error="dead_letter")
    bench.cluster.configure(JOB.dead_letter_topic, {"max.message.bytes": "200"})
    bench.feed_raw(b"bad")
    with pytest.raises(RecordTooLarge, match=r"record in\[0\]@0 .*limit of test-1-dead-letter, 200 bytes"):
        bench.drain(bench.start())


def test_the_log_tells_of_the_first_and_then_of_few(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench(tmp_path, Summing, on_error="dead_letter")
    for _ in range(100):
        bench.feed_raw(b"bad")
    with caplog.at_level(logging.WARNING):
        bench.drain(bench.start())
    assert 10 == len([r for r in caplog.records if "set aside in test-1-dead-letter: record in[0]@" in r.getMessage()])
    assert caplog.records[-1].getMessage().endswith("(10 so far in this task)")


def test_the_log_names_the_key_of_a_record_that_the_task_fails_on(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench(tmp_path, Boom, on_error="skip")
    bench.feed(("CHF", 1))
    bench.drain(bench.start())
    assert ["Partition 0: skipped: record in[0]@0, key b'CHF': KeyError: 'CHF' (1 so far in this task)"] == [
        record.getMessage() for record in caplog.records if record.levelname == "WARNING"
    ]


class Boom(StreamTask):
    def process(self, envelope, collector, coordinator):
        raise KeyError(envelope.key)


def test_a_record_that_cannot_be_read_is_no_failure_of_the_task(tmp_path: Path) -> None:
    bench = Bench(tmp_path, Summing)
    bench.feed_raw(b"bad")
    with pytest.raises(SerdeError, match=r"Partition 0: record in\[0\]@0.* cannot be read: serde integer reads 8 bytes") as refused:
        bench.drain(bench.start())
    assert "set `on_error: {then: dead_letter}`" in refused.value.remedy


@pytest.mark.parametrize("worse", [RuntimeError, SystemExit, KeyboardInterrupt, GeneratorExit])
def test_an_exception_that_cannot_be_told_is_set_aside_all_the_same(
    tmp_path: Path, worse: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("signal.getsignal", lambda number: None)  # as in a container's process: Ctrl-C is switched off

    class Mute(Exception):
        def __str__(self) -> str:
            raise worse("no words")

    class Failing(StreamTask):
        def process(self, envelope, collector, coordinator):
            raise Mute

    bench = Bench(tmp_path, Failing, on_error="dead_letter")
    bench.feed(("a", 1))
    bench.drain(bench.start())
    assert [f"Mute: (its message cannot be shown: {worse.__name__})"] == [letter.error for letter in bench.letters()]


def test_an_exception_that_raises_when_it_is_asked_for_its_cause_is_set_aside_all_the_same(tmp_path: Path) -> None:
    class Hostile(Exception):
        @property
        def __cause__(self) -> BaseException:
            raise RuntimeError("no cause")

    class Failing(StreamTask):
        def process(self, envelope, collector, coordinator):
            if envelope.message == 1:
                raise Hostile

    bench = Bench(tmp_path, Failing, on_error="dead_letter")
    bench.feed(("a", 1), ("a", 2))
    bench.drain(bench.start())
    assert ["TaskError: it raised a Hostile, which cannot be described: RuntimeError."] == [letter.error for letter in bench.letters()]


# -- a record that several tasks read -----------------------------------------------------------------------------------------------


class Rules(StreamTask):
    """Counts what it reads of `rules`; the task of partition 1 fails as often as `failures` says."""

    failures = 1 << 30

    def init(self, context):
        self.seen = context.get_store("s")
        self.number = context.task_name[-1]
        self.failed = 0

    def process(self, envelope, collector, coordinator):
        n = (self.seen.get(envelope.key) or 0) + 1
        self.seen.put(envelope.key, n)
        if self.number == "1" and envelope.key == "boom" and self.failed < self.failures:
            self.failed += 1
            raise ValueError("not I")


def broadcast(tmp_path: Path, task: type[Rules], **settings: object) -> Bench:
    return Bench(tmp_path, task, partitions=3, inputs={"in": {}, "rules": {}}, broadcast={"rules"}, **settings)


def test_a_task_that_has_had_a_record_does_not_get_it_again_because_another_fails_on_it(tmp_path: Path) -> None:
    bench = broadcast(tmp_path, Rules)
    bench.feed(("x", 1), ("boom", 1), topic="rules")
    container = bench.start()
    with pytest.raises(TaskError, match=r"Partition 1: process failed on record rules\[0\]@1"):
        bench.drain(container)
    container.close()
    bench.task = type("Mended", (Rules,), {"failures": 0})
    bench.drain(bench.start())
    assert [{"x": 1, "boom": 1}] * 3 == [bench.changelog(p) for p in range(3)]


def test_one_that_backs_off_commits_what_the_others_did_with_the_record_once(tmp_path: Path) -> None:
    bench = broadcast(tmp_path, type("Later", (Rules,), {"failures": 11}), retries=11)
    bench.feed(("x", 1), ("boom", 1), ("y", 1), topic="rules")
    container = bench.start()
    bench.drain(container)
    container.close()
    bench.drain(bench.start())
    assert [{"x": 1, "boom": 1, "y": 1}] * 3 == [bench.changelog(p) for p in range(3)]


def test_a_record_is_set_aside_by_the_task_that_failed_on_it(tmp_path: Path) -> None:
    bench = broadcast(tmp_path, Rules, on_error="dead_letter")
    bench.feed(("x", 1), ("boom", 1), topic="rules")
    bench.drain(bench.start())
    assert [[], [Origin("rules", 0, 1)], []] == [[letter.origin for letter in bench.letters(p)] for p in range(3)]
    assert [{"x": 1, "boom": 1}, {"x": 1}, {"x": 1, "boom": 1}] == [bench.changelog(p) for p in range(3)]


# -- what Kafka refuses -----------------------------------------------------------------------------------------------------------------


class Echo(StreamTask):
    """Sends each key back, and counts it."""

    def init(self, context):
        self.seen = context.get_store("s")

    def process(self, envelope, collector, coordinator):
        self.seen.put(envelope.key[:10], (self.seen.get(envelope.key[:10]) or 0) + 1)
        collector.send(OutgoingMessageEnvelope(OUT, key=envelope.key, message=1, partition=envelope.partition))


class Timed(StreamTask):
    """Sends each record on with a time of its own; that of `late` is two hours ahead."""

    def __init__(self, now_ms: int) -> None:
        self.now_ms = now_ms

    def process(self, envelope, collector, coordinator):
        ahead_ms = 7_200_000 if envelope.key == "late" else 0
        collector.send(OutgoingMessageEnvelope(OUT, key=envelope.key, message=1, partition=envelope.partition, timestamp=self.now_ms + ahead_ms))


def refusing(tmp_path: Path, **settings: object) -> tuple[Bench, Container]:
    """A running job whose output takes less, since it was started, than was known."""
    bench = Bench(tmp_path, Echo, **settings)  # type: ignore[arg-type]
    container = bench.start()
    bench.cluster.configure("out", {"max.message.bytes": "500"})
    return bench, container


@pytest.mark.parametrize("exactly_once", [True, False])
@pytest.mark.parametrize(("at", "of"), [(0, 1), (0, 2), (1, 2), (0, 1000), (617, 1000), (999, 1000)])
def test_the_one_record_that_kafka_refuses_is_found_and_set_aside(tmp_path: Path, at: int, of: int, exactly_once: bool) -> None:
    bench, container = refusing(tmp_path, on_error="dead_letter", exactly_once=exactly_once)
    keys = [f"k{i:09}" if i != at else "x" * 600 for i in range(of)]
    bench.feed(*((key, 1) for key in keys))
    run_until_idle(bench, container)
    assert [at] == origins(bench)
    assert "RecordRejected" in bench.letters()[0].error
    assert {key: 1 for key in keys if key[0] == "k"} == bench.changelog()
    sent = [key for key, _ in bench.read("out")]
    expected = [key for key in keys if key[0] == "k"]
    assert expected == sent if exactly_once else set(expected) == set(sent)


def test_many_that_kafka_refuses_over_partitions_are_all_found(tmp_path: Path) -> None:
    bench, container = refusing(tmp_path, on_error="dead_letter", partitions=3)
    for partition in range(3):
        bench.feed(*((f"k{i:09}" if i % 50 != partition else "x" * 600, 1) for i in range(300)), partition=partition)
    run_until_idle(bench, container)
    for partition in range(3):
        assert list(range(partition, 300, 50)) == origins(bench, partition)
        assert 294 == len(bench.read("out", partition)) == len(bench.changelog(partition))


@pytest.mark.parametrize("then", ["dead_letter", "skip"])
def test_one_that_kafka_refuses_is_found_while_other_partitions_bring_more_all_the_time(tmp_path: Path, then: str) -> None:
    """An attacker found that its partition stood still for as long as the others had traffic."""
    bench, container = refusing(tmp_path, on_error=then, partitions=12)
    bad, offset = 6, 40

    def more(records: int) -> None:
        for partition in range(12):
            bench.feed(*((f"k{i}", 1) for i in range(records)), partition=partition)

    more(offset)
    bench.feed(("x" * 600, 1), partition=bad)
    turns = 0
    while container.status()["tasks"][bad]["skipped" if then == "skip" else "dead_letters"] == 0:
        more(2)
        bench.clock.passed += 0.2
        container.step(0.0)
        turns += 1
        assert turns < 300, "its partition stands still"
    run_until_idle(bench, container)
    assert [offset + 2 * turns] * 12 == [len(bench.read("out", partition)) for partition in range(12)]


def test_what_is_searched_is_said_and_if_it_does_not_come_any_more_the_others_are_read(tmp_path: Path) -> None:
    bench, container = refusing(tmp_path, on_error="skip", partitions=2)
    container._search.suspects = {TopicPartition("in", 0): 10}  # as if these records had been deleted since
    container._inputs.read_only(container._search.suspects)
    bench.feed(("k", 2), partition=1)
    said = set()
    for _ in range(30):
        bench.clock.passed += 1.0
        container.step(0.0)
        said |= {str(task["reason"]) for task in container.status()["tasks"]}
    assert any("the record to blame is searched for, among those of in[0] before offset 10" in reason for reason in said), said
    assert {} == container._search.suspects
    assert [("k", 1)] == bench.read("out", 1)


def test_when_the_culprit_is_passed_transactions_grow_again(tmp_path: Path) -> None:
    bench, container = refusing(tmp_path, on_error="skip")
    bench.feed(*((f"k{i}", 1) for i in range(64)), ("x" * 600, 1))
    run_until_idle(bench, container)
    bench.feed(*((f"k{i}", 1) for i in range(500)))
    run_until_idle(bench, container)
    before = container.status()["commits"]
    bench.feed(*((f"k{i}", 1) for i in range(500)))
    run_until_idle(bench, container)
    assert 1 == container.status()["commits"] - before
    assert 1 == container.status()["tasks"][0]["skipped"]
    assert 1064 == len(bench.read("out"))


def test_with_fail_the_record_that_kafka_refuses_is_named_and_what_came_before_is_committed(tmp_path: Path) -> None:
    bench, container = refusing(tmp_path, retries=1)
    bench.feed(*((f"k{i}", 1) for i in range(10)), ("x" * 600, 1), ("after", 1))
    with pytest.raises(
        TaskError, match=r"Partition 0: what it sends or stores failed 2 times on record in\[0\]@10: .*larger than the topic"
    ):
        run_until_idle(bench, container)
    container.stop()
    assert [f"k{i}" for i in range(10)] == [key for key, _ in bench.read("out")]


def test_a_refused_record_of_a_broadcast_input_is_passed_by_every_task(tmp_path: Path) -> None:
    bench = Bench(tmp_path, Echo, partitions=2, inputs={"in": {}, "rules": {}}, broadcast={"rules"}, on_error="dead_letter")
    container = bench.start()
    bench.cluster.configure("out", {"max.message.bytes": "500"})
    bench.feed(("a", 1), ("x" * 600, 1), ("b", 1), topic="rules")
    run_until_idle(bench, container)
    assert [{"a": 1, "b": 1}] * 2 == [bench.changelog(p) for p in range(2)]
    assert [[Origin("rules", 0, 1)]] * 2 == [[letter.origin for letter in bench.letters(p)] for p in range(2)]


def test_a_record_whose_dead_letter_is_refused_as_well_stops_the_job(tmp_path: Path) -> None:
    bench, container = refusing(tmp_path, on_error="dead_letter")
    bench.cluster.configure(JOB.dead_letter_topic, {"max.message.bytes": "500"})
    bench.feed(("a", 1), ("x" * 600, 1))
    with pytest.raises(TaskError, match=r"record in\[0\]@1 is refused, and cannot be set aside either"):
        run_until_idle(bench, container)
    container.stop()
    assert ["a"] == [key for key, _ in bench.read("out")]


@pytest.mark.parametrize("aborts", [1, 2, 5, 8])
def test_aborts_that_lie_in_no_record_only_cost_time(tmp_path: Path, aborts: int) -> None:
    bench = Bench(tmp_path, Echo)
    container = bench.start()
    bench.feed(*((f"k{i}", 1) for i in range(400)))
    for _ in range(aborts):
        bench.cluster.fail_next("commit", "aborted")
    run_until_idle(bench, container)
    assert [f"k{i}" for i in range(400)] == [key for key, _ in bench.read("out")]
    assert 0 == container.status()["tasks"][0]["skipped"]


def test_what_window_sends_is_not_laid_at_a_records_door(tmp_path: Path) -> None:
    class Windowed(Echo):
        def window(self, collector, coordinator):
            collector.send(OutgoingMessageEnvelope(OUT, key="w" * 600, message=1))

    bench = Bench(tmp_path, Windowed, on_error="skip", window_s=10.0)
    container = bench.start()
    bench.cluster.configure("out", {"max.message.bytes": "500"})
    bench.feed(*((f"k{i}", 1) for i in range(20)))
    bench.clock.passed += 11
    with pytest.raises(TaskError, match="a hook other than `process`"):
        run_until_idle(bench, container)
    container.stop()
    assert 0 == container.status()["tasks"][0]["skipped"]


def test_what_init_puts_is_not_laid_at_a_records_door(tmp_path: Path) -> None:
    class Initial(Echo):
        def init(self, context):
            super().init(context)
            self.seen.put("i" * 600, 1)

    bench = Bench(tmp_path, Initial, on_error="skip")
    bench.feed(*((f"k{i}", 1) for i in range(4)))
    container = bench.start()
    bench.cluster.configure(JOB.changelog_topic("s"), {"max.message.bytes": "500"})
    with pytest.raises(TaskError, match="a hook other than `process`"):
        run_until_idle(bench, container)
    container.stop()
    assert 0 == container.status()["tasks"][0]["skipped"]


def test_a_crash_in_the_middle_of_the_search_begins_it_again(tmp_path: Path) -> None:
    bench, container = refusing(tmp_path, on_error="dead_letter")
    bench.feed(*((f"k{i:09}" if i != 300 else "x" * 600, 1) for i in range(400)))
    for _ in range(12):
        bench.clock.passed += 2
        container.step(0.0)
        container.step(0.0)
        container.close()
        container = bench.start()
    run_until_idle(bench, container)
    assert [300] == origins(bench)
    assert 399 == len(bench.read("out")) == len(bench.changelog())


def test_outputs_that_were_not_delivered_put_an_at_least_once_container_in_doubt_until_it_starts_over(tmp_path: Path) -> None:
    bench = Bench(tmp_path, Summing, exactly_once=False)
    container = bench.start()
    bench.feed(("a", 1), ("b", 2))
    for _ in range(1000):  # for longer than outputs are waited for
        bench.cluster.disturb_next("produce", "request_lost")
    while not container.step(0.0):
        pass
    with pytest.raises(InDoubt, match="not delivered"):
        container.commit()
    bench.cluster.forget_faults()
    assert {} == bench.changelog()

    container.start()
    bench.drain(container)
    assert {"a": 1, "b": 2} == bench.changelog()
    assert {("a", 1), ("b", 2)} == set(bench.read("out"))


@pytest.mark.parametrize("on_error", ["skip", "dead_letter", "fail"])
@pytest.mark.parametrize("exactly_once", [True, False])
def test_no_record_is_blamed_for_the_clock_of_the_host(tmp_path: Path, on_error: str, exactly_once: bool) -> None:
    bench = Bench(tmp_path, Echo, on_error=on_error, exactly_once=exactly_once)
    container = bench.start()
    bench.feed(*((f"k{i}", 1) for i in range(20)))
    bench.cluster.clients_ahead_ms = 7_200_000
    with pytest.raises(TimestampRefused, match=r"[Cc]lock"):
        run_until_idle(bench, container)
    container.close()
    bench.cluster.clients_ahead_ms = 0
    container = bench.start()
    run_until_idle(bench, container)
    assert 0 == container.status()["tasks"][0]["skipped"]
    assert [] == bench.letters()
    assert {f"k{i}": 1 for i in range(20)} == bench.changelog()


@pytest.mark.parametrize("exactly_once", [True, False])
def test_a_record_for_which_the_task_gives_a_wrong_time_is_found_and_skipped(tmp_path: Path, exactly_once: bool) -> None:
    bench = Bench(tmp_path, lambda: Timed(bench.clock.now_ms()), on_error="skip", exactly_once=exactly_once)
    container = bench.start()
    bench.feed(*((f"k{i}" if i != 7 else "late", 1) for i in range(20)))
    run_until_idle(bench, container)
    assert 1 == container.status()["tasks"][0]["skipped"]
    assert {f"k{i}" for i in range(20) if i != 7} == {key for key, _ in bench.read("out")}
