"""Committed output followed while it grows."""

from __future__ import annotations

import json

import pytest

from tests.broker import create_topic, produce
from tests.recovery.outputs import Outputs, longest_gap_ms, wrong_numbers


def test_numbers_go_on_by_one() -> None:
    assert [] == wrong_numbers([], 7)
    assert [] == wrong_numbers([8, 9], 7)
    assert ["number 10 where 9 is expected"] == wrong_numbers([8, 10, 11], 7)
    assert ["number 8 where 9 is expected"] == wrong_numbers([8, 8, 9], 7)


def test_the_longest_gap_is_between_neighbours() -> None:
    assert 0 == longest_gap_ms([])
    assert 0 == longest_gap_ms([5])
    assert 30 == longest_gap_ms([50, 10, 20, 51])


@pytest.mark.kafka
def test_each_look_goes_on_where_the_last_one_stopped(kafka: str, unique: str) -> None:
    topic = create_topic(kafka, unique, 2)
    outputs = Outputs(kafka, topic)

    def write(partition: int, *numbers: int) -> None:
        produce(kafka, topic, [(None, json.dumps({"number": n})) for n in numbers], partition)

    assert [] == outputs.look()
    write(0, 1, 2)
    write(1, 1)
    assert [] == outputs.look()
    assert [] == outputs.look()
    write(0, 3, 5)
    write(1, 1)
    assert [f"{topic}[0]: number 5 where 4 is expected", f"{topic}[1]: number 1 where 2 is expected"] == outputs.look()
    assert {0: 4, 1: 2} == {p: len(times) for p, times in outputs.times_ms.items()}
