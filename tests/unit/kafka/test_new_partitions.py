"""New partitions: their broker refuses what it is asked about them until it has made them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from concurrent.futures import Future
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from samzapy.api.errors import NoLeader
from samzapy.kafka.new_partitions import PATIENCE_S, await_led, once_led
from samzapy.model.offsets import TopicPartition
from samzapy.testing.manual_clock import ManualClock

PLACES = [TopicPartition("t", n) for n in range(200)]


def broker(ready_at: Callable[[int], float], clock: ManualClock, seen: list[int], code: int = KafkaError.NOT_LEADER_FOR_PARTITION) -> Any:
    """Answers for a partition from a time on. `seen`: gets how many were asked for, each time."""

    def ask(left: Collection[TopicPartition]) -> dict[TopicPartition, Future[Any]]:
        seen.append(len(left))
        found: dict[TopicPartition, Future[Any]] = {p: Future() for p in left}
        for place, future in found.items():
            if clock.monotonic() >= ready_at(place.partition):
                future.set_result(0)
            else:
                future.set_exception(KafkaException(KafkaError(code)))
        return found

    return ask


@pytest.mark.parametrize("code", [KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._TIMED_OUT])
def test_they_are_waited_for_as_long_as_there_are_more_of_them(code: int, caplog: pytest.LogCaptureFixture) -> None:
    clock, seen = ManualClock(), list[int]()
    began = clock.monotonic()
    with caplog.at_level(logging.INFO, "samzapy.kafka"):
        await_led(broker(lambda n: began + n / 2, clock, seen, code), PLACES, clock.monotonic, lambda _: clock.advance(4.0))
    assert (200, sorted(seen, reverse=True)) == (seen[0], seen)
    assert clock.monotonic() - began > PATIENCE_S
    assert any("Kafka makes 200 new partitions ready: " in line and " and " in line for line in caplog.messages)


def test_the_ends_of_partitions_are_waited_for_as_long() -> None:
    clock = ManualClock()
    began = clock.monotonic()
    some = broker(lambda n: began + n / 2, clock, [])
    answers = once_led(lambda: some(PLACES), PATIENCE_S, clock.monotonic, lambda _: clock.advance(4.0))
    assert ([0] * len(PLACES), True) == ([a.result() for a in answers.values()], clock.monotonic() - began > PATIENCE_S)
    never = broker(lambda _: float("inf"), clock, [])
    assert all(a.exception() for a in once_led(lambda: never(PLACES), PATIENCE_S, clock.monotonic, lambda _: clock.advance(4.0)).values())


def test_it_ends_when_there_is_not_one_more() -> None:
    clock = ManualClock()
    ask = broker(lambda n: 0.0 if n < 190 else float("inf"), clock, [])
    said = r"10 of 200 new partitions \(t\[190\], t\[191\], t\[192\] and 7 more\) cannot be used: none of them became ready within 60 s"
    with pytest.raises(NoLeader, match=said):
        await_led(ask, PLACES, clock.monotonic, lambda _: clock.advance(1.0))


def test_another_answer_is_not_waited_for() -> None:
    clock, seen = ManualClock(), list[int]()
    await_led(broker(lambda _: float("inf"), clock, seen, KafkaError.TOPIC_AUTHORIZATION_FAILED), PLACES[:2], clock.monotonic, lambda _: None)
    assert seen == [2]
