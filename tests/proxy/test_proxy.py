"""The proxy between a plain client and a real broker: what it lets through, and what it makes go wrong."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest
from confluent_kafka import Producer

from samzapy.api.errors import ClusterUnreachable
from tests.broker import create_topic, ends, produce, read_all
from tests.proxy.faults import DelayReply, Hold, LoseReply, LoseRequest, Rule
from tests.proxy.proxy import KafkaProxy
from tests.proxy.wire import Api

pytestmark = pytest.mark.kafka
PRODUCE = frozenset({Api.PRODUCE})


@pytest.fixture
def proxy(kafka: str) -> Iterator[KafkaProxy]:
    with KafkaProxy(kafka) as made:
        yield made


def test_clients_stay_on_the_way_through_it(kafka: str, proxy: KafkaProxy, unique: str) -> None:
    create_topic(proxy.bootstrap_servers, unique, 3)
    produce(proxy.bootstrap_servers, unique, [(str(n), "v" * 10_000) for n in range(300)])

    assert 300 == len(read_all(proxy.bootstrap_servers, unique))
    assert read_all(kafka, unique) == read_all(proxy.bootstrap_servers, unique)
    assert {Api.METADATA, Api.PRODUCE, Api.FETCH, Api.CREATE_TOPICS} <= set(proxy.seen)


@pytest.mark.parametrize("fault", [LoseRequest(), LoseReply(), Hold(0.05), Hold(0.05, cut=True), DelayReply(0.05)], ids=str)
def test_an_idempotent_producer_gets_every_record_through_once(
    kafka: str, proxy: KafkaProxy, unique: str, fault: LoseRequest | LoseReply | Hold | DelayReply
) -> None:
    create_topic(kafka, unique)
    trap = proxy.place(Rule(fault, PRODUCE, times=3))
    producer = Producer(
        {"bootstrap.servers": proxy.bootstrap_servers, "enable.idempotence": True, "linger.ms": 0, "reconnect.backoff.max.ms": 100}
    )
    for n in range(20):
        producer.produce(unique, b"%d" % n)
        producer.flush()

    assert 3 == len(trap.caught)
    assert [b"%d" % n for n in range(20)] == [record.value for record in read_all(kafka, unique)]


def test_a_held_request_arrives_although_its_sender_has_gone(kafka: str, proxy: KafkaProxy, unique: str) -> None:
    create_topic(kafka, unique)
    held = proxy.place(Rule(Hold(), PRODUCE, times=1))
    producer = Producer({"bootstrap.servers": proxy.bootstrap_servers, "message.timeout.ms": 1000, "linger.ms": 0})
    producer.produce(unique, b"v")
    held.wait_caught()
    producer.purge()
    del producer
    assert {0: 0} == ends(kafka, unique)

    held.release()
    held.wait_answered()

    assert [b"v"] == [record.value for record in read_all(kafka, unique)]


def test_a_lost_reply_is_of_a_request_that_was_done(kafka: str, proxy: KafkaProxy, unique: str) -> None:
    create_topic(kafka, unique)
    lost = proxy.place(Rule(LoseReply(), PRODUCE))
    producer = Producer({"bootstrap.servers": proxy.bootstrap_servers, "message.timeout.ms": 5000, "linger.ms": 0, "retries": 0})
    producer.produce(unique, b"v")
    lost.wait_answered()
    producer.flush()

    assert [b"v"] == [record.value for record in read_all(kafka, unique)]


def test_connections_are_cut_and_refused_until_it_is_calm(kafka: str, proxy: KafkaProxy, unique: str) -> None:
    create_topic(kafka, unique)
    producer = Producer(
        {"bootstrap.servers": proxy.bootstrap_servers, "enable.idempotence": True, "linger.ms": 0, "reconnect.backoff.max.ms": 100}
    )
    producer.produce(unique, b"before")
    assert 0 == producer.flush(30)
    proxy.refuse()
    proxy.cut()
    producer.produce(unique, b"while")
    assert 1 == producer.flush(0.5)

    proxy.calm()

    assert 0 == producer.flush(30)
    assert [b"before", b"while"] == [record.value for record in read_all(kafka, unique)]


def test_what_is_not_kafka_is_shown_the_door(proxy: KafkaProxy) -> None:
    host, port = next(iter(proxy.addresses.values()))
    with socket.create_connection((host, port), timeout=30) as stranger:
        stranger.sendall(b"GET / HTTP/1.1\r\n\r\n")
        assert b"" == stranger.recv(1)


def test_a_wait_in_vain_says_for_what(proxy: KafkaProxy) -> None:
    with pytest.raises(TimeoutError, match=r"0 of 1 requests were struck by Rule.*LoseReply"):
        proxy.place(Rule(LoseReply())).wait_caught(limit_s=0.01)


def test_no_broker_no_proxy() -> None:
    with pytest.raises(ClusterUnreachable, match=r"127\.0\.0\.1:1\b"):
        KafkaProxy("127.0.0.1:1").start()
