"""The harness answers wrong questions with the names that exist, can leave work uncommitted, and deletes all its files."""

from __future__ import annotations

import gc
import logging.config
import os
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from samzapy import (
    ConfigurationError,
    IncomingMessageEnvelope,
    MessageCollector,
    OutgoingMessageEnvelope,
    StreamTask,
    TaskCoordinator,
    TaskError,
)
from samzapy.streams import App
from samzapy.testing import Harness
from samzapy.testing.seen import Records


class Counting(StreamTask):
    def init(self, context: Any) -> None:
        self.seen = context.get_store("seen")
        self.long = context.metrics.counter("long_words")

    def process(self, envelope: Any, collector: Any, coordinator: Any) -> None:
        if not envelope.message:
            raise ValueError("an empty word")
        self.seen.put(envelope.message, (self.seen.get(envelope.message) or 0) + 1)
        if len(envelope.message) > 4:
            self.long.inc()
        collector.send(OutgoingMessageEnvelope("out", envelope.message))


SECTIONS: dict[str, Any] = {
    "inputs": [{"topic": "in", "key": "string", "value": "string"}],
    "outputs": [{"topic": "out", "key": "string", "value": "string"}],
    "stores": {"seen": {"key": "string", "value": "integer"}},
    "on_error": {"then": "skip"},
}


@pytest.fixture
def h() -> Iterator[Harness]:
    with Harness(Counting, tasks=2, **SECTIONS) as harness:
        yield harness


