"""Consumers, in memory and real, through generated sequences of operations, against the one model of what the port promises.

In memory: all orders of three, and a sample of up to eight. On a real broker: some fifty; two thousand under `prove`. A sequence
that ever differed stays here by name.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from samzapy.ports import Log
from samzapy.testing.memory_log import Chance
from tests.contract.conftest import TARDY, TARDY_S
from tests.contract.consumer_model import FAR, Operation, differs, drawn, fill, of_three
from tests.contract.log_worlds import KafkaWorld, MemoryWorld, new_topic

QUIET_S = 0.15
SIDE_BY_SIDE = 8

# what each found: see the name
DIFFERED: dict[str, tuple[Operation, ...]] = {
    "a pause outlived the assignment": (("assign", 0, 0), ("all",), ("pause", 0), ("unassign", 0), ("assign", 0, 1), ("all",)),
    "a pause outlived a seek": (("assign", 0, 0), ("pause", 0), ("seek", 0, 6), ("all",)),
    "a pause came before the assignment": (("pause", 0), ("assign", 0, 0), ("all",)),
    "a pause between two assignments": (("assign", 0, 0), ("unassign", 0), ("pause", 0), ("assign", 0, 0), ("all",)),
    "a second assignment moved the first": (("assign", 0, 0), ("assign", 0, 1), ("all",)),
    "a closed consumer could be assigned": (("assign", 0, 0), ("close",), ("assign", 0, 0)),
    "a closed consumer could be polled": (("close",), ("all",)),
    "a closed consumer told positions": (("assign", 0, 0), ("close",), ("position", 0)),
    "a closed consumer refused a pause": (("assign", 0, 0), ("close",), ("pause", 0), ("resume", 0), ("unassign", 0), ("seek", 0, 0)),
    "out of range, and back": (("assign", 0, FAR), ("all",), ("seek", 0, 0), ("all",)),
    "records that came with what is out of range were lost": (("assign", 1, 0), ("assign", 0, FAR), ("all",)),
    "what an earlier assignment met was told after a seek": (("assign", 0, FAR), ("seek", 0, 6), ("all",)),
    "paused out of range": (("assign", 0, FAR), ("pause", 0), ("all",), ("resume", 0), ("all",), ("unassign", 0), ("assign", 0, 0)),
}


def _filled(log: Log) -> str:
    topic = new_topic(log)
    fill(log, topic)
    return topic


@pytest.fixture(scope="module")
def in_kafka(kafka: str) -> tuple[Log, str]:
    log = KafkaWorld(kafka).log
    return log, _filled(log)


def _all_on_kafka(world: tuple[Log, str], sequences: Sequence[Sequence[Operation]]) -> list[str]:
    log, topic = world
    with ThreadPoolExecutor(SIDE_BY_SIDE) as hands:  # each waits most of its time
        return [found for found in hands.map(lambda s: differs(log, topic, s, QUIET_S), sequences) if found]


def _differ_in_memory(world: MemoryWorld, sequences: Sequence[Sequence[Operation]]) -> list[str]:
    topic = _filled(world.log)
    return [found for s in sequences if (found := differs(world.log, topic, s, quiet_s=0.0))]


def test_in_memory_all_orders_of_three_and_longer_ones_do_as_the_port_says() -> None:
    assert [] == _differ_in_memory(MemoryWorld(), [*DIFFERED.values(), *of_three(), *drawn(2000, seed=1)])


def test_in_memory_where_fetches_take_their_time_a_sample_does_as_the_port_says() -> None:
    assert [] == _differ_in_memory(MemoryWorld(Chance(1, TARDY, TARDY_S)), [*DIFFERED.values(), *drawn(40, seed=1)])


@pytest.mark.kafka
@pytest.mark.parametrize("name", DIFFERED)
def test_what_once_differed_in_kafka_does_not(in_kafka: tuple[Log, str], name: str) -> None:
    assert "" == differs(*in_kafka, DIFFERED[name], QUIET_S)


@pytest.mark.kafka
def test_a_sample_in_kafka_does_as_the_port_says(in_kafka: tuple[Log, str]) -> None:
    assert [] == _all_on_kafka(in_kafka, drawn(50, seed=2))


@pytest.mark.kafka
@pytest.mark.prove
def test_many_in_kafka_do_as_the_port_says(in_kafka: tuple[Log, str]) -> None:
    assert [] == _all_on_kafka(in_kafka, [*random.Random(4).sample(of_three(), 1500), *drawn(500, seed=3)])
