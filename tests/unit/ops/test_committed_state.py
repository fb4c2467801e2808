"""`samzapy state` on the in-memory log: what a run would refuse is never shown as the state, never called good and never built from."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from samzapy import StreamTask
from samzapy.api.errors import ClusterUnreachable, StateMismatch, StateRefused
from samzapy.config.document import settings_from_document
from samzapy.config.schema import Settings
from samzapy.model.offsets import TopicPartition
from samzapy.ops.inspection import committed_entries
from samzapy.ops.local_stores import LocalState, StoreReport
from samzapy.ops.made_again import lost_topics
from samzapy.plan.checkpoint_orders import Choice
from samzapy.ports import Consumer
from samzapy.streams import App
from samzapy.testing import Harness
from samzapy.testing.harness_job import HarnessJob
from samzapy.testing.memory_log import MemoryCluster, MemoryLog
from samzapy.testing.memory_registry import MemoryRegistry
from tests.unit.container.bench import JOB
from tests.unit.coordinator.stopped_job import CHANGELOG, EARLIEST, LATEST, P0, Story

PLACE = TopicPartition(CHANGELOG, 0)
CHECKPOINTS = TopicPartition(JOB.checkpoint_topic, 0)
LOST = "later checkpoints were lost"
Spoil = Callable[[Story], None]


def settings_of(story: Story) -> Settings:
    return settings_from_document(getattr(story, "document", None) or document_of(story), {})


def document_of(story: Story) -> dict[str, Any]:
    return {
        "job": JOB.name,
        "id": JOB.id,
        "task": "tasks:Summing",
        "kafka": {"bootstrap.servers": "memory"},
        "inputs": [{"topic": t, "key": "string", "value": "integer"} for t in story.bench.input_settings],
        "outputs": [{"topic": "out", "key": "string", "value": "integer"}],
        "stores": {name: {"key": "string", "value": "integer"} for name in story.bench.stores},
        "state": {"dir": str(story.bench.state)},
    }


def exported(story: Story, log: MemoryLog | None = None) -> dict[str, int]:
    entries = committed_entries(settings_of(story), "s", log or story.bench.log, story.bench.clock)
    return {k.decode(): int.from_bytes(v, "big", signed=True) for _, k, v in entries}


def local_of(story: Story, log: MemoryLog | None = None) -> LocalState:
    """The stores of the bench's host."""
    story.bench.cluster.cluster_id = "c"
    return LocalState(settings_of(story), [], "h", log or story.bench.log, story.bench.clock)


def verified(story: Story, log: MemoryLog | None = None) -> StoreReport:
    return local_of(story, log).verify(P0, "s")


def restored(story: Story, log: MemoryLog | None = None) -> StoreReport:
    return local_of(story, log).restore(P0, "s", lambda what, have, need, seconds: None)


def test_a_store_in_memory_is_not_restored_into_a_local_store_that_it_has_not(tmp_path: Path) -> None:
    story = Story(tmp_path, ("a", 1))
    story.document = document_of(story)  # type: ignore[attr-defined]
    story.document["stores"]["s"]["engine"] = "memory"  # type: ignore[attr-defined]
    before = sorted(tmp_path.rglob("*"))
    found = restored(story)
    assert (found.outcome, found.records) == (verified(story).outcome, 0) == ("no local store", 0)
    assert "each start of its task restores it from" in found.detail
    assert before == sorted(tmp_path.rglob("*"))


def cut_off(story: Story, place: TopicPartition, offsets: int) -> None:
    """The log's last offsets are lost, as after an unclean leader election."""
    log = story.bench.cluster.partition(place)
    log.end -= offsets
    log.records = [r for r in log.records if r.offset() < log.end]


class AtTheRead(MemoryLog):
    """Does something once, when a consumer of that name has been made."""

    def __init__(self, cluster: MemoryCluster, name: str, action: Callable[[], object]) -> None:
        super().__init__(cluster)
        self._name, self._action = name, action

    def restore_consumer(self, name: str) -> Consumer:
        if name == self._name:
            self._name = ""
            self._action()
        return super().restore_consumer(name)