WRONG: dict[str, tuple[Callable[[Harness], object], str]] = {
    "an input": (lambda h: h.send("inn", "x"), "no input 'inn'. There is: in"),
    "an output sent to": (lambda h: h.send("out", "x"), "no input 'out'. There is: in"),
    "a raw topic": (lambda h: h.send_raw("inn", b"x"), "no topic 'inn'. There is: .*in.*out"),
    "an output": (lambda h: h.output("in"), "no output 'in'. There is: out"),
    "a topic": (lambda h: h.records("outt"), "no topic 'outt'. There is: .*out"),
    "a partition": (lambda h: h.output("out", 7), "no partition 7 of out. It has 2"),
    "a store": (lambda h: h.store("sen"), "no store 'sen'. There is: seen"),
    "a store's task": (lambda h: h.store("seen", 7), "no partition 7"),
    "a metric": (lambda h: h.metric("short_words"), "no metric 'short_words'. There is: .*long_words, processed, skipped"),
    "a metric's task": (lambda h: h.metric("long_words", 7), "no task 'Partition 7'. There is: Partition 0, Partition 1"),
    "a checkpoint's task": (lambda h: h.checkpoint(7), "no partition 7"),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_not_there_is_an_error_that_lists_what_is(h: Harness, what: str) -> None:
    ask, words = WRONG[what]
    with pytest.raises(ConfigurationError, match=words):
        ask(h)


def program() -> App:
    app = App()
    app.stream("in", key=str, value=str).map(lambda text: 1 // len(text), value=int).to("out")
    return app


DOCUMENT: dict[str, Any] = {"job": "j", "task": f"{__name__}:Counting", "kafka": {"bootstrap.servers": "h"}, **SECTIONS}
JOBS: dict[str, tuple[Any, dict[str, Any]]] = {"a class": (Counting, SECTIONS), "a program": (program(), {}), "a dict": (DOCUMENT, {})}


@pytest.mark.parametrize("kind", JOBS)
def test_single_keys_are_changed_whatever_the_job_is_given_as(kind: str) -> None:
    job, sections = JOBS[kind]
    with Harness(job, sets=["on_error.then=dead_letter"], **sections) as h:
        h.send("in", "", key="k")
        h.run()
        assert ["in"] == [letter.topic for letter in h.dead_letters()]
        h.restart(sets=["on_error.then=skip"])
        h.send("in", "", key="k")
        h.run()
        assert 1 == len(h.dead_letters())
    for wrong, words in (("on_error.then=bogus", "expected fail, skip or dead_letter"), ("nonsense.x=1", "unknown key 'nonsense'"), ("x", "expected KEY=VALUE")):
        with pytest.raises(ConfigurationError, match=words):
            Harness(job, sets=[wrong], **sections)


def test_a_program_with_stages_may_have_another_name_and_id() -> None:
    app = App()
    app.stream("in", key=str, value=str).key_by(lambda v: v, "by-word", key=str).count("n").to("out")
    with Harness(app, job="shop", id="2") as h:
        h.send("in", "tea", key="a")
        h.run()
        assert [("tea", 1)] == h.output("out")
        assert h.records("shop-2-by-word")


class OwnLog(StreamTask):
    def init(self, context: Any) -> None:
        before = list(logging.root.handlers), logging.root.level
        logging.config.dictConfig({"version": 1})
        assert before == (logging.root.handlers, logging.root.level)

    def process(self, envelope: Any, collector: Any, coordinator: Any) -> None:
        raise ValueError(envelope.message)


def test_a_task_that_configures_its_log_does_not_silence_samzapys(caplog: pytest.LogCaptureFixture) -> None:
    """`dictConfig` switches off all loggers that there are, unless it is told otherwise."""
    with Harness(OwnLog, inputs=SECTIONS["inputs"], on_error={"then": "skip"}) as h:
        h.send("in", "x", key="k")
        h.run()
    assert any("skipped: record in[0]@0" in text for text in caplog.messages)


def test_a_timestamp_that_kafka_would_take_for_now_is_refused(h: Harness) -> None:
    for timestamp in (0, -1):
        with pytest.raises(ValueError, match=f"timestamp {timestamp}:"):
            h.send("in", "x", timestamp=timestamp)


def test_samzapys_own_counters_can_be_asked(h: Harness) -> None:
    for partition, word in ((0, "a"), (1, "longer"), (1, ""), (1, "b")):
        h.send("in", word, partition=partition)
    h.run()
    assert (3.0, 1.0, 0.0, 1.0) == tuple(map(h.metric, ("processed", "skipped", "dead_letters", "long_words")))
    assert (1.0, 2.0) == (h.metric("processed", 0), h.metric("processed", 1))


def test_work_left_uncommitted_is_lost_by_a_crash_and_committed_by_the_next_run(h: Harness) -> None:
    h.send("in", "a", partition=0)
    h.run(commit=False)
    assert 1.0 == h.metric("processed")
    assert ([], {}) == (h.output("out"), h.store("seen"))
    h.crash()
    h.run(commit=False)
    h.run()
    assert ([(None, "a")], {"a": 1}) == (h.output("out"), h.store("seen"))


@pytest.mark.parametrize("leave", ["with", "without"])
def test_its_directory_goes_with_it_and_no_warning_says_so(leave: str) -> None:
    with warnings.catch_warnings(record=True) as seen:  # all of this process: another test's socket may be among them
        warnings.simplefilter("always")
        harness = Harness(Counting, **SECTIONS)
        directory = harness._scratch
        harness.send("in", "a")
        harness.run()
        assert directory.exists()
        if leave == "with":
            harness.__exit__(None, None, None)
        else:
            harness.crash()
            del harness
            gc.collect()
    assert (False, []) == (directory.exists(), [str(w.message) for w in seen if directory.name in str(w.message)])


def test_a_state_thrown_away_gives_place_to_an_empty_one(h: Harness) -> None:
    h.send("in", "a", partition=0)
    h.run()
    before = h._scratch
    h.crash(keep_state=False)
    assert (False, True) == (before.exists(), h._scratch.exists())
    h.send("in", "a", partition=0)
    h.run()
    assert {"a": 2} == h.store("seen")


# -- several jobs, changed job files, time -------------------------------------------------------------------------------------------------


class Doubling(StreamTask[str, int]):
    """Passes on each record with twice its value; refuses 13, and says so in `window`."""

    def process(self, envelope: IncomingMessageEnvelope[str, int], collector: MessageCollector, coordinator: TaskCoordinator) -> None:
        if envelope.message == 13:
            raise ValueError("not this one")
        collector.send(f"{envelope.stream}-doubled", envelope.message * 2, key=envelope.key)


def doubling(topic: str, **more: Any) -> dict[str, Any]:
    numbers = {"key": "string", "value": "integer"}
    return {"inputs": [{"topic": topic, **numbers}], "outputs": [{"topic": f"{topic}-doubled", **numbers}], **more}


def test_jobs_in_a_row_share_kafka_and_clock_and_crash_alone() -> None:
    with Harness(Doubling, tasks=2, **doubling("n"), job="first") as first:
        second = first.then(Doubling, **doubling("n-doubled"), job="second")
        first.send("n", 1, key="a")
        first.run()
        assert [] == second.output("n-doubled-doubled")
        second.run(commit=False)
        second.crash()
        first.send("n", 2, key="b")
        first.run()
        second.run()
        assert [("a", 4), ("b", 8)] == sorted(second.output("n-doubled-doubled"))
        second.advance("1h")
        assert first.clock is second.clock


def test_a_job_reads_an_output_with_all_its_partitions() -> None:
    document = doubling("n", job="first")
    document["outputs"][0]["partitions"] = 3
    with Harness(Doubling, **document) as first:
        second = first.then(Doubling, **doubling("n-doubled"), job="second")
        for number in range(20):
            first.send("n", number if number != 13 else 0, key=str(number))
        first.run()
        second.run()
        assert 3 == len(second.container.tasks)
        assert 20 == len(second.output("n-doubled-doubled"))


def test_dead_letters_are_shown_as_the_input_has_them() -> None:
    with Harness(Doubling, **doubling("n"), on_error={"then": "dead_letter"}) as h:
        h.send("n", 13, key="unlucky")
        h.send_raw("n", b"no number", b"k")
        h.send("n", 1, key="a")
        h.run()
        letters = h.dead_letters()
        assert [("a", 2)] == h.output("n-doubled")
    assert [("n", 0, "unlucky", 13), ("n", 1, "k", b"no number")] == [(one.topic, one.offset, one.key, one.value) for one in letters]
    assert "ValueError: not this one" in letters[0].error


def test_a_restart_may_change_the_job_file() -> None:
    with Harness(Doubling, **doubling("n")) as h:
        h.send("n", 1, key="a")
        h.run()
        h.restart(on_error={"then": "skip"})
        h.send("n", 13, key="b")
        h.send("n", 2, key="c")
        h.run()
        assert [("a", 2), ("c", 4)] == h.output("n-doubled")
        assert (1, "skip") == (h.metric("skipped"), h.container._spec.on_error)


def numbers(partitions: int | None) -> App:
    app = App()
    passed = app.stream("n", key=str, value=int)
    keyed = passed if partitions is None else passed.key_by(str, "by_value", key=str, partitions=partitions)
    keyed.to("out", key=str, value=int)
    return app


def test_a_restart_may_need_more_tasks() -> None:
    with Harness(numbers(None), tasks=2) as h:
        h.send("n", 1, key="a")
        h.run()
        h.restart(numbers(5))
        for number in range(2, 20):
            h.send("n", number, key="b")
        h.run()
        assert sorted([("a", 1), *((str(n), n) for n in range(2, 20))]) == sorted(h.output("out"))


def test_tasks_stay_when_the_largest_input_has_left_and_a_stage_comes() -> None:
    """As in a run, a new changelog has a partition for each of them."""

    def program(*topics: str, more: bool = False) -> App:
        app = App()
        first, *others = [app.stream(topic, key=str, value=str) for topic in topics]
        for other in others:
            first = first.merge(other)
        keyed = first.key_by(lambda v: v, "by-value", key=str)
        keyed.count("values").to("out")
        if more:
            keyed.key_by(lambda v: "all", "by-all", key=str).count("all").to("all-out")
        return app

    class Nothing(StreamTask):
        def process(self, envelope: Any, collector: MessageCollector, coordinator: TaskCoordinator) -> None:
            pass

    outputs = [{"topic": "large", "key": "string", "value": "string", "partitions": 4}]
    with Harness(Nothing, tasks=2, inputs=[{"topic": "unused", "value": "string"}], outputs=outputs, job="other") as other:
        h = other.then(program("in"))
        h.send("in", "v", key="v")
        h.run()
        for topics in (("in", "large"), ("in",)):
            h.restart(program(*topics))
            h.run()
        h.restart(program("in", more=True))
        h.send("in", "w", key="w")
        h.run()
        assert {"all": 1} == h.store("all")


def test_time_is_given_in_seconds_or_as_in_a_job_file() -> None:
    with Harness(Doubling, **doubling("n")) as h:
        before = h.clock.now_ms()
        h.advance("1m")
        h.advance(0.5)
        assert 60_500 == h.clock.now_ms() - before
        with pytest.raises(ValueError, match="'soon' is no duration"):
            h.advance("soon")


class Ticking(StreamTask):
    """Says when its `window` is called."""

    def process(self, envelope: Any, collector: MessageCollector, coordinator: TaskCoordinator) -> None:
        pass

    def window(self, collector: MessageCollector, coordinator: TaskCoordinator) -> None:
        collector.send("out", "tick")


@pytest.mark.parametrize(("times", "calls"), [(["6s"], 6), (["1s"] * 6, 6), ([2.5, "500ms"], 3), (["900ms"], 0), (["900ms", 5.2], 6), ([0], 0)])
def test_window_is_called_as_often_as_in_a_run(times: list[float | str], calls: int) -> None:
    sections = {"inputs": [{"topic": "in", "value": "string"}], "outputs": [{"topic": "out", "value": "string"}], "window": "1s"}
    with Harness(Ticking, **sections) as h:
        h.run()
        for time in times:
            h.advance(time)
        h.run()
        assert calls == len(h.output("out"))


def test_a_window_that_is_rarer_than_the_commit_timeout_is_called_each_time() -> None:
    sections = {"inputs": [{"topic": "in", "value": "string"}], "outputs": [{"topic": "out", "value": "string"}], "window": "1d"}
    with Harness(Ticking, **sections) as h:
        h.run()
        h.advance("7d")
        h.run()
        assert 7 == len(h.output("out"))


class FailingWindow(Doubling):
    """Its `window` fails."""

    def window(self, collector: MessageCollector, coordinator: TaskCoordinator) -> None:
        raise RuntimeError("no window")


def test_an_error_in_window_says_that_on_error_does_not_apply() -> None:
    with Harness(FailingWindow, **doubling("n"), window="1s", on_error={"then": "skip"}) as h:
        h.run()
        with pytest.raises(TaskError, match="window failed") as failed:
            h.advance("2s")
    assert "`on_error` applies to records, and not to `window`" in failed.value.remedy


# -- pytest ------------------------------------------------------------------------------------------------------------------------------

TEST = """
from samzapy import StreamTask


class Echo(StreamTask):
    def process(self, envelope, collector, coordinator):
        collector.send("out", envelope.message)


SECTIONS = {"inputs": [{"topic": "in", "value": "string"}], "outputs": [{"topic": "out", "value": "string"}]}


def test_one(harness):
    h = harness(Echo, **SECTIONS)
    for word in "abc":
        h.send("in", word)
    h.run()
    assert h.output("out") == [(None, "a"), (None, "x"), (None, "c")]


def test_two(harness):
    h = harness(Echo, **SECTIONS)
    second = h.then(Echo, **SECTIONS, job="second")
    h.run()
    second.run()
    assert h.output("out") == []
"""


def test_the_fixture_closes_what_it_made_and_a_failure_tells_the_difference(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(TEST)
    command = [sys.executable, "-W", "error", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "error", "--rootdir", str(tmp_path), "."]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=tmp_path, env={**os.environ, "TMPDIR": str(tmp_path)})
    assert "1 failed, 1 passed" in done.stdout, done.stdout + done.stderr
    said = [line.removeprefix("E").strip() for line in done.stdout.splitlines() if line.startswith("E ")]
    assert ["AssertionError: assert out: 3 records, 3 expected", "missing  (None, 'x')", "extra    (None, 'b')"] == said
    assert [] == list(tmp_path.glob("samzapy-harness-*"))


def test_records_in_another_order_are_told_as_such() -> None:
    found = Records("out")
    found += [("a", 1), ("b", 2)]
    assert found == [("a", 1), ("b", 2)]
    assert "the same records in another order, from record 0 on: ('a', 1) where ('b', 2) was expected" == found.difference([("b", 2), ("a", 1)])[1]


def test_a_job_file_that_is_given_again_is_read_anew_with_its_classes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "patched_for_harness.py").write_text(
        "from samzapy import StreamTask\n\n\nclass Tells(StreamTask):\n    said = 'old'\n\n    def process(self, envelope, collector, coordinator):\n"
        "        collector.send('out', self.said)\n\n\nclass New(Tells):\n    said = 'new'\n"
    )
    job = tmp_path / "patched.yaml"
    job.write_text("job: p\ntask: patched_for_harness:Tells\nkafka: {bootstrap.servers: 'm:1'}\ninputs: [{topic: in}]\noutputs: [{topic: out, value: string}]\n")
    with Harness(job) as h:
        h.send("in", b"1")
        h.run()
        module = sys.modules["patched_for_harness"]
        monkeypatch.setattr(module, "Tells", module.New)
        h.restart(job)
        h.send("in", b"2")
        h.run()
        assert ["old", "new"] == [said for _, said in h.output("out")]


class Copying(StreamTask):
    def process(self, envelope, collector, coordinator):
        collector.send("out", envelope.message, key="k")


def test_after_its_end_it_begins_a_new_run() -> None:
    topics = {"inputs": [{"topic": "in", "key": "string", "value": "json"}], "outputs": [{"topic": "out", "key": "string", "value": "json"}]}
    with Harness(Copying, **topics) as h:
        for number, process in enumerate((h.end, h.run, h.run, h.end, h.end, lambda: h.advance(1.0), h.run), 1):
            h.send("in", number, key="a")
            process()
        assert [("k", number) for number in range(1, 8)] == h.output("out")


@pytest.mark.parametrize("steps", [["30s", "300s"], ["10m"], ["59s", "59s", "59s"]], ids=" ".join)
def test_a_clock_that_passes_the_time_of_a_transaction_costs_nothing(h: Harness, steps: list[str]) -> None:
    """A job commits every second or so: what a turn has begun is committed, and not given up by the broker."""
    h.send("in", "apple")
    for step in steps:
        h.send("in", "pear")
        h.advance(step)
    h.run()
    assert {"apple": 1, "pear": len(steps)} == dict(h.store("seen"))
    assert 1 + len(steps) == len(h.output("out"))


class KeepsByList(StreamTask):
    def init(self, context):
        self.kept = context.get_store("kept")

    def process(self, envelope, collector, coordinator):
        self.kept.put([envelope.message], 1)


def test_a_store_with_keys_that_no_dict_can_have_says_so() -> None:
    with Harness(KeepsByList, inputs=[{"topic": "in", "value": "string"}], stores={"kept": {"key": "json", "value": "integer"}}) as h:
        h.send("in", "a")
        h.run()
        with pytest.raises(ValueError, match="store 'kept' has keys that a dict cannot have: unhashable type: 'list'"):
            h.store("kept")
