"""The plain client that other tests judge by, on the tests' own broker."""

from __future__ import annotations

import pytest
from confluent_kafka import Producer

from tests.broker import Record, create_topic, ends, produce, read_all, read_last, wait_for_records

pytestmark = pytest.mark.kafka


def test_what_was_produced_is_read_in_order(kafka: str, unique: str) -> None:
    create_topic(kafka, unique, 2)

    assert 3 == produce(kafka, unique, [("a", "1", 0), ("b", None, 1), (b"\x00", b"", 0)])

    found = [(r.partition, r.offset, r.key, r.value) for r in read_all(kafka, unique)]
    assert [(0, 0, b"a", b"1"), (0, 1, b"\x00", b""), (1, 0, b"b", None)] == found


def test_headers_and_timestamps_survive(kafka: str, unique: str) -> None:
    create_topic(kafka, unique)
    record = Record(0, 0, b"k", b"v", [("h", b"\x01"), ("h", b"")], 1_700_000_000_000)

    produce(kafka, unique, [record])

    assert [record] == read_all(kafka, unique)


def test_aborted_and_open_transactions_are_seen_only_uncommitted(kafka: str, unique: str) -> None:
    create_topic(kafka, unique)
    producer = Producer({"bootstrap.servers": kafka, "transactional.id": unique, "transaction.timeout.ms": 10_000})
    producer.init_transactions()
    for value, end in [(b"kept", producer.commit_transaction), (b"aborted", producer.abort_transaction)]:
        producer.begin_transaction()
        producer.produce(unique, value, b"k")
        producer.flush()
        end()
    assert [b"kept"] == [r.value for r in read_all(kafka, unique)]
    assert {0: 4} == ends(kafka, unique)

    producer.begin_transaction()
    producer.produce(unique, b"open", b"k")
    producer.flush()

    assert [b"kept"] == [r.value for r in read_all(kafka, unique)]
    assert [b"kept", b"aborted", b"open"] == [r.value for r in read_all(kafka, unique, "read_uncommitted")]
    assert ({0: 4}, {0: 5}) == (ends(kafka, unique), ends(kafka, unique, "read_uncommitted"))
    producer.abort_transaction()


def test_the_last_value_of_each_key(kafka: str, unique: str) -> None:
    create_topic(kafka, unique)

    produce(kafka, unique, [("a", "1"), ("b", "1"), ("a", "2"), ("b", None)])

    assert {b"a": b"2"} == read_last(kafka, unique)
    assert 4 == len(wait_for_records(kafka, unique, 4))
