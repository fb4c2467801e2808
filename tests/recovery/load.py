"""A steady load: keyed records over all partitions, at a rate, the same for the same seed, from a thread until it is stopped.

Every partition gets records all the time, so that each task has something to commit soon after a fault. A key belongs to one partition. Some
values are missing (a tombstone is a record too), and some keys as well.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from confluent_kafka import KafkaError, Message, Producer

from tests.beside import Beside

TICK_S = 0.01
LIMIT_S = 60.0
DELIVERY_MS = 600_000  # brokers may be away for as long as a fault lasts


class Made(NamedTuple):
    key: bytes | None
    value: bytes | None
    partition: int


def records(seed: int, keys: int, partitions: int) -> Iterator[Made]:
    """Without end. One in 50 has no value, one in 50 no key."""
    chance = random.Random(seed)
    number = 0
    while True:
        key = chance.randrange(max(keys, partitions))
        kind = chance.randrange(50)
        yield Made(
            None if kind == 1 else f"key-{key}".encode(),
            None if kind == 0 else f"{number}:{chance.getrandbits(64):x}".encode(),
            key % partitions,
        )
        number += 1


class Load(Beside):
    """Produces `rate` records a second to `topic` while the block is open; `stop` ends it earlier and tells of failures."""

    def __init__(self, servers: str, topic: str, partitions: int, rate: float, keys: int, seed: int) -> None:
        super().__init__("load")
        self._topic, self._rate = topic, rate
        self._records = records(seed, keys, partitions)
        self._producer = Producer(
            {"bootstrap.servers": servers, "enable.idempotence": True, "linger.ms": 5, "log_level": 0, "delivery.timeout.ms": DELIVERY_MS}
        )
        self._failures: list[KafkaError] = []
        self._failure: Exception | None = None
        self.sent: Counter[int] = Counter()
        self.began = 0.0  # by the monotonic clock

    def stop(self) -> dict[int, int]:
        """Until the broker has everything: how many records each partition was given.

        Raises:
            AssertionError: some were not delivered. What ended the thread, if something did.
        """
        self._end()
        if self._failure is not None:
            raise self._failure
        left = self._producer.flush(LIMIT_S)
        if left or self._failures:
            raise AssertionError(f"{self._topic}: {left} records not acknowledged, {len(self._failures)} failed {self._failures[:1]}")
        return dict(self.sent)

    def _run(self) -> None:
        began, count = time.monotonic(), 0
        self.began = began
        try:
            while not self._stopping.wait(TICK_S):
                due = int((time.monotonic() - began) * self._rate)
                while count < due and not self._stopping.is_set():
                    self._send(next(self._records))
                    count += 1
                self._producer.poll(0)
        except Exception as failure:
            self._failure = failure  # told by `stop`

    def _send(self, made: Made) -> None:
        while True:
            try:
                self._producer.produce(self._topic, made.value, made.key, made.partition, on_delivery=self._delivered)
                break
            except BufferError:
                self._producer.poll(0.1)
        self.sent[made.partition] += 1

    def _delivered(self, error: KafkaError | None, _: Message) -> None:
        if error is not None:
            self._failures.append(error)
