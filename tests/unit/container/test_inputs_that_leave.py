"""What the checkpoint names and the job file does not: inputs that leave and come back, stores that vanish, switches that are turned."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from samzapy import OutgoingMessageEnvelope, StreamTask, SystemStream
from samzapy.api.errors import OffsetOutOfRange, OwnedElsewhere, RecordTooLarge, StateMismatch, StateRefused, TaskError
from samzapy.config.document import settings_from_document
from samzapy.config.schema import Settings
from samzapy.container.container import Container
from samzapy.coordinator.forgetting import Forgetting, Forgotten
from samzapy.coordinator.settings import CoordinatorSettings, Process
from samzapy.model.barrier import BARRIER_KEY, Barrier
from samzapy.model.checkpoint import CHECKPOINT_KEY, Checkpoint, checkpoint_from_bytes
from samzapy.model.ownership import LEASE_KEY, LeaseRecord, Startpoint, startpoint_key
from samzapy.ops.prepare_topics import prepare_topics
from samzapy.ops.topic_rows import OK, topic_rows
from samzapy.ports import TopicSpec
from samzapy.testing.memory_log import MemoryAdmin, MemoryCluster, MemoryLog
from tests.unit.container.bench import JOB, Bench, HandClock
from tests.unit.coordinator.stopped_job import write

P0 = "Partition 0"


class Counting(StreamTask):
    """Counts per key in a store, and sends every record on under its input's name."""

    def init(self, context: Any) -> None:
        self.counts = context.get_store("s")

    def process(self, envelope: Any, collector: Any, coordinator: Any) -> None:
        self.counts.put(envelope.key, (self.counts.get(envelope.key) or 0) + 1)
        place = f"{envelope.system_stream_partition.stream}[{envelope.partition}]"
        collector.send(OutgoingMessageEnvelope(SystemStream("kafka", "out"), envelope.message, place, partition=0))


class Passing(StreamTask):
    """Does nothing."""

    def process(self, envelope: Any, collector: Any, coordinator: Any) -> None:
        pass


class Story:
    """A job whose inputs change from run to run."""

    def __init__(self, folder: Path, *topics: str, partitions: int = 1, **settings: Any) -> None:
        self.bench = Bench(folder, Counting, partitions, {t: {} for t in topics}, **settings)
        self.fed = 0

    def feed(self, topic: str, records: int, partition: int = 0) -> None:
        for _ in range(records):
            self.fed += 1
            self.bench.feed((topic, self.fed), topic=topic, partition=partition)

    def run(self, *topics: str, **settings: Any) -> dict[str, Checkpoint]:
        """With these inputs, to what there is, and an orderly stop; the checkpoints that this leaves."""
        self.bench.input_settings = dict.fromkeys(topics, settings)
        container = self.bench.start()
        self.bench.drain(container)
        container.stop()
        checkpoints = {name: task.committed for name, task in container.tasks.items()}
        container.close()
        return checkpoints

    def sent(self) -> list[int]:
        return sorted(v for _, v in self.bench.read("out") if v is not None)


@pytest.mark.parametrize("start", ["earliest", "latest"])
def test_an_input_that_comes_back_goes_on_where_it_was(tmp_path: Path, start: str, caplog: pytest.LogCaptureFixture) -> None:
    story = Story(tmp_path, "a", "b")
    story.run("a", "b")
    story.feed("a", 10)
    story.feed("b", 10)
    story.run("a", "b", start=start)
    story.feed("a", 5)  # while it is no input
    story.feed("b", 5)
    story.run("b", start=start)
    story.run("b", start=start)  # and a checkpoint of a run that never knew it
    with caplog.at_level(logging.INFO):
        story.run("a", "b", start=start)

    assert list(range(1, 31)) == story.sent()
    assert {"a": 15, "b": 15} == story.bench.changelog()
    assert [m for m in caplog.messages if "a[0] is an input again; it was at 10; it is read from 10" in m] != []


