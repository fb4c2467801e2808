"""Dead letters of a following stage of a program go back into the internal topic that they came from, and the stage processes them once."""

from __future__ import annotations

from typing import Any

import pytest

from samzapy.api.errors import ConfigurationError, SamzapyError
from samzapy.config.document import settings_from_document
from samzapy.model.dead_letter import DeadLetter, Origin
from samzapy.model.marks import MARKS_KEY
from samzapy.model.names import Job
from samzapy.model.offsets import TopicPartition
from samzapy.ops.dead_letters import DeadLetters
from samzapy.ops.letter_choice import Filter, opened, replay_of
from samzapy.ops.letters_again import begin_of_steps, go_back, newest_letters, sent_again, warnings
from samzapy.ops.shown import serdes_by_topic
from samzapy.plan.checkpoint_orders import Step
from samzapy.streams import App, tumbling
from samzapy.streams.expand import sections
from samzapy.testing import Harness

T0 = 1_600_041_600_000
TOPIC = "test-1-by-word"
bad: set[str] = set()


def good(word: str) -> str:
    if word in bad:
        raise ValueError("a bad word")
    return word


APP = App()
_words = APP.stream("lines", key=str, value=str, watermark_delay="0s").flat_map(str.split, value=str).key_by(lambda w: w, "by-word", key=str)
_words.map(good, value=str).count("counts").to("counts")
_windows = _words.map(good, value=str).window(tumbling("10s"))
_windows.count("panes").to("panes")
_JOB: dict[str, Any] = {"job": "test", "app": "program:app", "kafka": {"bootstrap.servers": "x:1"}, "on_error": {"then": "dead_letter"}}
SETTINGS = settings_from_document({**_JOB, **sections(APP.graph, {}, {}).to_json()}, {})


def letters_of(h: Harness) -> DeadLetters:
    return opened(SETTINGS, h.log, h.clock)


def quiet(done: int, of: int) -> None:
    pass


@pytest.mark.parametrize(("is_stopped", "crashes"), [(False, False), (True, True)])
def test_a_record_goes_back_into_the_stage_in_which_it_failed_and_counts_once(is_stopped: bool, crashes: bool) -> None:
    bad.update({"x", "y"})
    with Harness(APP, tasks=3, on_error={"then": "dead_letter"}) as h:
        h.send("lines", "a x b y x", key="k", partition=1, timestamp=T0)
        h.run()
        assert {"a": 1, "b": 1} == h.store("counts")
        before = [(m.partition(), m.offset()) for m in h.records(TOPIC) if m.key() in (b"x", b"y")]
        assert 3 == len(before)
        bad.clear()
        if is_stopped:
            h.stop()
        sent = letters_of(h).replay(None, quiet)
        assert sorted(before) == sorted((e.letter.origin.partition, e.letter.origin.offset) for e in sent)
        assert [] == letters_of(h).replay(None, quiet)
        records = [m for m in h.records(TOPIC) if m.key() in (b"x", b"y")]
        assert 6 == len(records)
        assert 2 == len({(m.partition(), m.key()) for m in records})  # each where it was
        assert {T0} == {m.timestamp()[1] for m in records}
        if crashes:
            h.run(commit=False)
            h.crash(keep_state=False)
        h.end()
        assert {"a": 1, "b": 1, "x": 2, "y": 1} == h.store("counts")
        assert [("a", 1), ("b", 1), ("x", 2), ("y", 1)] == sorted((word, pane["value"]) for word, pane in h.output("panes"))


def test_what_comes_back_after_its_window_has_fired_is_late() -> None:
    bad.add("x")
    with Harness(APP, tasks=1, on_error={"then": "dead_letter"}) as h:
        h.send("lines", "x", key="k", timestamp=T0)
        h.time_passes("lines", T0 + 10_000)
        h.run()
        bad.clear()
        letters_of(h).replay(None, quiet)
        h.run()
        assert ([], 1, {"x": 1}) == (h.output("panes"), h.late("panes"), h.store("counts"))


def refusal_of(h: Harness, origin: Origin, key: bytes) -> SamzapyError:
    letter = DeadLetter(
        origin=origin, key=key, value=b"v", headers=(), task="Partition 0", error="E: x", stack="", attempts=1, timestamp_ms=T0, time_ms=5
    )
    h.log.plain_producer("feed").send(Job("test", "1").dead_letter_topic, b"v", key, 0, 5, letter.to_headers())
    with pytest.raises(ConfigurationError) as refused:
        letters_of(h).replay([origin], quiet)
    return refused.value


def test_what_no_run_would_read_is_refused() -> None:
    with Harness(APP, on_error={"then": "dead_letter"}) as h:
        assert "so the next run begins by removing all records there" in str(refusal_of(h, Origin(TOPIC, 0, 0), b"k"))
        h.run()
        assert 1 == len(letters_of(h).replay(None, quiet))


def test_a_forged_mark_is_refused() -> None:
    with Harness(APP, on_error={"then": "dead_letter"}) as h:
        h.run()
        assert "dlq discard JOB.yaml 0.0 --execute" in refusal_of(h, Origin(TOPIC, 0, 0), MARKS_KEY).remedy


def test_they_are_shown_by_the_serdes_of_the_program() -> None:
    assert ("string", "string") == serdes_by_topic(SETTINGS)[TOPIC]


@pytest.mark.parametrize(("before", "after", "is_told"), [(1, 0, True), (None, 0, True), (1, 1, False), (1, None, False)])
def test_those_of_a_following_stage_are_told_where_the_inputs_are_read_again(before: int | None, after: int | None, is_told: bool) -> None:
    """The records are sent to the internal topic again: a letter that is sent back as well counts twice."""
    bad.update({"x", "y"})
    with Harness(APP, tasks=3, on_error={"then": "dead_letter"}) as h:
        h.send("lines", "a x b y x", key="k", partition=1, timestamp=T0)
        h.run()
        letters = newest_letters(SETTINGS, h.log, h.clock)
    steps = [Step("Partition 1", TopicPartition("lines", 1), before, after, chosen=True)]
    found = warnings(letters, begin_of_steps(steps), sent_again(SETTINGS, go_back(steps)))
    assert is_told == any("3 dead letters wait whose records are read again" in line and "samzapy dlq discard JOB.yaml --all --execute" in line for line in found)
    assert is_told == bool(found)


def test_before_a_replay_it_is_said_what_windows_may_do_with_the_records() -> None:
    bad.add("x")
    with Harness(APP, tasks=1, on_error={"then": "dead_letter"}) as h:
        h.send("lines", "a x", key="k", timestamp=T0)
        h.run()
        bad.clear()
        letters = letters_of(h)
        plan = replay_of(letters, letters.read(), None, Filter())
        assert plan.late.startswith("1 of the records goes to a topic with event time. A window that no longer takes such a record drops it as too late:")
        letters.timed = frozenset()
        assert replay_of(letters, letters.read(), None, Filter()).late == ""
