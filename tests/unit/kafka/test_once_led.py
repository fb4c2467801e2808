"""Partitions that were just made: their broker does not lead them yet, and does in a moment."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from samzapy.api.errors import ClusterUnreachable
from samzapy.kafka.admin import result_of
from samzapy.kafka.new_partitions import once_led


def answers(*codes: int | None) -> dict[int, Future[Any]]:
    """By partition; None: it is there."""
    found: dict[int, Future[Any]] = {}
    for partition, code in enumerate(codes):
        found[partition] = Future()
        if code is None:
            found[partition].set_result(7)
        else:
            found[partition].set_exception(KafkaException(KafkaError(code)))
    return found


def test_they_are_asked_for_again_until_they_are_led() -> None:
    told = iter([answers(None, KafkaError.OFFSET_NOT_AVAILABLE), answers(KafkaError.NOT_LEADER_FOR_PARTITION, None), answers(None, None)])
    found = once_led(lambda: next(told))
    assert [7, 7] == [result_of(future, "the end") for future in found.values()]


@pytest.mark.parametrize(("code", "patience_s"), [(KafkaError.NOT_LEADER_FOR_PARTITION, 0.0), (KafkaError.BROKER_NOT_AVAILABLE, 60.0)])
def test_what_lasts_and_what_is_another_matter_is_told(code: int, patience_s: float) -> None:
    told = iter([answers(code)])
    found = once_led(lambda: next(told), patience_s)
    with pytest.raises(ClusterUnreachable):
        result_of(found[0], "the end")
