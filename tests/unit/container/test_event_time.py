"""Event time in a running job on the in-memory log: what `inputs[].time` of a job file does for a hand-written task."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from samzapy import StreamTask, TaskError
from samzapy.api.errors import ConfigurationError, TransactionAborted
from samzapy.config.errors import ConfigError
from samzapy.model.event_time import END, NEVER
from samzapy.streams import App, tumbling
from samzapy.testing import Harness

T0 = 1_600_041_600_000


class Watching(StreamTask):
    """Sends the watermark at each record; "bad" raises after that."""

    def init(self, context):
        self.context = context

    def process(self, envelope, collector, coordinator):
        collector.send("out", self.context.watermark, key=envelope.message["name"])
        if envelope.message["name"] == "bad":
            raise ValueError("bad")

    def end_of_stream(self, collector, coordinator):
        collector.send("out", self.context.watermark, key="end")


class WatchingBatches(StreamTask):
    def init(self, context):
        self.context = context

    def process_batch(self, envelopes, collector, coordinator):
        for envelope in envelopes:
            collector.send("out", self.context.watermark, key=envelope.message["name"])
        if any(envelope.message["name"] == "bad" for envelope in envelopes):
            raise ValueError("bad")


def harness(task: type[StreamTask] = Watching, topics: Sequence[str] = ("in",), tasks: int = 1, **time: Any) -> Harness:
    time = {"from": "at", "watermark_delay": "10s", **time}
    return Harness(
        task, tasks=tasks, inputs=[{"topic": topic, "key": "string", "value": "json", "time": time} for topic in topics],
        outputs=[{"topic": "out", "key": "string", "value": "json"}], on_error={"then": "skip"},
    )  # fmt: skip


def record(name: str, second: float) -> dict[str, Any]:
    return {"name": name, "at": T0 + int(second * 1000)}


def seconds(h: Harness) -> list[tuple[str, float | None]]:
    return [(name, None if at == NEVER else (at - T0) / 1000) for name, at in h.output("out")]


def test_time_moves_after_a_record_was_processed_and_a_record_that_is_given_up_moves_nothing() -> None:
    with harness() as h:
        for name, second in (("a", 0), ("b", 20), ("bad", 60), ("c", 30), ("d", 25)):
            h.send("in", record(name, second))
        h.run()
        assert seconds(h) == [("a", None), ("b", -10.0), ("c", 10.0), ("d", 20.0)]
        assert h.watermark() == T0 + 20_000


def test_time_moves_after_a_batch_and_not_by_one_that_fails() -> None:
    with harness(WatchingBatches) as h:
        for name, second in (("a", 0), ("bad", 60), ("c", 30)):
            h.send("in", record(name, second))
        h.run()
        assert [name for name, _ in seconds(h)] == ["a", "c"]
        assert h.watermark() == T0 + 20_000


@pytest.mark.parametrize("keep_state", [True, False])
def test_time_is_in_the_checkpoint_and_alone_a_reason_to_commit(keep_state: bool) -> None:
    with harness(topics=("a", "b"), idle_timeout="5s") as h:
        h.send("a", record("a", 100))
        h.send("b", record("b", 50))
        h.run()
        assert h.watermark() == T0 + 40_000
        sequence = h.checkpoint().sequence
        h.send("a", record("a", 101))
        h.run()
        for _ in range(12):
            h.advance(1.0)
            h.send("a", record("a", 101))
            h.run(commit=False)
        h.run()
        assert h.watermark() == T0 + 91_000
        assert h.checkpoint().inputs["b[0]"].time.idle
        assert h.checkpoint().sequence > sequence
        before = h.checkpoint()
        h.time_passes("a", T0 + 200_000)
        h.run()
        assert h.checkpoint().sequence == before.sequence + 1  # nothing but time
        assert {p: m.next_offset for p, m in h.checkpoint().inputs.items()} == {p: m.next_offset for p, m in before.inputs.items()}
        h.crash(keep_state)
        assert h.watermark() == T0 + 200_000
        h.send("b", record("late", 60))
        h.send("a", record("a", 300))
        h.run()
        assert h.watermark() == T0 + 200_000  # b counts again, and time does not go back


def test_what_was_not_committed_of_time_is_lost_in_a_crash() -> None:
    with harness() as h:
        h.send("in", record("a", 20))
        h.run()
        h.send("in", record("b", 60))
        h.run(commit=False)
        assert h.watermark() == T0 + 50_000
        h.crash()
        assert h.container.tasks["Partition 0"].time.watermark == T0 + 10_000


def test_a_transaction_that_is_aborted_takes_time_back() -> None:
    with harness() as h:
        h.send("in", record("a", 20))
        h.run()
        h.send("in", record("b", 60))
        h.run(commit=False)
        container = h.container
        container._rollback.after(TransactionAborted("for this test"))
        while container.is_starting:
            container.step(0.0)
        assert container.tasks["Partition 0"].time.watermark == T0 + 10_000
        h.run()
        assert h.watermark() == T0 + 50_000


def test_a_bounded_run_ends_with_the_end_of_time_and_the_next_goes_on_at_the_newest() -> None:
    with harness() as h:
        h.send("in", record("a", 20))
        h.end()
        assert h.output("out")[-1] == ("end", END)
        h.crash()
        assert h.watermark() == T0 + 10_000


def test_an_idle_input_with_a_backlog_is_waited_for_after_a_restart() -> None:
    with harness(topics=("a", "b"), idle_timeout="5s") as h:
        h.send("a", record("a", 100))
        h.send("b", record("b", 100))
        h.run()
        for second in range(12):
            h.advance(1.0)
            h.send("a", record("a", 100 + second))
            h.run(commit=False)
        h.run()
        assert h.checkpoint().inputs["b[0]"].time.idle
        h.crash()
        h.send("a", record("a", 500))
        for second in range(110, 490, 20):
            h.send("b", record("b", second))
        h.run()
        assert all(at is None or at <= 480 for name, at in seconds(h))
        assert h.watermark() == T0 + 460_000


def test_an_open_transaction_is_not_the_end() -> None:
    with harness(topics=("a", "b"), idle_timeout="5s") as h:
        h.send("a", record("a", 100))
        h.send("b", record("b", 100))
        h.run()
        other = h.log.transactional_producer("other")
        other.init()
        other.begin()
        other.send("b", msgspec.json.encode(record("b", 110)), None)
        other.flush()
        for second in range(20):
            h.advance(1.0)
            h.send("a", record("a", 200 + second))
            h.run(commit=False)
        assert h.watermark() == T0 + 90_000
        assert not h.container.tasks["Partition 0"].inputs[1].watermark.idle
        other.commit()
        h.run()
        assert h.watermark() == T0 + 100_000


def test_what_holds_time_is_said() -> None:
    with harness(topics=("a", "b"), idle_timeout="5m") as h:
        h.send("a", record("a", 100))
        h.send("b", record("b", 90))
        h.run()
        for _ in range(30):
            h.advance(1.0)
        h.send("a", record("a", 110))
        h.run()
        time = h.container.status()["tasks"][0]["time"]["a+b"]
        assert (time["watermark"], time["waits_for"]) == (T0 + 80_000, "b[0], silent for 29 s, idle after 300 s")


@pytest.mark.parametrize(
    ("at", "told"),
    [
        (None, "NoneType 'None'"),
        ("12", "str '12'"),
        (1.5, "float '1.5'"),
        (True, "bool 'True'"),
        (10**18, "int"),
    ],
)
def test_a_record_without_a_time_fails_before_it_is_processed(at: Any, told: str) -> None:
    with harness() as h:
        h.send("in", {"name": "a", "at": at})
        h.run()
        assert h.output("out") == []
        assert h.metric("skipped") == 1
        h.restart(on_error={"then": "fail"})
        h.send("in", {"name": "a", "at": at})
        with pytest.raises(TaskError, match=r"input in, `time: \{from: at\}` gave " + told):
            h.run()


def test_the_time_of_kafka_and_a_function_of_the_value() -> None:
    with harness(**{"from": "record"}) as h:
        h.send("in", {"name": "a"}, timestamp=T0)
        h.run()
        assert h.watermark() == T0 - 10_000
    with harness(**{"from": f"{__name__}:of_value"}) as h:
        h.send("in", {"name": "a", "seconds": 20})
        h.run()
        assert h.watermark() == T0 + 10_000


def of_value(value: dict[str, Any]) -> datetime:
    return datetime.fromtimestamp(T0 / 1000 + value["seconds"], UTC)


def test_processing_time_is_the_clocks() -> None:
    with Harness(
        Watching, inputs=[{"topic": "in", "key": "string", "value": "json", "time": {"from": "processing"}}],
        outputs=[{"topic": "out", "key": "string", "value": "json"}],
    ) as h:  # fmt: skip
        h.send("in", {"name": "a"})
        h.run()
        assert h.watermark() == h.clock.now_ms()
        sequence = h.checkpoint().sequence
        for _ in range(5):
            h.advance(3600.0)
            h.run()
        assert h.watermark() == h.clock.now_ms()
        assert h.checkpoint().sequence == sequence  # the clock alone is no reason to commit


def test_processing_time_that_is_far_ahead_of_the_clock_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    with Harness(
        Watching, inputs=[{"topic": "in", "key": "string", "value": "json", "time": {"from": "processing"}}],
        outputs=[{"topic": "out", "key": "string", "value": "json"}],
    ) as h:  # fmt: skip
        h.send("in", {"name": "a"})
        h.run()
        h.clock._start_ms -= 3_600_000
        for _ in range(5):
            h.advance(1.0)
            h.run()
        (warning,) = [line for line in caplog.messages if "ahead of this host's clock" in line]
        assert warning.startswith("processing time of in[0] is 3600 s ahead")
        (stage,) = h.container.status()["tasks"][0]["time"].values()
        assert stage["waits_for"].startswith("the clock: time is 59 min ahead of it")


def test_a_job_without_time_says_so_and_its_checkpoint_is_as_it_was() -> None:
    class Asking(StreamTask):
        def init(self, context):
            self.context = context

        def process(self, envelope, collector, coordinator):
            assert self.context.watermark

    with Harness(Asking, inputs=[{"topic": "in"}]) as h:
        h.send("in", b"x")
        with pytest.raises(TaskError, match=r"no input has a time"):
            h.run()
        with pytest.raises(ConfigurationError, match=r"there is no task with event time"):
            h.watermark()
        assert b'"version":1' in h.checkpoint().to_bytes()
        assert "time" not in h.container.status()["tasks"][0]


def test_time_that_is_switched_off_is_forgotten_and_the_checkpoint_is_readable_by_an_older_samzapy() -> None:
    with harness() as h:
        h.send("in", record("a", 20))
        h.run()
        assert b'"version":2' in h.checkpoint().to_bytes()
        h.restart(Silent, inputs=[{"topic": "in", "key": "string", "value": "json"}])
        h.send("in", record("a", 30))
        h.run()
        assert b'"version":1' in h.checkpoint().to_bytes()


@pytest.mark.filterwarnings("ignore:event time is 1970")
def test_times_in_seconds_are_warned_of_once_for_a_topic(caplog: pytest.LogCaptureFixture) -> None:
    with harness(tasks=2) as h:
        for second in range(3):
            for partition in (0, 1):
                h.send("in", {"name": "a", "at": T0 // 1000 + second}, partition=partition)
            h.run()
            h.advance(1)
        (warning,) = [line for line in caplog.messages if "look like seconds" in line]
        assert warning.startswith("event time of in[0] is 1970-01-19 12:27:21 UTC")
        assert "multiply them by 1000" in warning


def test_times_in_milliseconds_and_small_ones_of_tests_are_not_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    with harness() as h:
        for at in (60_000, T0 // 1000, T0, T0 + 1):  # the second stands alone: those after it do not agree with it
            h.send("in", {"name": "a", "at": at})
        h.run()
        h.advance(1)
    assert [] == [line for line in caplog.messages if "look like seconds" in line]


class Silent(StreamTask):
    def process(self, envelope, collector, coordinator):
        pass


@pytest.mark.parametrize(
    ("time", "told"),
    [
        ({"from": "at"}, "missing required key 'watermark_delay'"),
        ({"from": "at", "watermark_delay": "5"}, "expected a duration"),
        ({"from": "a b", "watermark_delay": "5s"}, "'a b' is not a source of event time"),
        ({"from": "at", "watermark_delay": "5s", "idle_timeout": "soon"}, "expected a duration"),
        ({"from": "at", "watermark_delay": "5s", "when_idel": "hold"}, "unknown key 'when_idel'.*did you mean 'when_idle'"),
    ],
)
def test_a_time_that_is_wrong_is_refused(time: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError, match=f"(?s){told}"):
        Harness(Watching, inputs=[{"topic": "in", "time": time}])
    two = [{"topic": idle, "time": {"from": "at", "watermark_delay": "1s", "when_idle": idle}} for idle in ("hold", "advance")]
    with pytest.raises(ConfigError, match=r"differ in when_idle"):
        Harness(Watching, inputs=two)


def times_of_2030(**now: Any) -> tuple[list[str], list[Any]]:
    """The warnings, and the counts that a window of 10 seconds gave while it ran."""
    app, start = App(), 1_900_000_000_000
    stream = app.stream("in", key=str, value=dict, time=lambda v: v["at"], watermark_delay="2s")
    stream.window(tumbling("10s")).count("n").to("out")
    with warnings.catch_warnings(record=True) as told, Harness(app, **now) as h:
        warnings.simplefilter("always")
        for second in (1, 8, 13, 25):
            h.send("in", {"at": start + second * 1000}, key="a")
            h.run()
        counts = [pane["value"] for _, pane in h.output("out")]
        h.end()
        assert sum(pane["value"] for _, pane in h.output("out")) == 4
    assert all(one.filename == __file__ for one in told)  # the line of the test, not of the harness
    return [str(one.message) for one in told], counts


def test_records_after_the_clock_of_a_harness_are_warned_of_once_and_it_can_start_later() -> None:
    (told,), counts = times_of_2030()
    assert counts == []
    assert "records of in have times after the harness's clock" in told
    assert "2023-11-14" in told
    assert "now=" in told
    for now in (1_900_000_060_000, datetime(2030, 3, 17, 17, 47, 40, tzinfo=UTC)):
        assert times_of_2030(now=now) == ([], [2, 1])


def test_times_in_seconds_are_warned_of_once() -> None:
    app = App()
    app.stream("in", key=str, value=dict, time=lambda value: value["at"], watermark_delay="0s").window(tumbling("10s")).count("n").to("out")
    with warnings.catch_warnings(record=True) as told, Harness(app) as h:
        warnings.simplefilter("always")
        for at in (1_600_000_000, 1_600_000_020):
            h.send("in", {"at": at}, key="a")
            h.run()
        h.end()
    (one,) = told
    assert "event time is 1970-01-19 12:26:40 UTC" in str(one.message)
    assert "multiply them by 1000" in str(one.message)
    assert one.filename == __file__


def test_a_second_harness_has_no_clock_of_its_own() -> None:
    with harness() as h, pytest.raises(ValueError, match="shares its clock"):
        h.then(Watching, inputs=[{"topic": "in"}], now=1)
