"""An InitProducerId that arrives late, after its sender gave up on it and asked again: it fences the very producer that it was meant to make."""

from __future__ import annotations

import pytest

from samzapy.api.errors import Fenced
from samzapy.kafka.producer import KafkaTransactionalProducer
from tests.broker import create_topic, read_all
from tests.proxy.faults import Hold, Rule
from tests.proxy.proxy import KafkaProxy
from tests.proxy.wire import Api

pytestmark = pytest.mark.kafka


def test_an_init_that_comes_late_fences_the_producer_that_it_was_meant_to_make(kafka: str, unique: str) -> None:
    create_topic(kafka, unique)
    with KafkaProxy(kafka) as proxy:
        held = proxy.place(Rule(Hold(cut=True), frozenset({Api.INIT_PRODUCER_ID}), unique, times=1))
        settings = {"bootstrap.servers": proxy.bootstrap_servers, "retry.backoff.ms": 10}
        producer = KafkaTransactionalProducer(settings, unique, 20_000)
        producer.init()  # the second request was answered
        producer.begin()
        producer.send(unique, b"nobody else is there", b"k", 0)
        producer.flush()
        held.release()
        held.wait_answered()
        with pytest.raises(Fenced):
            producer.commit()
        producer.close()

        again = KafkaTransactionalProducer(settings, unique, 20_000)  # what its owner does: a new producer, and look who owns the job
        again.init()
        again.begin()
        again.send(unique, b"goes on", b"k", 0)
        again.flush()
        again.commit()
        again.close()

    assert [b"goes on"] == [record.value for record in read_all(kafka, unique)]
