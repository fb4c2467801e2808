"""Waiting until new partitions can be used.

A broker that was told of a topic shows all its partitions, each with a leader, before it has made them: 2,000 take it 20 s and more. Until then it
refuses what it is asked about them, the coordinator topic's one partition included if that was created last.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import Future
from typing import Any

from confluent_kafka import KafkaException

from samzapy.api.errors import NoLeader
from samzapy.kafka.client import MISSING, RETRY_S, UNREACHABLE
from samzapy.model.offsets import TopicPartition

PATIENCE_S = 60.0
TOLD_EVERY_S = 5.0
NAMED = 3
NOT_YET = UNREACHABLE | MISSING  # any other answer is not about whether the partition is there
LOG = logging.getLogger("samzapy.kafka")
Answers = Mapping[TopicPartition, Future[Any]]


def await_led(
    ask: Callable[[Collection[TopicPartition]], Answers], partitions: Iterable[TopicPartition],
    monotonic: Callable[[], float] = time.monotonic, sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Wait until each partition's broker answers for it; say in the log how far that is, every 5 s.

    Raises:
        NoLeader: for 60 s not one partition more.
    """
    left = sorted(partitions)
    total, told = len(left), monotonic() + TOLD_EVERY_S
    deadline = monotonic() + PATIENCE_S
    while still := sorted(p for p, answer in ask(left).items() if _is_not_yet(answer)):
        now = monotonic()
        if len(still) < len(left):
            deadline = now + PATIENCE_S
        elif now >= deadline:
            raise NoLeader(
                f"{len(still)} of {total} new partitions ({_some(still)}) cannot be used: for {PATIENCE_S:.0f} s no broker has answered for one more of them.",
                "See the brokers' logs. The topics are created: when the brokers are well, start the command again.",
            )
        if now >= told:
            LOG.info("Kafka makes %d new partitions ready: %d are; it still works on %s", total, total - len(still), _some(still))
            told = now + TOLD_EVERY_S
        left = still
        sleep(RETRY_S)


def _is_not_yet(answer: Future[Any]) -> bool:
    error = answer.exception()
    return isinstance(error, KafkaException) and error.args[0].code() in NOT_YET


def _some(partitions: Collection[TopicPartition]) -> str:
    named = ", ".join(str(p) for p in list(partitions)[:NAMED])
    return named if len(partitions) <= NAMED else f"{named} and {len(partitions) - NAMED} more"
