"""A fatal error of the client, met while callbacks run: whatever shape it has there, it is told as one of ours."""

from __future__ import annotations

from collections import Counter

import pytest

from samzapy.api.errors import Fenced, InDoubt, TransactionAborted
from samzapy.kafka.producer import KafkaTransactionalProducer
from tests.broker import create_topic

pytestmark = pytest.mark.kafka
ROUNDS, PARTITIONS = 6, 6


def test_a_producer_that_is_fenced_amid_its_callbacks_says_so_in_our_words(
    kafka: str, unique: str, caplog: pytest.LogCaptureFixture
) -> None:
    topic = create_topic(kafka, unique, PARTITIONS)
    told: Counter[str] = Counter()
    for number in range(ROUNDS):
        old, new = (KafkaTransactionalProducer({"bootstrap.servers": kafka}, f"{unique}-{number}", 60_000) for _ in range(2))
        old.init()
        old.begin()
        for partition in range(PARTITIONS):
            old.send(topic, b"seen", b"k", partition)
        old.flush()
        new.init()
        for sent in range(10 * PARTITIONS):
            old.send(topic, b"late", b"k", sent % PARTITIONS, delivered=lambda offset: None)
        try:
            old.flush()
            old.commit()
        except (Fenced, InDoubt, TransactionAborted) as error:
            told[type(error).__name__] += 1
        old.close()
        new.close()

    assert ROUNDS == told.total(), told
    assert [] == caplog.messages


def test_the_next_call_raises_what_the_library_logged(kafka: str, unique: str) -> None:
    topic = create_topic(kafka, unique)
    old, new = (KafkaTransactionalProducer({"bootstrap.servers": kafka}, unique, 60_000) for _ in range(2))
    old.init()
    new.init()
    old.begin()
    old.send(topic, b"late", b"k", 0)
    for call in (old.flush, old.commit, old.abort):
        with pytest.raises((Fenced, InDoubt, TransactionAborted)):
            call()
    old.close()
    new.close()
