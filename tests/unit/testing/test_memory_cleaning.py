"""What cleaning leaves of a log in memory, and what is drawn by chance."""

from __future__ import annotations

import pytest

from samzapy.api.errors import LogError
from samzapy.model.offsets import Bounds
from samzapy.ports import TopicSpec
from samzapy.testing.memory_log import Chance
from tests.unit.testing.world import P0, TOPIC, World, begun

COMPACTED = {"cleanup.policy": "compact", "delete.retention.ms": "1000"}


def put(world: World, *entries: tuple[str, str | None]) -> None:
    plain = world.log.plain_producer("plain")
    for key, value in entries:
        plain.send(TOPIC, None if value is None else value.encode(), key.encode(), 0)
    plain.flush()


def test_a_tombstone_goes_when_its_time_has_passed_since_it_was_first_cleaned() -> None:
    world = World(config=COMPACTED)
    put(world, ("a", "1"), ("b", "1"), ("a", None))
    world.clock.sleep(5)  # before its first cleaning no time counts
    world.cluster.compact(TOPIC)
    assert [1, 2] == world.offsets()
    world.clock.sleep(0.9)
    world.cluster.compact(TOPIC)
    assert [1, 2] == world.offsets()
    world.clock.sleep(0.2)
    world.cluster.compact(TOPIC)
    assert ([1], Bounds(0, 3)) == (world.offsets(), world.cluster.bounds(P0))


def test_what_is_younger_than_the_compaction_lag_stays_and_so_does_what_it_replaces() -> None:
    world = World(config={**COMPACTED, "min.compaction.lag.ms": "60000"})
    put(world, ("a", "1"), ("a", "2"))
    world.clock.sleep(50)
    put(world, ("a", "3"))
    world.cluster.compact(TOPIC)
    assert [0, 1, 2] == world.offsets()
    world.clock.sleep(20)
    world.cluster.compact(TOPIC)
    assert [1, 2] == world.offsets()
    world.clock.sleep(50)
    world.cluster.compact(TOPIC)
    assert [2] == world.offsets()


def test_a_key_whose_tombstone_is_after_an_open_transaction_stays() -> None:
    world = World(config=COMPACTED)
    put(world, ("a", "1"))
    opened = begun(world.producer(), "open")
    put(world, ("a", None))
    world.cluster.compact(TOPIC, drop_tombstones=True)
    assert [0, 1, 2] == world.offsets()
    opened.abort()
    world.cluster.compact(TOPIC, drop_tombstones=True)
    assert [] == world.offsets()


def test_a_position_in_a_hole_goes_on_after_it() -> None:
    world = World(config=COMPACTED)
    put(world, ("a", "1"), ("a", "2"), ("a", "3"), ("b", "1"))
    world.cluster.compact(TOPIC)
    consumer = world.log.restore_consumer("reader")
    consumer.assign({P0: 1})
    assert [2, 3] == [m.offset() for m in consumer.poll(10, 0)]


def test_the_cleaner_takes_a_log_up_to_where_chance_says_and_never_the_newest_of_a_key() -> None:
    kept = set()
    for seed in range(20):
        world = World(Chance(seed, {"linger": 0.1}), config=COMPACTED)
        put(world, *[("ab"[n % 2], str(n)) for n in range(10)])
        world.cluster.clean()
        kept.add(len(world.offsets()))
        assert {"8", "9"} <= set(world.seen())
    assert len(kept) > 3


def test_retention_moves_the_start_past_what_is_old_but_not_past_an_open_transaction() -> None:
    world = World(config={"retention.ms": "10000"})
    put(world, ("a", "old"), ("a", "older"))
    world.clock.sleep(8)
    put(world, ("a", "young"))
    world.clock.sleep(5)
    world.cluster.clean()
    assert (["young"], Bounds(2, 3)) == (world.seen(), world.cluster.bounds(P0))
    begun(world.producer(), "open")
    world.clock.sleep(20)
    world.cluster.clean()
    assert Bounds(3, 3) == world.cluster.bounds(P0)


def test_a_transaction_over_a_topic_that_was_made_anew_ends_without_its_records() -> None:
    world = World()
    producer = begun(world.producer(), "a")
    before = world.log.admin().topics([TOPIC])[TOPIC].topic_id
    world.log.admin().delete([TOPIC])
    world.log.admin().create([TopicSpec(TOPIC, 2)])
    assert before != world.log.admin().topics([TOPIC])[TOPIC].topic_id
    assert producer.commit() is True
    assert ([], Bounds(0, 1)) == (world.seen(), world.cluster.bounds(P0))  # its marker found the new one


def test_a_record_that_is_late_for_a_deleted_topic_disturbs_nobody() -> None:
    world = World()
    plain = world.log.plain_producer("plain")
    world.cluster.disturb_next("produce", "held")
    plain.send(TOPIC, b"late", b"k", 0)
    world.cluster.delete(TOPIC)
    assert 1 == world.cluster.deliver_held("produce")
    world.clock.sleep(11)
    with pytest.raises(LogError, match="t does not exist"):
        plain.flush()


def test_faults_with_names_that_mean_nothing_are_refused() -> None:
    world = World()
    for wrong in (
        lambda: Chance(1, {"commit.lost": 0.5}),
        lambda: Chance(1, {"end.held": 1.5}),
        lambda: Chance(1, longest_s={"end": 1.0}),
        lambda: world.cluster.disturb_next("commit", "held"),
        lambda: world.cluster.disturb_next("marker", "slow"),
        lambda: world.cluster.fail_next("end", "aborted"),
    ):
        with pytest.raises(ValueError, match=r"odds|longest_s|requests are|calls are"):
            wrong()
