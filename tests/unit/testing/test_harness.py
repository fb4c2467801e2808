"""The harness answers wrong questions with the names that exist, can leave work uncommitted, and deletes all its files."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from samzapy import ConfigurationError, OutgoingMessageEnvelope, StreamTask
from samzapy.testing import Harness


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
    with warnings.catch_warnings():
        warnings.simplefilter("error")
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
    assert not directory.exists()


def test_a_state_thrown_away_gives_place_to_an_empty_one(h: Harness) -> None:
    h.send("in", "a", partition=0)
    h.run()
    before = h._scratch
    h.crash(keep_state=False)
    assert (False, True) == (before.exists(), h._scratch.exists())
    h.send("in", "a", partition=0)
    h.run()
    assert {"a": 2} == h.store("seen")