# -- get, scan, export ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("does", [exported, verified, restored])
def test_the_changelog_of_another_job_is_not_shown_as_this_ones(tmp_path: Path, does: Callable[[Story], object]) -> None:
    story = Story(tmp_path, ("a", 1))
    document = {**document_of(story), "job": "another"}
    document["stores"]["s"]["changelog"] = CHANGELOG
    with pytest.raises(StateRefused, match=rf"{CHANGELOG}\[0\] belongs to store 's' of test-1, Partition 0: not the changelog of store 's' of another-1"):
        does(Another(story, document))


class Another(Story):
    """Another job, which never ran, on the cluster of the first."""

    def __init__(self, first: Story, document: dict[str, Any]) -> None:
        self.bench, self.document = first.bench, document


SPOILED: dict[str, tuple[Spoil, str]] = {
    "its beginning deleted": (lambda s: s.bench.cluster.delete_records(PLACE, 3), r"changelog\[0\] starts at 3, the checkpoint says 0"),
    "deleted and created again": (lambda s: s.lose(CHANGELOG), r"changelog\[0\] was deleted and created again after the checkpoint"),
    "missing": (lambda s: s.bench.cluster.delete(CHANGELOG), r"changelog\[0\] was deleted since the checkpoint"),
    "its end lost": (lambda s: cut_off(s, PLACE, 3), "its end was lost"),
}


@pytest.mark.parametrize("name", SPOILED)
@pytest.mark.parametrize("partitions", [1, 2])
def test_a_changelog_that_is_not_what_the_checkpoint_names_is_not_shown(name: str, partitions: int, tmp_path: Path) -> None:
    story = Story(tmp_path, ("a", 1), ("b", 2), ("c", 3), partitions=partitions)
    spoil, words = SPOILED[name]
    spoil(story)
    entries = committed_entries(settings_of(story), "s", story.bench.log, story.bench.clock)
    with pytest.raises(StateRefused, match=rf"store 's' of Partition 0: .*{words}") as refused:
        next(entries)
    assert "samzapy reset" in refused.value.remedy


def told_before(story: Story, log: MemoryLog | None = None) -> dict[str, str]:
    """What is told of topics before a run is launched."""
    found = lost_topics(settings_of(story), log or story.bench.log, story.bench.clock)
    return {topic: refused.message for topic, refused in found.items()}


@pytest.mark.parametrize("name", sorted(SPOILED.keys() - {"its beginning deleted"}))  # a local store somewhere may make up for that
def test_a_changelog_with_which_no_run_begins_is_told_before_one_is_launched(name: str, tmp_path: Path) -> None:
    story = Story(tmp_path, ("a", 1), ("b", 2), ("c", 3))
    assert told_before(story) == {}
    SPOILED[name][0](story)
    told = told_before(story)
    assert list(told) == [CHANGELOG]
    if name != "missing":  # which is not made again: test_topics
        with pytest.raises(StateRefused) as refused:
            story.start()
        assert told[CHANGELOG] == refused.value.message


def test_a_record_of_a_stranger_in_a_changelog_is_told_before_a_run_is_launched(tmp_path: Path) -> None:
    story = Story(tmp_path, ("a", 1))
    story.bench.log.plain_producer("stranger").send(CHANGELOG, b"\0" * 8, b"k", 0)
    told = told_before(story)[CHANGELOG]
    assert "holds a change at offset" in told
    with pytest.raises(StateRefused, match="holds a change of key 'k' at offset"):
        story.start()


def test_a_commit_of_the_running_job_in_between_is_not_told_as_a_strangers_record(tmp_path: Path) -> None:
    story = Story(tmp_path, ("a", 1))
    container = story.start()
    story.bench.feed(("a", 10))
    commits: list[object] = []
    log = AtTheRead(story.bench.cluster, "changelogs", lambda: commits.append(story.bench.drain(container)))
    assert told_before(story, log) == {}
    assert len(commits) == 1
    container.close()


def test_compaction_is_no_truncation(tmp_path: Path) -> None:
    story = Story(tmp_path, ("a", 1), ("b", 2))
    story.bench.feed(("a", 10), ("b", 20))
    story.run()
    story.bench.cluster.compact(CHANGELOG)
    assert {"a": 11, "b": 22} == exported(story)


