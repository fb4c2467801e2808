"""The feeder: lines become records, example topics are made and filled."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from jobs import page_views, word_count
from jobs.feed import create_topic, generated, main, records_of_lines, send
from tests.broker import create_topic as make_topic
from tests.broker import read_all

ROOT = Path(__file__).parents[2]


def test_a_line_is_a_value_or_a_key_a_tab_and_a_value() -> None:
    lines = ["ada\t/home\n", "just a value\r\n", "\ta\tb"]
    assert [(b"ada", b"/home"), (None, b"just a value"), (b"", b"a\tb")] == list(records_of_lines(lines))


@pytest.mark.parametrize("topic", ["sentences", "wikipedia-feed", "users", "page-views"])
def test_each_example_topic_has_records(topic: str) -> None:
    found = list(generated(topic, 40, seed=1))
    assert len(found) >= 40
    assert any(value for _, value in found)


@pytest.mark.kafka
def test_records_arrive_once_and_keys_keep_their_partition(kafka: str, unique: str) -> None:
    partitions = create_topic(kafka, unique, 3)
    expected = list(page_views.users(50, seed=1))
    assert len(expected) == send(kafka, unique, partitions, expected)
    found = read_all(kafka, unique)
    assert Counter(expected) == Counter((r.key, r.value) for r in found)
    assert len({r.key for r in found}) == len({(r.key, r.partition) for r in found})


@pytest.mark.kafka
def test_a_topic_that_is_there_keeps_its_partitions_and_keyless_records_go_round(kafka: str, unique: str) -> None:
    make_topic(kafka, unique, 2)
    partitions = create_topic(kafka, unique, 5)
    assert 2 == partitions
    send(kafka, unique, partitions, word_count.records(100, seed=1))
    assert {0: 50, 1: 50} == Counter(r.partition for r in read_all(kafka, unique))


def test_nobody_there_is_one_line_and_exit_code_4(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jobs.feed.TIMEOUT_S", 0.5)
    monkeypatch.setattr(sys, "argv", ["feed", "sentences", "--kafka", "127.0.0.1:1"])
    assert 4 == main()


def test_lines_need_a_topic() -> None:
    result = subprocess.run([sys.executable, "-m", "jobs.feed", "lines"], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert 2 == result.returncode
    assert "--topic" in result.stderr
