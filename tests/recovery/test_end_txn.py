"""A commit's EndTxn that arrives late: after its sender gave up on it, sent it again, and went on with the next transaction.

librdkafka has no KIP-890 part 2, so the late EndTxn carries the same producer epoch as the next transaction, and the broker takes it for
that one's. The naive client shows that this happens; samzapy's producer, used as a container uses it, must not let it. `SAMZAPY_TEST_ROUNDS`
says how often each is tried (3).
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator

import pytest
from confluent_kafka import Producer

from samzapy.clock import SystemClock
from samzapy.container.ownership import Ownership
from samzapy.container.transaction import Transaction
from samzapy.kafka.log import KafkaLog
from samzapy.model.names import Job
from samzapy.model.ownership import ContainerRecord, container_key
from tests.broker import create_topic, produce, read_all
from tests.proxy.faults import Hold, Rule
from tests.proxy.proxy import KafkaProxy, Trap
from tests.proxy.wire import Api

pytestmark = pytest.mark.kafka
ROUNDS = int(os.environ.get("SAMZAPY_TEST_ROUNDS", "3"))
FENCED = {47, 90}  # INVALID_PRODUCER_EPOCH, PRODUCER_FENCED
CLIENT = {"socket.timeout.ms": 500, "retry.backoff.ms": 10}

# how the sender loses sight of its EndTxn: it waits for the reply in vain, or its connection breaks at once
ways = pytest.mark.parametrize("cut", [False, True], ids=["no reply in time", "connection lost"])


@pytest.fixture
def proxy(kafka: str) -> Iterator[KafkaProxy]:
    with KafkaProxy(kafka) as made:
        yield made


def next_end_txn(proxy: KafkaProxy, client: str, cut: bool) -> Trap:
    return proxy.place(Rule(Hold(cut=cut), frozenset({Api.END_TXN}), client, times=1))


def arrive(held: Trap) -> int:
    """The held EndTxn goes to the broker now; the error code that it answers with (version 1 of the reply)."""
    held.release()
    (reply,) = held.wait_answered()
    (code,) = struct.unpack_from(">h", reply, 8)
    return int(code)


@ways
def test_a_client_that_goes_on_with_its_producer_shows_half_of_an_aborted_transaction(
    kafka: str, proxy: KafkaProxy, unique: str, cut: bool
) -> None:
    create_topic(kafka, unique, 2)
    for n in range(ROUNDS):
        producer = Producer({**CLIENT, "bootstrap.servers": proxy.bootstrap_servers, "transactional.id": unique, "client.id": unique})
        producer.init_transactions()
        producer.begin_transaction()
        producer.produce(unique, b"committed %d" % n, partition=0)
        held = next_end_txn(proxy, unique, cut)
        producer.commit_transaction()

        producer.begin_transaction()
        producer.produce(unique, b"aborted %d" % n, partition=0)
        producer.flush()
        assert 0 == arrive(held), "the broker takes it for the open transaction's"
        producer.produce(unique, b"aborted %d, the other half" % n, partition=1)
        producer.flush()
        producer.abort_transaction()  # and nothing was said

    wrong = [text % n for n in range(ROUNDS) for text in (b"committed %d", b"aborted %d")]
    assert wrong == [record.value for record in read_all(kafka, unique)]


@ways
def test_samzapys_producer_does_not(kafka: str, proxy: KafkaProxy, unique: str, cut: bool) -> None:
    create_topic(kafka, unique, 2)
    own = an_owner(kafka, proxy, unique)
    client = Job(unique, "1").container_transactional_id(0)
    for n in range(ROUNDS):
        producer = own.open()
        producer.send(unique, b"committed %d" % n, None, 0)
        producer.flush()
        held = next_end_txn(proxy, client, cut)
        own.decided(producer.commit())

        producer = own.open()
        producer.send(unique, b"aborted %d" % n, None, 0)
        producer.flush()
        assert arrive(held) in FENCED
        producer.send(unique, b"aborted %d, the other half" % n, None, 1)
        producer.flush()
        own.decided(producer.abort())
    own.drop()

    assert [b"committed %d" % n for n in range(ROUNDS)] == [record.value for record in read_all(kafka, unique)]
    assert 2 * ROUNDS == own.renewals  # after each suspicious commit, and after each abort


def test_a_commit_that_nothing_disturbs_is_clean_and_keeps_its_producer(kafka: str, proxy: KafkaProxy, unique: str) -> None:
    create_topic(kafka, unique)
    own = an_owner(kafka, proxy, unique)
    for _ in range(20):
        own.open().send(unique, b"v", None, 0)
        own.open().flush()
        own.decided(own.open().commit())
    own.drop()

    assert 0 == own.renewals
    assert 20 == len(read_all(kafka, unique))


def an_owner(kafka: str, proxy: KafkaProxy, name: str) -> Ownership:
    """What holds a container's producer, with the coordinator's record that names it."""
    job = Job(name, "1")
    create_topic(kafka, job.coordinator_topic)
    record = ContainerRecord(0, 1, "incarnation", ("Partition 0",), "run", "localhost", 1)
    produce(kafka, job.coordinator_topic, [(container_key(0), record.to_bytes())])
    settings = {**CLIENT, "bootstrap.servers": proxy.bootstrap_servers}
    log = KafkaLog(settings, settings, settings, commit_timeout_ms=20_000, lease_ms=10_000)
    return Ownership(job, 0, "incarnation", log, SystemClock(), Transaction())