@pytest.mark.parametrize(
    ("lag_ms", "passed_s", "found"),
    [
        (0, 30.0, {"a": 11, "b": 2, "c": 5}),
        (0, 0.1, {"a": 11, "b": 2, "c": 5}),  # a broker with small segments cleans as quickly
        (600_000, 30.0, {"a": 1, "b": 2}),
    ],
)
def test_a_key_that_the_cleaner_overtakes_while_it_is_read_is_not_missed(tmp_path: Path, lag_ms: int, passed_s: float, found: dict[str, int]) -> None:
    story = Story(tmp_path, ("a", 1), ("b", 2), partitions=2)
    bench = story.bench
    bench.cluster.configure(CHANGELOG, {"min.compaction.lag.ms": str(lag_ms)})
    container = story.start()
    entries = committed_entries(settings_of(story), "s", bench.log, bench.clock)
    first = next(entries)  # the ends of all partitions are fixed, the first one is read
    bench.feed(("a", 10), ("c", 5), partition=1)
    bench.drain(container)
    bench.clock.passed += passed_s
    bench.cluster.compact(CHANGELOG)
    told = {0: {}, 1: {}}
    for partition, key, value in (first, *entries):
        told[partition][key.decode()] = int.from_bytes(value, "big", signed=True)
    assert {0: {"a": 1, "b": 2}, 1: found} == told
    container.close()


def test_what_was_deleted_before_the_job_began_is_no_truncation_once_it_was_decided_where_to_begin(tmp_path: Path) -> None:
    story = Story(tmp_path)
    story.bench.log.plain_producer("stranger").send(CHANGELOG, b"\0" * 8, b"old", 0)
    story.bench.cluster.delete_records(PLACE, 1)
    story.bench.feed(("a", 1))
    with pytest.raises(StateRefused, match="starts at offset 1"):  # it might be the job's own
        story.start()
    story.set(EARLIEST)
    story.run()
    assert {"a": 1} == exported(story)


def test_before_the_first_run_there_is_no_state(tmp_path: Path) -> None:
    story = Story(tmp_path)
    assert {} == exported(story)
    story.bench.cluster.delete(CHANGELOG)
    assert {} == exported(story)


class Counting(StreamTask):
    def init(self, context):
        self.counts = context.get_store("counts")

    def process(self, envelope, collector, coordinator):
        self.counts.put(envelope.key, 1)


@pytest.mark.parametrize(("other", "what"), [({"value": "string"}, "value serde"), ({"key": "bytes"}, "key serde"), ({}, "")])
def test_no_state_is_shown_by_another_serde_than_wrote_it(other: dict[str, str], what: str) -> None:
    job = {"inputs": [{"topic": "in", "key": "string", "value": "string"}], "stores": {"counts": {"key": "string", "value": "integer"}}}
    now = {**job, "stores": {"counts": {"key": "string", "value": "integer", **other}}}
    with Harness(Counting, **job) as h:
        h.send("in", "x", key="a")
        h.run()
        entries = committed_entries(HarnessJob.of(Counting, (), now, MemoryRegistry()).settings, "counts", h.log, h.clock)
        if not what:
            assert 1 == len(list(entries))
            return
        with pytest.raises(StateMismatch, match=f"store 'counts' {what}"):
            list(entries)


def test_a_commit_of_the_running_job_in_between_is_no_loss(tmp_path: Path) -> None:
    story = Story(tmp_path, ("a", 1))
    container = story.start()
    story.bench.feed(("a", 10))
    log = AtTheRead(story.bench.cluster, "state", lambda: story.bench.drain(container))
    assert {"a": 11} == exported(story, log)
    container.close()


def test_a_commit_that_is_seen_in_the_checkpoints_first_is_waited_for_and_is_no_lost_end(tmp_path: Path) -> None:
    story = Story(tmp_path, ("a", 1))
    container = story.start()
    network = story.bench.cluster.network
    for _ in ("of the output", "of the changelog"):
        network.plan("marker", "held")
    story.bench.feed(("a", 10))
    story.bench.drain(container)
    assert {"a": 1} == story.bench.changelog()
    network.later(0.5, "markers", lambda: network.deliver_held("marker"))
    assert {"a": 11} == exported(story)
    container.close()


