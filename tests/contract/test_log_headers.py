"""Headers that the client cannot read: Kafka takes any bytes as a header's name, the client only UTF-8. On both logs."""

from __future__ import annotations

import pytest

from samzapy.api.envelope import headers_of
from samzapy.api.errors import SerdeError
from samzapy.model.offsets import TopicPartition
from samzapy.ports import Consumer, Log
from tests.contract.log_worlds import World, take


def test_a_header_whose_name_is_not_utf_8_is_an_error_of_its_record_and_of_no_other(
    world: World, log: Log, topic: str, consumer: Consumer
) -> None:
    place = TopicPartition(topic, 0)
    world.send_with_bad_header(place, b"bad")
    producer = log.plain_producer("p")
    producer.send(topic, b"good", None, 0, headers=[("é", b"1")])
    producer.flush()
    consumer.assign({place: 0})
    bad, good = take(consumer, 2)
    assert (b"bad", b"good") == (bad.value(), good.value())
    with pytest.raises(SerdeError, match=r"\[0\]@0 cannot be read: the name of one is not UTF-8"):
        headers_of(bad)
    assert [("é", b"1")] == headers_of(good)