def test_state_is_not_given_to_a_job_that_reads_only_other_topics_until_somebody_says_so(tmp_path: Path) -> None:
    """Two job files of one name, which run after each other: more likely a mistake than a change of all inputs."""
    story = Story(tmp_path, "a", "b", "c")
    story.feed("a", 3)
    story.feed("b", 2)
    story.run("a")
    with pytest.raises(StateMismatch, match=r"has read a so far, and now reads only b, c, with the state in test-1-s-changelog") as refused:
        story.run("b", "c")
    assert "another name (`job:`) or `id:`" in refused.value.remedy
    assert "`samzapy checkpoint set JOB.yaml --to-earliest --keep-state --execute`" in refused.value.remedy
    assert [1, 2, 3] == story.sent()
    ids = {t: story.bench.cluster.facts(t).topic_id for t in "bc"}  # type: ignore[union-attr]
    write(story, startpoint_key(P0), Startpoint("order", {"b[0]": 0, "c[0]": 0}, {f"{t}[0]": i for t, i in ids.items()}).to_bytes())
    story.run("b", "c")
    story.run("b", "c")
    story.run("a")  # which is known: it was an input
    assert [1, 2, 3, 4, 5] == story.sent()


def test_without_state_a_job_that_reads_only_other_topics_goes_on_with_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench(tmp_path, Passing, 1, {"a": {}, "b": {}}, stores={})
    for topics in (["a"], ["a", "b"], ["b"], ["a"]):
        bench.input_settings = {topic: {} for topic in topics}
        container = bench.start()
        bench.drain(container)
        container.stop()
        container.close()
    warned = [m for m in caplog.messages if "has read b so far, and now reads only a. If these are two jobs, give each a name of its own" in m]
    assert [1, 1] == [len(warned), sum("has read" in m for m in caplog.messages)]


def test_what_the_policy_says_holds_for_an_input_that_comes_back(tmp_path: Path) -> None:
    story = Story(tmp_path, "a", "b")
    story.feed("a", 10)
    story.run("a", "b")
    story.run("b")
    story.bench.cluster.delete("a")
    story.bench.cluster.create(TopicSpec("a", 1))
    story.feed("a", 3)
    with pytest.raises(OffsetOutOfRange, match=r"a\[0\]: the topic was deleted and created again"):
        story.run("a", "b")
    story.run("a", "b", on_out_of_range="earliest")
    assert list(range(1, 14)) == story.sent()


def test_broadcast_switched_on_and_off_and_on_gives_each_task_each_record_once(tmp_path: Path) -> None:
    story = Story(tmp_path, "a", "b", partitions=2)
    for broadcast in ((), ("b",), (), ("b",)):
        story.bench.broadcast = broadcast
        for topic in ("a", "b"):
            for partition in range(2):
                story.feed(topic, 5, partition)
        checkpoints = story.run("a", "b")
    by_task = {name: checkpoint.inputs for name, checkpoint in checkpoints.items()}
    assert {"Partition 0": {"a[0]", "b[0]", "b[1]"}, "Partition 1": {"a[1]", "b[0]", "b[1]"}} == {n: set(i) for n, i in by_task.items()}
    assert {20} == {mark.next_offset for marks in by_task.values() for mark in marks.values()}
    assert [{"a": 20, "b": 40}] * 2 == [story.bench.changelog(p) for p in range(2)]


def test_an_input_that_left_before_an_order_for_it_was_carried_out(tmp_path: Path) -> None:
    story = Story(tmp_path, "a", "b")
    story.feed("a", 10)
    story.run("a", "b")
    topic_id = story.bench.cluster.facts("a").topic_id  # type: ignore[union-attr]
    write(story, startpoint_key(P0), Startpoint("order", {"a[0]": 4}, {"a[0]": topic_id}).to_bytes())
    story.run("b")
    story.run("a", "b")
    assert sorted([*range(1, 11), *range(5, 11)]) == story.sent()


def test_a_checkpoint_without_inputs_that_left_has_the_bytes_it_always_had(tmp_path: Path) -> None:
    story = Story(tmp_path, "a", "b")
    both = story.run("a", "b")[P0]
    one = story.run("b")[P0]
    assert b'"left"' not in both.to_bytes()
    assert {"a[0]": both.inputs["a[0]"]} == checkpoint_from_bytes(one.to_bytes()).left