@pytest.mark.parametrize("read", [exported, verified, restored])
def test_what_an_open_transaction_hides_is_waited_for_and_never_left_out(read: Callable[[Story], object], tmp_path: Path) -> None:
    story = Story(tmp_path)
    container = story.start()
    stranger = story.bench.log.transactional_producer("stranger")
    stranger.init()
    stranger.begin()
    stranger.send(CHANGELOG, b"\0" * 8, b"a", 0)
    stranger.flush()
    story.bench.feed(("a", 7))
    story.bench.drain(container)
    container.close()
    with pytest.raises(ClusterUnreachable, match=r"changelog\[0\]: a transaction is open at offset 2"):
        read(story)
    stranger.abort()
    assert {"a": 7} == exported(story)


# -- verify, restore -------------------------------------------------------------------------------------------------------------------


def lost_checkpoint(folder: Path, **inputs: dict[str, object]) -> Story:
    """One that ran twice; what the second run committed is in the changelog, its checkpoint is lost. The host has the store of the first."""
    story = Story(folder / "first", inputs={"in": {}, **inputs})
    story.bench.feed(("a", 1))
    story.run()
    story.bench.state = folder / "another"
    story.bench.feed(("a", 10))
    story.run()
    story.bench.state = folder / "first"
    cut_off(story, CHECKPOINTS, 2)
    return story


def test_a_store_is_restored_from_its_changelog_and_agrees(tmp_path: Path) -> None:
    story = Story(tmp_path / "one", ("a", 1), ("b", 2))
    story.bench.state = tmp_path / "two"
    report = restored(story)
    assert ("restored", 2) == (report.outcome, report.records)
    assert ("agrees", True) == (verified(story).outcome, verified(story).good)


def test_a_change_that_no_checkpoint_names_is_never_called_good(tmp_path: Path) -> None:
    report = verified(lost_checkpoint(tmp_path))
    assert ("refused", False) == (report.outcome, report.good)
    assert f"{PLACE} holds a change at offset 6, the newest checkpoint in {CHECKPOINTS} covers offsets below 3" in report.detail
    assert LOST in report.detail


@pytest.mark.parametrize("left", [0, 2])
def test_a_complete_store_over_a_truncated_changelog_is_never_called_wrong(left: int, tmp_path: Path) -> None:
    """It was, with the advice to delete it, and it is the only copy."""
    story = Story(tmp_path, ("a", 1), ("b", 2))
    story.bench.cluster.delete_records(PLACE, story.bench.cluster.bounds(PLACE).end - left)
    report = verified(story)
    assert ("only copy", False) == (report.outcome, report.good)
    assert "delete" not in report.detail


@pytest.mark.parametrize("folder", ["first", "new"])
def test_no_store_is_built_from_a_change_that_no_checkpoint_names(folder: str, tmp_path: Path) -> None:
    story = lost_checkpoint(tmp_path)
    story.bench.state = tmp_path / folder
    with pytest.raises(StateRefused, match=LOST):
        restored(story)
    with pytest.raises(StateRefused, match=LOST):  # nor has the attempt left a store that a run takes for complete
        story.start()


@pytest.mark.parametrize(
    ("read", "consumer", "outcome"), [(verified, "state-verify", "no local store"), (restored, "state-restore", "restored")]
)
def test_a_commit_between_checkpoint_and_changelog_is_no_loss(
    read: Callable[[Story, MemoryLog], StoreReport], consumer: str, outcome: str, tmp_path: Path
) -> None:
    story = Story(tmp_path / "one", ("a", 1))
    container = story.start()
    story.bench.feed(("a", 10))
    story.bench.state = tmp_path / "two"
    report = read(story, AtTheRead(story.bench.cluster, consumer, lambda: story.bench.drain(container)))
    assert (outcome, True) == (report.outcome, report.good)
    container.close()


