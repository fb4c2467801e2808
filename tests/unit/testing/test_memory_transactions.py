"""What a transaction in memory goes through when markers, requests and replies take their time or never come."""

from __future__ import annotations

import pytest

from samzapy.api.errors import ClusterUnreachable, Fenced, InDoubt, LogError
from samzapy.model.offsets import Bounds
from samzapy.testing.memory_log import Chance
from samzapy.testing.memory_network import REQUEST_TIMEOUT_S
from tests.unit.testing.world import P0, P1, TOPIC, World, begun


def test_a_commit_is_decided_before_each_partition_shows_it() -> None:
    world = World()
    world.cluster.disturb_next("marker", "held")
    assert begun(world.producer(), "a", to=(0, 1)).commit() is True
    assert ([], ["a"]) == (world.seen(P0), world.seen(P1))
    assert (Bounds(0, 0), Bounds(0, 2)) == (world.cluster.bounds(P0), world.cluster.bounds(P1))
    assert 1 == world.cluster.deliver_held("marker")
    assert (["a"], Bounds(0, 2)) == (world.seen(P0), world.cluster.bounds(P0))


def test_init_returns_when_the_decided_transaction_is_visible() -> None:
    world = World(Chance(4, {"marker.late": 1.0}))
    begun(world.producer(), "a").commit()
    assert [] == world.seen()
    world.producer()
    assert ["a"] == world.seen()
    assert world.clock.passed_s > 0


def test_init_that_finds_an_open_transaction_fences_first_and_returns_when_it_is_gone() -> None:
    world = World(Chance(4, {"marker.late": 1.0}))
    zombie = begun(world.producer(), "a", to=(0, 1))
    world.producer()
    assert (Bounds(0, 2), Bounds(0, 2)) == (world.cluster.bounds(P0), world.cluster.bounds(P1))
    assert ["aborted"] == [state for _, _, _, state in world.cluster.dump()[P0]]
    with pytest.raises(Fenced):
        zombie.commit()


def test_a_begin_right_after_a_commit_waits_for_the_markers_in_its_first_flush() -> None:
    world = World(Chance(4, {"marker.late": 1.0}))
    producer = world.producer()
    begun(producer, "a").commit()
    producer.begin()
    producer.send(TOPIC, b"b", b"k", 0)
    assert (0.0, [0]) == (world.clock.passed_s, world.offsets())  # a send does not wait
    producer.flush()
    assert [0, 2] == world.offsets()
    assert world.clock.passed_s > 0


@pytest.mark.parametrize("fate", ["reply_lost", "request_lost"])
@pytest.mark.parametrize("request_", ["init", "add", "produce", "end"])
def test_whatever_request_gets_no_answer_is_sent_again_and_counts_once(request_: str, fate: str) -> None:
    world = World()
    world.cluster.disturb_next(request_, fate)
    producer = begun(world.producer(), "a", "b")
    assert producer.commit() is (request_ == "init")  # what went wrong before begin does not make a commit suspicious
    assert (["a", "b"], [0, 1]) == (world.seen(), world.offsets())
    assert pytest.approx(REQUEST_TIMEOUT_S) == world.clock.passed_s


def test_a_commit_that_is_answered_late_is_suspicious() -> None:
    world = World()
    producer = world.producer()
    world.cluster.disturb_next("end", "slow")
    assert begun(producer, "a").commit() is False
    assert ["a"] == world.seen()


@pytest.mark.parametrize(("fate", "seen"), [("reply_lost", ["a"]), ("request_lost", [])])
def test_a_commit_without_any_answer_is_in_doubt_and_init_tells(fate: str, seen: list[str]) -> None:
    world = World()
    producer = begun(world.producer(), "a")
    world.cluster.disturb_next("end", fate)
    for _ in range(60):  # each is sent again after a second, until the timeout of 60
        world.cluster.disturb_next("end", "request_lost")
    with pytest.raises(InDoubt):
        producer.commit()
    world.producer()
    assert seen == world.seen()


def test_an_abort_without_any_answer_is_in_doubt() -> None:
    world = World()
    producer = begun(world.producer(), "a")
    world.cluster.cut_off(1000)
    with pytest.raises(InDoubt):
        producer.abort()


def test_init_without_any_answer_says_that_the_cluster_is_away() -> None:
    world = World()
    world.cluster.cut_off(1000)
    with pytest.raises(ClusterUnreachable, match="init_transactions of id"):
        world.producer()


def test_an_end_that_was_held_up_decides_half_of_the_next_transaction_of_the_same_producer() -> None:
    world = World()
    producer = world.producer()
    world.cluster.disturb_next("end", "held")
    assert begun(producer, "a").commit() is False  # sent again; the first one is still on its way
    begun(producer, "half")
    assert 1 == world.cluster.deliver_held("end")
    producer.send(TOPIC, b"other", b"k", 1)
    producer.abort()
    assert (["a", "half"], []) == (world.seen(P0), world.seen(P1))