# -- stores --------------------------------------------------------------------------------------------------------------------------


def forgetting(story: Story) -> Forgetting:
    bench = story.bench
    settings, process = CoordinatorSettings(), Process("h", 1, "s", lambda host, pid, start: False)
    return Forgetting(JOB, settings, bench.log, bench.clock, process, lambda url: False)


@pytest.mark.parametrize(
    ("stores", "words"),
    [
        ({"more": {}}, r"store 's', .* is not in the job file any more\."),
        ({"more": {}, "renamed": {}}, r"store 's', .* is not in the job file any more, which has 'renamed' instead"),
        (
            {"more": {}, "s": {"changelog": False}},
            r"store 's' has `changelog: false` now; its state in changelog test-1-s-changelog would be emptied",
        ),
    ],
)
def test_a_store_that_vanishes_is_refused_by_name_until_it_is_dropped(tmp_path: Path, stores: dict[str, Any], words: str) -> None:
    story = Story(tmp_path, "a", stores={"s": {}, "more": {}})
    story.feed("a", 3)
    story.run("a")
    if "renamed" in stores:
        story.bench.cluster.create(TopicSpec(JOB.changelog_topic("renamed"), 1, {"cleanup.policy": "compact"}))
    for again in range(2):
        story.bench.stores = stores
        with pytest.raises(StateMismatch, match=words) as refused:
            story.run("a")
        assert "samzapy state drop JOB.yaml s" in refused.value.remedy, again
        story.bench.stores = {"s": {}, "more": {}}  # it lost nothing by that
        assert {"a": 3} == story.bench.changelog()

    story.bench.name(0, "", [])  # so that the epochs of this test and of the command do not meet
    told = forgetting(story).store("s", (), execute=False)
    assert [("s", "more"), ("more",)] == [tuple(sorted(c.stores, reverse=True)) for c in (told.before[0], told.after[0])]
    assert told == forgetting(story).store("s", (), execute=True)
    assert story.bench.cluster.facts(JOB.changelog_topic("s")) is None

    story.bench.stores, story.bench.epoch = stores, 100
    story.bench.task = Silent
    after = story.run("a")[P0]
    assert (3, "s" in after.stores) == (after.inputs["a[0]"].next_offset, False)


class DeletesNothing(MemoryLog):
    """The command ends before it deletes the changelog."""

    def admin(self) -> MemoryAdmin:
        return AdminThatEnds(self._cluster)


class AdminThatEnds(MemoryAdmin):
    def delete(self, names: Iterable[str]) -> None:
        raise KeyboardInterrupt


@pytest.mark.parametrize("some_put_back", [False, True])
def test_a_drop_that_was_cut_short_is_finished_by_the_next_and_the_store_may_come_back(tmp_path: Path, some_put_back: bool) -> None:
    """`some_put_back`: the job ran with the store before, and one of its tasks has it in its checkpoint again."""
    story = Story(tmp_path, "a", partitions=2, stores={"s": {}, "more": {}})
    story.feed("a", 3)  # of task 0 only: the changelog of task 1 is empty
    story.run("a")
    log = story.bench.log
    story.bench.name(0, "", [])
    story.bench.log = DeletesNothing(story.bench.cluster)
    with pytest.raises(KeyboardInterrupt):
        forgetting(story).store("s", (), execute=True)
    story.bench.log, story.bench.epoch = log, 100
    changelog = JOB.changelog_topic("s")
    assert story.bench.cluster.facts(changelog) is not None

    with pytest.raises(StateRefused, match=r"holds 1 records: they are of another job's store, or of one that was dropped") as refused:
        story.run("a")
    assert "run `samzapy state drop JOB.yaml s --execute`, and put it back" in refused.value.remedy
    if some_put_back:
        checkpoint = story.bench.log.plain_producer("checkpoint")
        after = forgetting(story).store("more", (), execute=False).before[1]
        mark = replace(after.stores["more"], topic=changelog, topic_id=story.bench.cluster.facts(changelog).topic_id)  # type: ignore[union-attr]
        checkpoint.send(JOB.checkpoint_topic, after.advanced(stores={**after.stores, "s": mark}).to_bytes(), CHECKPOINT_KEY, 1)

    story.bench.name(0, "", [])
    told = forgetting(story).store("s", (), execute=False)
    assert ([changelog], [1] if some_put_back else []) == ([*told.topics, *told.left_over], sorted(told.before))
    if not some_put_back:
        assert () == forgetting(story).store("s", [changelog], execute=False).left_over  # if another store of the job has it
    assert told == forgetting(story).store("s", (), execute=True)
    assert story.bench.cluster.facts(changelog) is None

    story.bench.cluster.create(TopicSpec(changelog, 2, {"cleanup.policy": "compact"}))
    story.bench.epoch = 200
    story.feed("a", 2)
    story.run("a")
    assert {"a": 2} == story.bench.changelog()


