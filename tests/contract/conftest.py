"""Each probe of the log runs in memory, in memory with markers and fetches that take their time, and on a real broker."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from samzapy.ports import Consumer, Log, TransactionalProducer
from samzapy.testing.memory_log import Chance
from tests.contract.log_worlds import KafkaWorld, MemoryWorld, World, new_topic

TARDY = {"marker.late": 0.7, "linger": 0.3, "fetch.empty": 0.2, "fetch.short": 0.3, "timeout.late": 0.5}
TARDY_S = {"marker.late": 0.05, "timeout.late": 0.5}


@pytest.fixture(params=["memory", "tardy", pytest.param("kafka", marks=pytest.mark.kafka)])
def world(request: pytest.FixtureRequest) -> World:
    if request.param == "kafka":
        return KafkaWorld(request.getfixturevalue("kafka"))
    return MemoryWorld(Chance(1, TARDY, TARDY_S) if request.param == "tardy" else None)


@pytest.fixture
def log(world: World) -> Log:
    return world.log


@pytest.fixture
def topic(log: Log) -> str:
    return new_topic(log)


@pytest.fixture
def producer(log: Log, topic: str) -> Iterator[TransactionalProducer]:
    made = log.transactional_producer(topic)
    made.init()
    yield made
    made.close()


@pytest.fixture
def consumer(log: Log) -> Iterator[Consumer]:
    made = log.restore_consumer("probe")
    yield made
    made.close()