def test_a_changelog_that_is_missing_is_told_as_lost_where_a_checkpoint_names_it(tmp_path: Path) -> None:
    story = Story(tmp_path, ("a", 1))
    story.bench.cluster.delete(CHANGELOG)
    with pytest.raises(StateRefused, match=r"changelog\[0\] was deleted since the checkpoint"):
        local_of(story)


@pytest.mark.parametrize("read", [verified, restored])
def test_an_input_that_has_grown_is_named_as_a_run_names_it(read: Callable[[Story], StoreReport], tmp_path: Path) -> None:
    story = Story(tmp_path, ("a", 1), partitions=2)
    with story.bench.log.admin() as admin:
        admin.grow("in", 3)
    with pytest.raises(StateMismatch, match="in: 3 partitions now, 2 when this job's state was created"):
        read(story)


def test_where_inputs_may_grow_the_new_tasks_have_no_store_until_a_run_makes_its_partition() -> None:
    app = App()
    app.stream("lines", value=str).key_by(lambda word: word, "by-word", key=str).count("counts")
    with Harness(app, tasks=2) as h:
        h.send("lines", "a")
        h.run()
        with h.log.admin() as admin:
            admin.grow("lines", 3)
        local = LocalState(HarnessJob.of(app, (), {}, MemoryRegistry()).settings, [], "h", h.log, h.clock)
        reports = [local.verify(task, store) for task, store in local.places(None, None)]
    assert [("Partition 0", "no local store"), ("Partition 1", "no local store")] == [(report.task, report.outcome) for report in reports]


# -- with a `checkpoint set` that no start has carried out -----------------------------------------------------------------------------


def test_who_says_where_every_input_goes_on_has_decided_what_is_state(tmp_path: Path) -> None:
    story = lost_checkpoint(tmp_path)
    story.set(LATEST)
    assert ("agrees", True) == (verified(story).outcome, verified(story).good)
    assert "kept" == restored(story).outcome


def test_who_orders_some_inputs_only_has_not(tmp_path: Path) -> None:
    story = lost_checkpoint(tmp_path, more={})
    story.set(LATEST, Choice("more"))
    assert LOST in verified(story).detail
    with pytest.raises(StateRefused, match=LOST):
        restored(story)


def test_deletions_that_were_ordered_are_no_loss(tmp_path: Path) -> None:
    story = Story(tmp_path, inputs={"in": {}, "more": {}})
    story.bench.feed(("a", 1))
    story.run()
    story.set(LATEST, Choice("more"), reset=True)
    assert ("agrees", True) == (verified(story).outcome, verified(story).good)
    story.bench.state = tmp_path / "another"
    assert "restored" == restored(story).outcome


def test_an_order_that_was_carried_out_excuses_nothing_that_came_later(tmp_path: Path) -> None:
    story = Story(tmp_path / "first", ("a", 1))
    story.set(LATEST)
    story.run()
    story.bench.state = tmp_path / "another"
    story.bench.feed(("a", 10))
    story.run()
    cut_off(story, CHECKPOINTS, 2)
    assert LOST in verified(story).detail


def test_state_without_a_checkpoint_is_orphaned_until_somebody_decides(tmp_path: Path) -> None:
    story = Story(tmp_path, ("a", 1))
    story.lose(JOB.checkpoint_topic)
    assert ("orphaned", False) == (verified(story).outcome, verified(story).good)
    story.set(LATEST)
    assert ("no local store", True) == (verified(story).outcome, verified(story).good)


# -- stores with a ttl -------------------------------------------------------------------------------------------------------------------


def test_what_has_expired_is_not_shown_and_a_restored_store_agrees_with_its_changelog(tmp_path: Path) -> None:
    story = Story(tmp_path, ("a", 1))
    story.document = document_of(story)
    story.document["stores"]["s"]["ttl"] = "1h"
    assert {"a": 1} == exported(story)
    assert "restored" == restored(story).outcome
    assert ("agrees", 1) == (verified(story).outcome, verified(story).records)
    story.bench.clock.sleep(3601)
    assert {} == exported(story)
    assert "agrees" == verified(story).outcome