def test_a_topic_that_only_has_the_name_of_a_changelog_is_not_deleted(tmp_path: Path) -> None:
    story = Story(tmp_path, "a")
    story.run("a")
    topic = JOB.changelog_topic("mine")
    story.bench.cluster.create(TopicSpec(topic, 1))
    other = Barrier("another", "1", P0, "mine", 1, "i", "n")
    for key, value in ((b"k", b"v"), (BARRIER_KEY, b"no barrier"), (BARRIER_KEY, other.to_bytes())):
        story.bench.log.plain_producer("user").send(topic, value, key, 0)
    assert Forgotten() == forgetting(story).store("mine", (), execute=True)
    assert story.bench.cluster.facts(topic) is not None


class Silent(StreamTask):
    def process(self, envelope: Any, collector: Any, coordinator: Any) -> None:
        raise AssertionError("its inputs are read")


def test_a_topic_that_is_forgotten_begins_as_a_new_input(tmp_path: Path) -> None:
    story = Story(tmp_path, "a", "b")
    story.feed("a", 2)
    story.feed("b", 2)
    story.run("a", "b")
    story.run("b")
    topic_id = story.bench.cluster.facts("a").topic_id  # type: ignore[union-attr]
    write(story, startpoint_key(P0), Startpoint("order", {"a[0]": 1}, {"a[0]": topic_id}).to_bytes())
    told = forgetting(story).input("a", execute=False)
    assert ([{}], {P0: None}) == ([c.left for c in told.after.values()], told.orders)
    story.bench.name(0, "", [])
    forgetting(story).input("a", execute=True)
    story.bench.epoch = 100
    story.run("a", "b")
    assert [1, 1, 2, 2, 3, 4] == story.sent()


def test_nothing_is_forgotten_while_the_job_runs(tmp_path: Path) -> None:
    story = Story(tmp_path, "a")
    story.feed("a", 2)
    before = story.run("a")
    process = Process("h", 1, "s", lambda host, pid, start: False)
    write(story, LEASE_KEY, LeaseRecord(run_id="another", url="http://there", host="h", pid=2, process_start="s", renewed_ms=story.bench.clock.now_ms()).to_bytes())
    command = Forgetting(JOB, CoordinatorSettings(), story.bench.log, story.bench.clock, process, lambda url: True)
    with pytest.raises(OwnedElsewhere, match="is run by process 2"):
        command.store("s", (), execute=True)
    assert story.bench.cluster.facts(JOB.changelog_topic("s")) is not None
    write(story, LEASE_KEY, LeaseRecord(run_id="another", url="", host="h", pid=2, process_start="s", renewed_ms=story.bench.clock.now_ms(), ended=True).to_bytes())
    assert before[P0].inputs == story.run("a")[P0].inputs


