"""Where a batch ends that librdkafka cannot decompress.

Measured (librdkafka 2, tests/contract/test_log_unreadable.py): a batch whose records take more than `receive.message.max.bytes` when they
are decompressed is told as an error at the batch's first offset; the position stays before it, and the error comes again with each fetch. A
fetch from within the batch brings the same error. So the batch's end is the first offset from which a fetch brings anything else.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from confluent_kafka import Consumer, KafkaError
from confluent_kafka import TopicPartition as ClientPartition

from samzapy.api.errors import ClusterUnreachable
from samzapy.kafka.client import REQUEST_TIMEOUT_S, Settings, quiet
from samzapy.kafka.making import making
from samzapy.model.offsets import TopicPartition

CODES = frozenset({KafkaError._BAD_COMPRESSION})


def end_of_batch(settings: Settings, partition: TopicPartition, first: int, begin: int) -> int:
    """The first offset after the batch that begins at `first`; `begin` is an offset within it.

    Raises:
        ClusterUnreachable: a fetch brought nothing in 10 s.
    """
    probing = {"enable.partition.eof": True, "isolation.level": "read_uncommitted", "fetch.error.backoff.ms": 0}
    with making():
        consumer = Consumer(quiet({**settings, **probing}))
    try:
        return first_outside(begin, lambda offset: _is_within(consumer, partition, first, offset))
    finally:
        consumer.close()


def first_outside(begin: int, is_within: Callable[[int], bool]) -> int:
    """The first offset after `begin` (which is within) that is not within: in steps that double, then halve."""
    inside, step = begin, 1
    while is_within(inside + step):
        inside, step = inside + step, step * 2
    outside = inside + step
    while outside - inside > 1:
        middle = (inside + outside) // 2
        if is_within(middle):
            inside = middle
        else:
            outside = middle
    return outside


def _is_within(consumer: Any, partition: TopicPartition, first: int, offset: int) -> bool:
    consumer.assign([ClientPartition(*partition, offset)])
    deadline = time.monotonic() + REQUEST_TIMEOUT_S
    while time.monotonic() < deadline:
        message = consumer.poll(0.1)
        if message is None or message.topic() != partition.topic:
            continue
        error = message.error()
        if error is None or error.code() in (KafkaError._PARTITION_EOF, KafkaError.OFFSET_OUT_OF_RANGE, KafkaError._AUTO_OFFSET_RESET):
            return False
        if error.code() in CODES:
            return bool(message.offset() == first)
    raise ClusterUnreachable(
        f"looking for the end of a batch at {partition}@{first}: no answer in {REQUEST_TIMEOUT_S:.0f} s.", "Check the brokers."
    )
