"""What samzapy relies on of Kafka's transactions when things go wrong: late and repeated requests, fences, timeouts."""

from __future__ import annotations

import contextlib

import pytest

from samzapy.api.errors import Fenced, RecordRejected, TransactionAborted
from samzapy.model.offsets import TopicPartition
from samzapy.ports import Consumer, Log, TransactionalProducer
from tests.contract.log_worlds import World, messages, new_topic, send, until, values, visible

COMMIT, ABORT = True, False


def outcome(producer: TransactionalProducer, commit: bool) -> str:
    try:
        if commit:
            producer.commit()
        else:
            producer.abort()
    except (Fenced, TransactionAborted) as error:
        return type(error).__name__
    return "fine"


def flush_and_commit(producer: TransactionalProducer) -> None:
    producer.flush()
    producer.commit()


def test_records_queued_after_a_refused_record_are_not_waited_for(log: Log) -> None:
    """A transaction that has failed is told as that: what librdkafka still holds of it would never be sent."""
    small, other = new_topic(log, 4, {"max.message.bytes": "1000"}), new_topic(log, 4)
    producer = log.transactional_producer(small)
    producer.init()
    producer.begin()
    for i in range(20_000):
        producer.send(small, b"x" * (5000 if i == 7 else 10), b"k", i % 4)
        producer.send(other, b"x", b"k", i % 4)
    with pytest.raises(RecordRejected):
        flush_and_commit(producer)
    producer.abort()
    assert [] == values(log, other)
    producer.close()


def test_a_transaction_that_begins_right_after_a_commit_waits_for_its_markers(
    log: Log, topic: str, producer: TransactionalProducer
) -> None:
    for number in range(20):
        send(producer, topic, str(number).encode())
    found = values(log, topic, count=20)
    assert [str(number).encode() for number in range(20)] == found
    assert [2 * number for number in range(20)] == [m.offset() for m in messages(log, topic)]  # record, marker, record, marker


def test_what_a_commit_decided_is_seen_at_the_latest_when_the_next_init_returns(
    log: Log, topic: str, producer: TransactionalProducer, consumer: Consumer
) -> None:
    place = TopicPartition(topic, 0)
    for number in range(5):
        before = len(values(log, topic))
        send(producer, topic, b"v")
        producer = log.transactional_producer(topic)
        producer.init()
        assert 2 * (number + 1) == consumer.bounds(place).end
        assert before + 1 == len(values(log, topic))
    producer.close()


def test_a_transaction_without_records_asks_nobody_so_a_fenced_producer_does_not_learn_of_it(
    log: Log, topic: str, producer: TransactionalProducer
) -> None:
    send(producer, topic, b"mine")
    successor = log.transactional_producer(topic)
    successor.init()
    producer.begin()
    producer.commit()
    producer.begin()
    producer.send(topic, b"late", b"k", 0)
    for call in (producer.flush, producer.commit, producer.abort, producer.begin):  # from its first request on, it knows
        with pytest.raises(Fenced):
            call()
    assert [b"mine"] == values(log, topic)
    successor.close()


def test_a_fenced_producer_cannot_decide_what_it_had_open(log: Log, topic: str, producer: TransactionalProducer) -> None:
    for commit in (COMMIT, ABORT):
        producer.begin()
        producer.send(topic, b"open", b"k", 0)
        producer.flush()
        successor = log.transactional_producer(topic)
        successor.init()
        assert "Fenced" == outcome(producer, commit)
        assert [] == values(log, topic)
        producer = successor
    producer.close()


@pytest.mark.parametrize(
    ("late", "then_to", "end", "ended", "seen"),
    [
        # the commit of an earlier transaction comes late: half of this one is visible, whatever its producer does
        (COMMIT, None, COMMIT, "fine", ["half"]),
        (COMMIT, None, ABORT, "Fenced", ["half"]),
        (COMMIT, 0, COMMIT, "TransactionAborted", ["half"]),
        (COMMIT, 0, ABORT, "Fenced", ["half"]),
        (COMMIT, 1, COMMIT, "fine", ["half", "other"]),
        (COMMIT, 1, ABORT, "fine", ["half"]),
        # an abort comes late: half of this one is gone, even if its commit is reported as done
        (ABORT, None, COMMIT, "Fenced", []),
        (ABORT, None, ABORT, "fine", []),
        (ABORT, 0, COMMIT, "TransactionAborted", []),
        (ABORT, 0, ABORT, "fine", []),
        (ABORT, 1, COMMIT, "fine", ["other"]),
        (ABORT, 1, ABORT, "fine", []),
    ],
)
def test_a_late_end_of_an_earlier_transaction_decides_half_of_the_next(
    world: World,
    topic: str,
    producer: TransactionalProducer,
    consumer: Consumer,
    late: bool,
    then_to: int | None,
    end: bool,
    ended: str,
    seen: list[str],
) -> None:
    send(producer, topic, b"first")
    producer.begin()
    producer.send(topic, b"half", b"k", 0)
    producer.flush()
    assert "" == world.stray_end(topic, late)
    visible(consumer, TopicPartition(topic, 0), 4)  # what comes before the marker belongs to it as well
    if then_to is not None:
        producer.send(topic, b"other", b"k", then_to)
        with contextlib.nullcontext() if then_to else pytest.raises(TransactionAborted):  # the broker takes it for a transaction that it does not know
            producer.flush()
    assert ended == outcome(producer, end)
    successor = world.log.transactional_producer(topic)
    successor.init()
    assert ["first", *seen] == [v.decode() for p in (0, 1) for v in values(world.log, topic, p) if v]
    successor.close()


