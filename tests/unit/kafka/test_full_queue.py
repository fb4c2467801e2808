"""A producer whose queue has no room for long."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from samzapy.kafka.plain_producer import KafkaPlainProducer
from samzapy.kafka.producer import KafkaTransactionalProducer


class FullFor:
    """A client whose queue has no room so many times."""

    def __init__(self, times: int) -> None:
        self.left, self.taken = times, 0

    def __len__(self) -> int:
        return 1

    def poll(self, _: float) -> int:
        return 0

    def produce(self, *_: Any, **__: Any) -> None:
        self.left -= 1
        if self.left >= 0:
            raise BufferError
        self.taken += 1


@pytest.mark.parametrize("make", [lambda: KafkaTransactionalProducer({}, "t", 20_000), lambda: KafkaPlainProducer({}, "t", 20_000)])
def test_a_queue_may_stay_full_for_as_long_as_the_brokers_are_away(make: Callable[[], Any]) -> None:
    """2,000 attempts take more than three minutes in earnest."""
    producer, client = make(), FullFor(2000)
    producer._producer.flush(0)
    producer._producer, producer._produce = client, client.produce

    producer.send("t", b"v", b"k", 0)

    assert (1, -1) == (client.taken, client.left)
