"""Waiting until new partitions can be used.

A broker that was told of a topic shows all its partitions, each with a leader, before it has made them: 2,000 take it 20 s and more. Until then it
refuses what it is asked about them, the coordinator topic's one partition included if that was created last.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, TypeVar

from confluent_kafka import KafkaError, KafkaException

from samzapy.api.errors import NoLeader
from samzapy.kafka.client import RETRY_S
from samzapy.kafka.errors import MISSING, NEW_LEADER, UNREACHABLE
from samzapy.model.offsets import TopicPartition

PATIENCE_S = 60.0
TOLD_EVERY_S = 5.0
FIRST_WAIT_S = 0.01  # one partition is mostly there by then
NAMED = 3
NOT_LED = NEW_LEADER | {KafkaError.NOT_LEADER_FOR_PARTITION}
NOT_YET = UNREACHABLE | MISSING  # any other answer is not about whether the partition is there
LOG = logging.getLogger("samzapy.kafka")
P = TypeVar("P")
Answers = Mapping[P, Future[Any]]


def await_led(
    ask: Callable[[Collection[TopicPartition]], Answers[TopicPartition]], partitions: Iterable[TopicPartition],
    monotonic: Callable[[], float] = time.monotonic, sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Wait until each partition's broker answers for it.

    Raises:
        NoLeader: for 60 s not one partition more.
    """
    left = sorted(partitions)
    patience, wait_s = _Patience(len(left), monotonic, PATIENCE_S), FIRST_WAIT_S
    while still := sorted(p for p, answer in ask(left).items() if _code(answer) in NOT_YET):
        if not patience.lasts(still):
            raise NoLeader(
                f"{len(still)} of {patience.total} new partitions ({_some(still)}) cannot be used: "
                f"none of them became ready within {PATIENCE_S:.0f} s.",
                "See the brokers' logs. The topics are created: when the brokers are well, start the command again.",
            )
        left = still
        sleep(wait_s)
        wait_s = min(2 * wait_s, RETRY_S)


def once_led(
    ask: Callable[[], Answers[P]], patience_s: float = PATIENCE_S, monotonic: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Answers[P]:
    """The answers about partitions. Those of a topic that was just made, or that move, may be refused because their broker does not lead them yet:
    then all are asked for again, until for `patience_s` there is not one more."""
    answers = ask()
    patience = _Patience(len(answers), monotonic, patience_s)
    while still := [p for p, answer in answers.items() if _code(answer) in NOT_LED]:
        if not patience.lasts(still):
            break
        sleep(RETRY_S)
        answers = ask()
    return answers


class _Patience:
    """As long as brokers get on with it; how far they are is in the log every 5 s."""

    def __init__(self, total: int, monotonic: Callable[[], float], patience_s: float) -> None:
        self.total = self._fewest = total
        self._monotonic, self._patience_s = monotonic, patience_s
        self._deadline, self._told = monotonic() + patience_s, monotonic()

    def lasts(self, still: Sequence[Any]) -> bool:
        """Whether to ask again. `still`: the partitions that are not there yet."""
        now = self._monotonic()
        if len(still) < self._fewest:
            self._fewest, self._deadline = len(still), now + self._patience_s
        if now >= self._deadline:
            return False
        if now - self._told >= TOLD_EVERY_S:
            LOG.info("Kafka makes %d new partitions ready: %d are; it still works on %s", self.total, self.total - len(still), _some(still))
            self._told = now
        return True


def _code(answer: Future[Any]) -> int | None:
    error = answer.exception()
    return error.args[0].code() if isinstance(error, KafkaException) else None


def _some(partitions: Sequence[Any]) -> str:
    named = ", ".join(f"{p.topic}[{p.partition}]" for p in partitions[:NAMED])
    return named if len(partitions) <= NAMED else f"{named} and {len(partitions) - NAMED} more"