def test_an_end_that_was_held_up_cannot_touch_a_new_producer() -> None:
    world = World()
    world.cluster.disturb_next("end", "held")
    assert begun(world.producer(), "a").commit() is False
    successor = begun(world.producer(), "whole", to=(0, 1))
    assert 1 == world.cluster.deliver_held("end")
    assert (["a"], []) == (world.seen(P0), world.seen(P1))
    assert successor.commit() is True
    assert (["a", "whole"], ["whole"]) == (world.seen(P0), world.seen(P1))


def test_an_init_of_a_dead_process_that_comes_late_fences_who_lives() -> None:
    world = World()
    world.cluster.disturb_next("init", "held")
    producer = begun(world.producer(), "a")
    world.cluster.deliver_held("init")
    with pytest.raises(Fenced):
        producer.commit()
    assert [] == world.seen()


def test_a_record_of_an_old_epoch_that_comes_late_is_refused() -> None:
    trace: list[str] = []
    world = World(trace=trace.append)
    dead = world.producer()
    dead.begin()
    world.cluster.disturb_next("produce", "held")
    dead.send(TOPIC, b"late", b"k", 0)
    begun(world.producer(), "a").commit()
    assert 1 == world.cluster.deliver_held("produce")
    assert ["a"] == world.seen()
    assert "PRODUCER_FENCED" in trace[-1]


def test_a_transaction_times_out_by_the_clock_and_not_before() -> None:
    world = World()
    producer = begun(world.producer(), "a")
    world.clock.sleep(59.9)
    assert Bounds(0, 0) == world.cluster.bounds(P0)
    world.clock.sleep(0.2)
    assert Bounds(0, 2) == world.cluster.bounds(P0)
    for call in (producer.abort, producer.commit, producer.begin):
        with pytest.raises(Fenced):
            call()
    assert [] == world.seen()


def test_the_timeout_of_an_ended_transaction_does_not_touch_the_next() -> None:
    world = World()
    producer = world.producer()
    begun(producer, "a").commit()
    world.clock.sleep(30)
    begun(producer, "b")
    world.clock.sleep(40)
    assert producer.commit() is True
    assert ["a", "b"] == world.seen()


def test_one_place_can_be_cut_off_alone() -> None:
    world = World()
    near, far = world.producer("near"), world.producer("far", origin="far")
    world.cluster.cut_off(1000, "far")
    assert begun(near, "a").commit() is True
    far.begin()
    far.send(TOPIC, b"b", b"k", 0)
    with pytest.raises(InDoubt):
        far.commit()
    assert ["a"] == world.seen()


def test_a_broker_that_is_away_for_a_while_is_waited_for() -> None:
    world = World()
    producer = begun(world.producer(), "a")
    world.cluster.cut_off(5)
    assert producer.commit() is False
    assert ["a"] == world.seen()


def test_a_plain_record_that_was_given_up_may_come_all_the_same() -> None:
    world = World()
    plain = world.log.plain_producer("plain")
    world.cluster.disturb_next("produce", "held")
    plain.send(TOPIC, b"late", b"k", 0)
    world.cluster.cut_off(1000)
    with pytest.raises(LogError, match="not acknowledged in 10 s"):
        plain.flush()
    world.cluster.cut_off(0)
    plain.send(TOPIC, b"next", b"k", 0)
    plain.flush()
    world.cluster.deliver_held("produce")
    assert ["next", "late"] == world.seen()


def test_a_plain_record_that_was_sent_again_is_there_once_even_if_the_first_comes_late() -> None:
    world = World()
    plain = world.log.plain_producer("plain")
    for fate in ("held", "reply_lost"):
        world.cluster.disturb_next("produce", fate)
    for value in (b"a", b"b"):
        plain.send(TOPIC, value, b"k", 0)
    plain.flush()
    world.cluster.deliver_held("produce")
    assert ["a", "b"] == world.seen()


def test_readers_and_admins_say_when_nobody_answers() -> None:
    world = World()
    begun(world.producer(), "a").commit()
    consumer = world.log.restore_consumer("reader")
    consumer.assign({P0: 0})
    world.cluster.cut_off(1000)
    assert [] == list(consumer.poll(10, 0.1))
    for asking in (lambda: consumer.bounds(P0), lambda: consumer.offset_for_time(P0, 0), world.log.admin().cluster_id):
        with pytest.raises(ClusterUnreachable):
            asking()
    world.cluster.cut_off(0)
    assert [b"a"] == [m.value() for m in consumer.poll(10, 0.1)]
