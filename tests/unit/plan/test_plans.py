"""Grouping, assignment, restarts, topics: the small decisions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from samzapy.api.errors import ConfigurationError, LauncherError
from samzapy.model.caution import Condemned, Suspects, piece_of
from samzapy.model.dead_letter import Origin
from samzapy.model.names import Job
from samzapy.model.offsets import TopicPartition
from samzapy.plan.assignment import check_slots, plan
from samzapy.plan.grouping import group
from samzapy.plan.internal_topics import expiring_letters, internal_topics, what_is_wrong
from samzapy.plan.restarts import FIRST_BACKOFF_S, EndJob, Restart, decide_restart, restart_or_end
from samzapy.ports import TopicFacts, TopicSpec


def test_task_i_reads_partition_i_of_every_input_and_all_of_a_broadcast_one() -> None:
    tasks = group({"a": 2, "b": 2, "all": 3}, {"all"}, has_stores=True)
    assert list(tasks) == ["Partition 0", "Partition 1"]
    everywhere = tuple(TopicPartition("all", p) for p in range(3))
    assert tasks["Partition 1"].inputs == (TopicPartition("a", 1), TopicPartition("b", 1), *everywhere)


def test_unequal_inputs_are_refused_with_stores_and_taken_without() -> None:
    with pytest.raises(ConfigurationError, match="a has 2, b has 3"):
        group({"a": 2, "b": 3}, set(), has_stores=True)
    tasks = group({"a": 2, "b": 3}, set(), has_stores=False)
    assert tasks["Partition 2"].inputs == (TopicPartition("b", 2),)


@given(st.integers(1, 40), st.integers(1, 12), st.dictionaries(st.integers(0, 39), st.integers(0, 15)))
def test_assignment_is_complete_balanced_and_keeps_who_can_stay(tasks: int, containers: int, homes: dict[int, int]) -> None:
    names = [f"Partition {i}" for i in range(tasks)]
    before = {f"Partition {t}": c for t, c in homes.items()}
    chosen = plan(names, range(containers), before, {}, {}, {}).tasks
    assert sorted(t for group_ in chosen.values() for t in group_) == sorted(names)
    sizes = [len(g) for g in chosen.values()]
    assert max(sizes) - min(sizes) <= 1
    assert len(chosen) == min(tasks, containers)
    again = plan(names, range(containers), {t: c for c, g in chosen.items() for t in g}, {}, {}, {}).tasks
    assert again == chosen


def test_more_containers_than_slots_are_refused_with_both_numbers() -> None:
    with pytest.raises(LauncherError, match=r"3 containers need a slot each, but Spark at local\[2\] has 2 slots for .* or set `spark.master` to local\[3\]"):
        check_slots(3, 2, "local[2]")
    with pytest.raises(LauncherError, match=r"3 containers need .* has 2 slots .*`containers.count` to 2 or less.*Other applications .*`spark.cores.max`"):
        check_slots(3, 2, "spark://host:7077")
    check_slots(2, 2, "local[2]")
    check_slots(100, None, "")


def test_a_run_without_a_slot_is_not_told_to_have_no_containers() -> None:
    with pytest.raises(LauncherError, match=r"1 container needs a slot each, but .* gave this run none") as refused:
        check_slots(1, 0, "spark://host:7077")
    assert "containers.count" not in str(refused.value)
    assert "applications that hold its cores" in refused.value.remedy


def test_the_first_restart_is_at_once_later_ones_wait_longer_and_the_budget_ends() -> None:
    delays = [decide_restart([float(i) for i in range(n)], float(n), 8, 300.0) for n in range(1, 9)]
    assert delays[0] == Restart(0.0)
    waits = [d.delay_s for d in delays if isinstance(d, Restart)]
    assert waits == sorted(waits)
    assert len(waits) == 8
    assert isinstance(decide_restart([float(i) for i in range(9)], 9.0, 8, 300.0), EndJob)
    assert decide_restart([0.0, 1000.0], 1000.0, 0, 300.0) == EndJob("it died 1 times within 300 s; containers.max_restarts allows 0 restarts")


def test_a_death_that_brings_the_search_for_a_record_nearer_costs_nothing_of_the_budget() -> None:
    assert Restart(FIRST_BACKOFF_S) == restart_or_end([(float(i), False) for i in range(20)], None, None, 20.0, 0, 300.0)
    assert Restart(0.0) == restart_or_end([(1.0, False), (2.0, False), (3.0, True)], None, None, 3.0, 1, 300.0)
    assert isinstance(restart_or_end([(1.0, True), (2.0, False), (3.0, True)], None, None, 3.0, 1, 300.0), EndJob)


def test_a_record_that_is_suspected_too_often_or_ends_what_gives_it_up_ends_the_job_by_its_name() -> None:
    record, deaths = Origin("in", 0, 20), [(1.0, False)]
    often = Suspects(piece_of([record]), alone=4)
    assert EndJob("4 of its processes ended while only record in[0]@20 was processed; this does not prove that the record ended them") == restart_or_end(
        deaths, None, often, 1.0, 3, 300.0
    )
    assert Restart(FIRST_BACKOFF_S) == restart_or_end(deaths, None, often, 1.0, 4, 300.0)
    given_up = Condemned(record, 4, "exit code 3", 0)
    assert EndJob("record in[0]@20 ended it 4 times, the last times while `on_error` was applied to the record") == restart_or_end(
        deaths, given_up, often, 1.0, 3, 300.0
    )


def test_deaths_before_the_window_are_forgiven() -> None:
    assert decide_restart([0.0] * 8 + [1000.0], 1000.0, 1, 300.0) == Restart(0.0)


def test_a_dead_letter_topic_takes_more_than_the_largest_record_of_an_input() -> None:
    specs = {s.name: s for s in internal_topics(Job("j", "1"), 4, [], True, 5_000_000)}
    assert 5_000_000 < int(specs["j-1-dead-letter"].config["max.message.bytes"])


def test_dead_letters_are_kept_and_those_that_kafka_will_delete_are_told() -> None:
    [spec] = [s for s in internal_topics(Job("j", "1"), 4, [], True) if s.name == "j-1-dead-letter"]
    assert ("delete", "-1", "-1") == tuple(spec.config[name] for name in ("cleanup.policy", "retention.ms", "retention.bytes"))
    assert "" == expiring_letters(spec, TopicFacts(spec.name, "id", 4, 1, spec.config))
    week = TopicFacts(spec.name, "id", 4, 1, {"cleanup.policy": "delete", "retention.ms": "604800000"})
    assert "" == what_is_wrong(spec, week), "somebody may want it"
    assert "deletes dead letters from j-1-dead-letter 7 d" in expiring_letters(spec, week)
    [between] = [s for s in internal_topics(Job("j", "1"), 4, [], between={"j-1-by": 4}) if s.name == "j-1-by"]
    assert "" == expiring_letters(between, week)


def test_internal_topics_are_compacted_and_have_a_partition_a_task() -> None:
    specs = {s.name: s for s in internal_topics(Job("j", "1"), 4, ["j-1-s-changelog"])}
    assert specs["__samza_coordinator_j_1"].partitions == 1
    assert specs["__samza_checkpoint_j_1"].partitions == 4
    assert specs["j-1-s-changelog"].partitions == 4
    assert {s.config["cleanup.policy"] for s in specs.values()} == {"compact"}
    assert dict.fromkeys(specs, "600000") == {name: s.config["min.compaction.lag.ms"] for name, s in specs.items()}, "who reads is not overtaken"


@pytest.mark.parametrize(
    ("partitions", "policy", "words"),
    [
        (4, "compact", ""),
        (4, "delete", "cleanup.policy=compact"),
        (4, "compact,delete", "cleanup.policy=compact"),
        (3, "compact", "give it 4 with Kafka's own tools"),
        (5, "compact", "samzapy reset"),
    ],
)
def test_what_is_wrong_with_a_topic_is_told_with_what_to_set(partitions: int, policy: str, words: str) -> None:
    told = what_is_wrong(TopicSpec("t", 4), TopicFacts("t", "id", partitions, 1, {"cleanup.policy": policy}))
    assert bool(told) == bool(words)
    assert words in told