def test_a_new_producer_is_safe_from_the_late_end_of_an_earlier_one(world: World, topic: str, producer: TransactionalProducer) -> None:
    """The rule for a suspicious commit: O1 before the next begin. What would have decided the next transaction is refused."""
    send(producer, topic, b"first")
    successor = world.log.transactional_producer(topic)
    successor.init()
    assert "INVALID_TXN_STATE" == world.stray_end(topic, COMMIT)  # the epoch is new and has nothing to decide
    send(successor, topic, b"second")
    assert [b"first", b"second"] == values(world.log, topic, count=2)
    successor.close()


def test_an_end_that_is_repeated_is_answered_as_before_and_its_opposite_is_refused(
    world: World, topic: str, producer: TransactionalProducer
) -> None:
    def settled(commit: bool) -> str:
        answers: list[str] = []
        until(lambda: answers.append(world.stray_end(topic, commit)) or answers[-1] != "CONCURRENT_TRANSACTIONS")  # type: ignore[func-returns-value]
        return answers[-1]

    send(producer, topic, b"a")
    assert ["", "INVALID_TXN_STATE"] == [settled(COMMIT), settled(ABORT)]
    send(producer, topic, b"b", commit=False)
    assert ["", "INVALID_TXN_STATE"] == [settled(ABORT), settled(COMMIT)]
    assert [b"a"] == values(world.log, topic, count=1)


@pytest.mark.slow  # a broker looks for old transactions every ten seconds
def test_a_transaction_that_is_open_for_too_long_is_aborted_and_its_producer_fenced(world: World, topic: str, consumer: Consumer) -> None:
    impatient = world.log_with(commit_timeout_ms=1000)
    ends = {}
    for end in (COMMIT, ABORT):
        ends[end] = impatient.transactional_producer(f"{topic}-{end}")
        ends[end].init()
        ends[end].begin()
        ends[end].send(topic, b"too late", b"k", end)
        ends[end].flush()
    until(lambda: [2, 2] == [consumer.bounds(TopicPartition(topic, p)).end for p in (0, 1)])
    assert ["Fenced", "Fenced"] == [outcome(producer, end) for end, producer in ends.items()]
    successor = world.log.transactional_producer(f"{topic}-{COMMIT}")
    successor.init()
    send(successor, topic, b"next")
    assert ([b"next"], []) == (values(world.log, topic, count=1), values(world.log, topic, 1))
    successor.close()


def test_a_compacted_topic_takes_no_record_without_a_key(log: Log) -> None:
    compacted = new_topic(log, 1, {"cleanup.policy": "compact"})
    producer = log.transactional_producer(compacted)
    producer.init()
    producer.begin()
    producer.send(compacted, b"v", None, 0)
    with pytest.raises(RecordRejected):  # at the latest by the commit
        flush_and_commit(producer)
    assert "fine" == outcome(producer, ABORT)
    assert [] == values(log, compacted)
    producer.close()


def test_a_producer_whose_record_was_refused_leaves_a_gap_that_fails_its_next_transaction(log: Log) -> None:
    """Why `abort` is never clean: the refused record's sequence number is missing at the broker."""
    small = new_topic(log, 1, {"max.message.bytes": "1000"})
    producer = log.transactional_producer(small)
    producer.init()
    send(producer, small, b"first")
    producer.begin()
    producer.send(small, b"x" * 5000, b"k", 0)
    assert ["RecordRejected", "fine"] == [outcome(producer, COMMIT), outcome(producer, ABORT)]
    producer.begin()
    producer.send(small, b"next", b"k", 0)
    assert "TransactionAborted" == outcome(producer, COMMIT)
    producer.close()
    successor = log.transactional_producer(small)
    successor.init()
    send(successor, small, b"after")
    assert [b"first", b"after"] == values(log, small, count=2)
    successor.close()