def test_an_output_with_other_partitions_than_the_job_file_says_is_told_each_time(caplog: pytest.LogCaptureFixture) -> None:
    clock = HandClock()
    log = MemoryLog(MemoryCluster(clock))
    log.admin().create([TopicSpec("in", 1), TopicSpec("out", 2)])

    def settings(**output: int) -> Settings:
        outputs = [{"topic": "out", **output}]
        base = {"job": "j", "task": "tests.recovery.chain_task:ChainTask", "kafka": {"bootstrap.servers": "memory:9092"}}
        return settings_from_document({**base, "inputs": [{"topic": "in"}], "outputs": outputs}, {})

    for output in ({}, {"partitions": 2}):
        prepare_topics(settings(**output), log, clock)
        assert ["ok"] == [row[-1] for _, row in topic_rows(settings(**output), log, clock) if row[0] == "out"]
    assert [] == caplog.messages
    prepare_topics(settings(partitions=4), log, clock)
    words = "2 partitions, the job file says 4: records go to those 2"
    assert [True] == [words in message for message in caplog.messages]
    assert [(OK, True)] == [(kind, words in row[-1]) for kind, row in topic_rows(settings(partitions=4), log, clock) if row[0] == "out"]


# -- a checkpoint that its topic does not take ---------------------------------------------------------------------------------------


def test_a_checkpoint_larger_than_its_topic_takes_is_named_with_what_to_do(tmp_path: Path) -> None:
    story = Story(tmp_path, "a", "b")
    story.run("a", "b")
    story.feed("b", 1)
    story.bench.adjust = lambda spec: replace(spec, max_checkpoint_bytes=500)
    story.bench.input_settings = {"b": {}}
    with pytest.raises(
        RecordTooLarge,
        match=r"Partition 0: its checkpoint of \d+ bytes is more than the 372 that __samza_checkpoint_test_1 takes; it names 1 input",
    ):
        story.bench.start()
    with pytest.raises(RecordTooLarge) as refused:
        story.bench.start()
    assert re.search(r"set max\.message\.bytes=\d+ for __samza_checkpoint_test_1", refused.value.remedy)
    assert re.search(r"`samzapy checkpoint forget JOB\.yaml \w+`", refused.value.remedy)
    story.bench.adjust = lambda spec: spec
    story.run("b")
    assert [1] == story.sent()


def pass_time(story: Story, container: Container) -> None:
    for _ in range(20):
        story.bench.clock.passed += 1.0
        container.step(0.0)


def test_a_refused_record_for_a_topic_whose_name_contains_the_checkpoint_topics_is_skipped(tmp_path: Path) -> None:
    class Copying(StreamTask):
        def process(self, envelope, collector, coordinator):
            collector.send(OutgoingMessageEnvelope(SystemStream("kafka", copy), envelope.message, key=envelope.key))

    copy = f"{JOB.checkpoint_topic}-copy"
    bench = Bench(tmp_path, Copying, on_error="skip")
    bench.log.admin().create([TopicSpec(copy, 1)])
    bench.adjust = lambda spec: replace(spec, outputs={copy: replace(spec.outputs["out"], topic=copy)})
    container = bench.start()
    bench.cluster.configure(copy, {"max.message.bytes": "200"})
    bench.feed(("a", 1), ("b" * 1000, 2), ("c", 3))
    for _ in range(60):
        bench.clock.passed += 1.0
        container.step(0.0)
    container.close()
    assert [("a", 1), ("c", 3)] == bench.read(copy)


@pytest.mark.parametrize("on_error", ["fail", "dead_letter"])
def test_a_checkpoint_topic_that_takes_less_while_the_job_runs_is_blamed_on_no_record(tmp_path: Path, on_error: str) -> None:
    story = Story(tmp_path, "a", on_error=on_error)
    container = story.bench.start()
    story.feed("a", 3)
    story.bench.cluster.configure(JOB.checkpoint_topic, {"max.message.bytes": "100"})
    with pytest.raises(TaskError, match="__samza_checkpoint_test_1 no longer accepts checkpoints"):
        pass_time(story, container)
    container.close()
    story.bench.cluster.configure(JOB.checkpoint_topic, {"max.message.bytes": "100000"})
    story.run("a")
    assert ([1, 2, 3], []) == (story.sent(), story.bench.letters())
