"""Producers, in memory and real, through generated sequences of calls, against the one model of what the ports promise.

Compared after each call: whether it raised, and what; at the end: which records can be read. In memory all orders of four and a sample of
up to eight; on a real broker some fifty, and all orders of three and more under `prove`.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from random import Random

import pytest

from samzapy.api.errors import InDoubt, LogError
from samzapy.ports import Log, PlainProducer, TransactionalProducer
from samzapy.testing.memory_log import Chance
from tests.contract.conftest import TARDY, TARDY_S
from tests.contract.log_worlds import KafkaWorld, MemoryWorld, new_topic, until, values

CALLS = ("init", "begin", "send", "flush", "commit", "abort", "close")
PLAIN_CALLS = ("send", "poll", "flush", "close")
BEGUN = ("init", "begin")
SIDE_BY_SIDE = 6

DIFFERED = {
    "sent before a transaction, and lost": ("init", "send", "begin", "commit"),
    "sent after a commit, and lost": (*BEGUN, "send", "commit", "send", "begin", "send", "commit"),
    "flushed outside a transaction": ("init", "flush"),
    "initialised twice": ("init", "init", "begin", "send", "commit"),
    "closed twice": (*BEGUN, "send", "close", "close"),
    "closed, then used": ("init", "close", "begin", "send", "flush", "commit", "abort", "init"),
}


class Model:
    """What must hold of a transactional producer.

    Attributes:
        state: new, ready, open (a transaction), aborted (a new producer is needed: what it does is left open), closed.
    """

    def __init__(self) -> None:
        self.state = "new"
        self.pending: list[bytes] = []
        self.committed: list[bytes] = []

    def call(self, name: str, value: bytes) -> type[LogError] | None:
        """What it raises."""
        if name == "close":
            self.state = "closed"
        elif name == "init" and self.state in ("ready", "open"):
            return LogError
        elif (name, self.state) not in {("init", "new"), ("begin", "ready"), *((c, "open") for c in ("send", "flush", "commit", "abort"))}:
            return InDoubt
        elif name == "send":
            self.pending.append(value)
        elif name != "flush":
            self.state = {"init": "ready", "begin": "open", "commit": "ready", "abort": "aborted"}[name]
            self.committed += self.pending if name == "commit" else []
            self.pending = []
        return None


def _drawn(count: int, seed: int) -> list[tuple[str, ...]]:
    chance = Random(seed)
    return [(*BEGUN, *chance.choices((*CALLS[1:-1], "send"), k=chance.randint(2, 6))) for _ in range(count)]


def _differs(log: Log, topic: str, calls: Sequence[str], number: int) -> tuple[str, list[bytes]]:
    """How a producer did not do as promised ("" if it did), and the values that it must have committed."""
    model, producer = Model(), log.transactional_producer(f"{topic}-{number}")
    try:
        for at, name in enumerate(calls):
            if model.state == "aborted":
                break
            value = b"%d/%d" % (number, at)
            wanted, found = model.call(name, value), _raised(producer, name, topic, value)
            if found is not wanted:
                return f"{calls}: call {at} ({name}) raised {found}, not {wanted}", []
        return "", model.committed
    finally:
        producer.close()


def _raised(producer: TransactionalProducer | PlainProducer, name: str, topic: str, value: bytes) -> type[Exception] | None:
    try:
        getattr(producer, name)(*((topic, value, b"k", 0) if name == "send" else ()))
    except Exception as error:
        return type(error)
    return None


def _check(log: Log, sequences: Sequence[Sequence[str]], hands: int) -> None:
    topic = new_topic(log, 1)
    with ThreadPoolExecutor(hands) as pool:
        answers = list(pool.map(lambda one: _differs(log, topic, one[1], one[0]), enumerate(sequences)))
    assert [] == [found for found, _ in answers if found]
    for number in range(len(sequences)):  # what was left open is decided, so that all can be read
        following = log.transactional_producer(f"{topic}-{number}")
        if "begin" in sequences[number]:
            following.init()
        following.close()
    expected = sorted(value for _, committed in answers for value in committed)
    assert expected == sorted(v or b"" for v in values(log, topic, count=len(expected)))


def test_in_memory_all_orders_of_four_and_longer_ones_do_as_the_port_says() -> None:
    _check(MemoryWorld().log, [*DIFFERED.values(), *product(CALLS, repeat=4), *_drawn(1000, seed=1)], 1)


def test_in_memory_where_markers_take_their_time_a_sample_does_as_the_port_says() -> None:
    _check(MemoryWorld(Chance(1, TARDY, TARDY_S)).log, [*DIFFERED.values(), *_drawn(20, seed=1)], 1)


@pytest.mark.kafka
def test_in_kafka_what_once_differed_and_a_sample_do_as_the_port_says(kafka: str) -> None:
    _check(KafkaWorld(kafka).log, [*DIFFERED.values(), *_drawn(40, seed=2)], SIDE_BY_SIDE)


@pytest.mark.kafka
@pytest.mark.prove
def test_in_kafka_all_orders_of_three_and_longer_ones_do_as_the_port_says(kafka: str) -> None:
    _check(KafkaWorld(kafka).log, [*product(CALLS, repeat=3), *_drawn(200, seed=3)], SIDE_BY_SIDE)


def _plain_differs(log: Log, topic: str, calls: Sequence[str], number: int) -> tuple[str, list[bytes]]:
    """As `_differs`, for a plain producer: what was flushed is there; what was closed before is left open."""
    producer, is_closed = log.plain_producer("sequence"), False
    queued: list[bytes] = []
    flushed: list[bytes] = []
    try:
        for at, name in enumerate(calls):
            value = b"%d/%d" % (number, at)
            found = _raised(producer, name, topic, value)
            if found is not (InDoubt if is_closed and name != "close" else None):
                return f"{calls}: call {at} ({name}) raised {found}", []
            is_closed = is_closed or name == "close"
            if name == "send" and not is_closed:
                queued.append(value)
            elif name == "flush" and not is_closed:
                flushed += queued
                queued = []
        return "", flushed
    finally:
        producer.close()


def _check_plain(log: Log, sequences: Sequence[Sequence[str]], hands: int) -> None:
    topic = new_topic(log, 1)
    with ThreadPoolExecutor(hands) as pool:
        answers = list(pool.map(lambda one: _plain_differs(log, topic, one[1], one[0]), enumerate(sequences)))
    assert [] == [found for found, _ in answers if found]
    expected = {value for _, flushed in answers for value in flushed}
    until(lambda: expected <= set(values(log, topic)))
    assert expected <= set(values(log, topic))


def test_plain_producers_in_memory_do_as_the_port_says() -> None:
    _check_plain(MemoryWorld().log, [s for length in (2, 3, 4) for s in product(PLAIN_CALLS, repeat=length)], 1)


@pytest.mark.kafka
def test_plain_producers_in_kafka_do_as_the_port_says(kafka: str) -> None:
    _check_plain(KafkaWorld(kafka).log, list(product(PLAIN_CALLS, repeat=3)), SIDE_BY_SIDE)
