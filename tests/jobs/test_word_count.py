"""The word count against a direct count: one pass, crashes, restarts, and whatever hypothesis comes up with."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobs.word_count import count_words, records, sentences, words
from samzapy.testing import Harness

JOB = Path(__file__).parents[2] / "config" / "word-count.yaml"
TASKS = 2
EVENTS = ("nothing", "run", "step", "crash", "crash without state", "restart")


def test_words_are_cut_at_white_space_and_freed_of_punctuation() -> None:
    assert ["the", "well-known", "don't", "strasse", "3.14"] == words("\"The well-known, don't — Straße (3.14)!")
    assert ["नमस्ते", "łódź"] == words("नमस्ते, „Łódź”")
    assert [] == words(" \t — ...\n")


def test_sentences_are_the_same_for_a_seed() -> None:
    assert list(sentences(50, seed=7)) == list(sentences(50, seed=7))
    assert list(sentences(50, seed=7)) != list(sentences(50, seed=8))
    assert [(None, s.encode()) for s in sentences(3, seed=7)] == list(records(3, seed=7))
    assert Counter({"the": 2, "end": 1}) == count_words(["The end.", "the"])


def test_each_word_emits_an_update() -> None:
    with Harness(JOB) as h:
        h.send("sentences", value="The fox. The end")
        h.run()
        assert [("end", 1), ("fox", 1), ("the", 1), ("the", 2)] == sorted(h.output("word-counts"))
        assert {"end": 1, "fox": 1, "the": 2} == h.store("counts", task=0)


def test_a_tombstone_and_an_empty_sentence_count_nothing() -> None:
    with Harness(JOB) as h:
        h.send("sentences", value=None)
        h.send("sentences", value="")
        h.run()
        assert [] == h.output("word-counts")
        assert {} == h.store("counts", task=0)


@pytest.mark.parametrize("guarantee", ["exactly_once", "at_least_once"])
@pytest.mark.parametrize("between", ["nothing", "crash", "crash without state", "restart"])
def test_both_halves_agree_with_a_direct_count(guarantee: str, between: str) -> None:
    lines = list(sentences(400, seed=3))
    with Harness(JOB, tasks=TASKS, sets=[f"commit.guarantee={guarantee}"]) as h:
        feed(h, lines[:200])
        h.run()
        happen(h, between)
        feed(h, lines[200:])
        h.run()
        agrees(h, lines)


def test_what_a_crash_catches_uncommitted_is_counted_once() -> None:
    lines = list(sentences(100, seed=4))
    with Harness(JOB, tasks=TASKS) as h:
        feed(h, lines)
        assert h.container.step(0.0)
        assert [] == h.output("word-counts")
        h.crash()
        h.run()
        agrees(h, lines)


def test_a_bounded_run_ends_with_everything_counted() -> None:
    lines = list(sentences(100, seed=5))
    with Harness(JOB, tasks=TASKS) as h:
        feed(h, lines)
        h.end()
        agrees(h, lines)


@settings(max_examples=20, deadline=None)
@given(st.lists(st.tuples(st.text(max_size=30), st.sampled_from(EVENTS)), max_size=8))
def test_any_texts_with_anything_in_between(story: list[tuple[str, str]]) -> None:
    with Harness(JOB, tasks=TASKS) as h:
        for number, (text, then) in enumerate(story):
            h.send("sentences", value=text, partition=number % TASKS)
            happen(h, then)
        h.run()
        agrees(h, [text for text, _ in story])


def feed(h: Harness, lines: list[str]) -> None:
    for number, line in enumerate(lines):
        h.send("sentences", value=line, partition=number % TASKS)


def happen(h: Harness, what: str) -> None:
    if what == "run":
        h.run()
    elif what == "step":
        h.container.step(0.0)
    elif what == "restart":
        h.restart()
    elif what.startswith("crash"):
        h.crash(keep_state=what == "crash")


def agrees(h: Harness, lines: list[str]) -> None:
    """One update per word; the stores add up to the direct count; the updates of a word are 1, 2, 3, … of each task."""
    expected = count_words(lines)
    output = h.output("word-counts")
    assert expected == Counter(word for word, _ in output)
    stores = [h.store("counts", task) for task in range(TASKS)]
    assert expected == sum((Counter(store) for store in stores), Counter())
    updates = Counter((word, n) for store in stores for word, count in store.items() for n in range(1, count + 1))
    assert updates == Counter(output)
