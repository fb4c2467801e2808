"""The running part on the in-memory log: what is committed, what a crash leaves, what each failure does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from samzapy import OutgoingMessageEnvelope, RequestScope, StreamTask, SystemStream, TaskError, failpoints
from samzapy.api.errors import Fenced, InDoubt, LogError, OffsetOutOfRange, StateRefused, Superseded
from samzapy.container.spec import ContainerSpec
from samzapy.model.offsets import TopicPartition
from samzapy.model.stamp import StoreStamp
from samzapy.ports import Change, TaskStore, TopicSpec
from tests.unit.container.bench import JOB, Bench

OUT = SystemStream("kafka", "out")


class Summing(StreamTask):
    """Sum per key in a store, every update sent."""

    def init(self, context):
        self.sums = context.get_store("s")

    def process(self, envelope, collector, coordinator):
        if envelope.message is None:
            self.sums.delete(envelope.key)
            return
        total = (self.sums.get(envelope.key) or 0) + envelope.message
        self.sums.put(envelope.key, total)
        collector.send(OutgoingMessageEnvelope(OUT, key=envelope.key, message=total, partition=envelope.partition))
        if envelope.key == "boom":
            raise ValueError("boom!")


def test_counts_are_committed_and_go_on_after_a_graceful_stop(tmp_path: Path) -> None:
    bench = Bench(tmp_path, Summing)
    bench.feed(("a", 1), ("b", 2), ("a", 3))
    container = bench.start()
    bench.drain(container)
    container.stop()
    container.close()
    assert bench.read("out") == [("a", 1), ("b", 2), ("a", 4)]
    assert bench.changelog() == {"a": 4, "b": 2}
    bench.feed(("a", 10))
    container = bench.start()
    restored = container.tasks["Partition 0"].restored["s"]
    assert (restored.source, restored.records) == ("local", 0)
    bench.drain(container)
    assert bench.read("out")[-1] == ("a", 14)


def test_a_changelog_has_one_record_per_changed_key_and_commit(tmp_path: Path) -> None:
    bench = Bench(tmp_path, Summing)
    bench.feed(*[("a", 1)] * 100)
    container = bench.start()
    bench.drain(container)
    assert bench.read(JOB.changelog_topic("s")) == [("a", 100)]


@pytest.mark.parametrize("exactly_once", [True, False])
def test_a_crash_loses_what_was_not_committed_and_nothing_else(tmp_path: Path, exactly_once: bool) -> None:
    bench = Bench(tmp_path, Summing, exactly_once=exactly_once)
    bench.feed(("a", 1))
    container = bench.start()
    bench.drain(container)
    bench.feed(("a", 2))
    container.step(0.0)  # processed, not committed
    container.close()
    container = bench.start()
    bench.drain(container)
    assert bench.changelog() == {"a": 3}
    assert bench.read("out") == ([("a", 1), ("a", 3)] if exactly_once else [("a", 1), ("a", 3), ("a", 3)])


def test_outputs_that_were_not_delivered_are_never_committed_past(tmp_path: Path) -> None:
    bench = Bench(tmp_path, Summing, exactly_once=False)
    container = bench.start()
    admin, place = bench.log.admin(), TopicPartition("in", 0)
    admin.delete(["out"])  # a broker that takes nothing
    bench.feed(("a", 1))
    container.step(0.0)

    with pytest.raises(InDoubt, match=r"outputs were not delivered: .*out"):
        container.commit()
    assert container.tasks["Partition 0"].committed.inputs[str(place)].next_offset == 0

    admin.create([TopicSpec("out", 1)])
    container.drop_all()
    container.close()
    container = bench.start()
    bench.drain(container)
    assert ([("a", 1)], {"a": 1}) == (bench.read("out"), bench.changelog())


def test_without_local_state_the_changelog_gives_it_back_and_deleted_stays_deleted(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "one", Summing)
    bench.feed(("a", 1), ("gone", 2), ("b", 3))
    container = bench.start()
    bench.drain(container)
    bench.feed(("gone", None))
    bench.drain(container)
    container.stop()
    container.close()
    bench.state = tmp_path / "two"
    container = bench.start()
    restored = container.tasks["Partition 0"].restored["s"]
    assert (restored.source, restored.records) == ("changelog", 4)
    assert dict(container.tasks["Partition 0"].stores["s"].all()) == {"a": 1, "b": 3}


@pytest.mark.parametrize(
    ("call", "kind"),
    [("commit", k) for k in ("aborted", "in_doubt_lost", "in_doubt_committed", "fenced", "suspicious")] + [("flush", "aborted")],
)
def test_whatever_the_broker_does_to_a_commit_each_record_counts_once(tmp_path: Path, call: str, kind: str) -> None:
    bench = Bench(tmp_path, Summing)
    container = bench.start()
    for round_ in range(5):
        bench.feed(("a", 1), ("b", 1))
        if round_ == 2:
            bench.cluster.fail_next(call, kind)
        for _ in range(3):
            try:
                bench.drain(container)
                break
            except (InDoubt, LogError):
                container.start()
    assert bench.changelog() == {"a": 5, "b": 5}
    assert bench.read("out") == [(k, n) for n in range(1, 6) for k in "ab"]
    assert dict(container.tasks["Partition 0"].stores["s"].all()) == {"a": 5, "b": 5}


def test_an_aborted_commit_is_rolled_back_within_the_step_and_replayed(tmp_path: Path) -> None:
    bench = Bench(tmp_path, Summing)
    container = bench.start()
    bench.feed(("a", 1))
    bench.cluster.fail_next("commit", "aborted")
    container.step(0.0)
    bench.clock.passed += 2
    container.step(0.0)  # the commit is due, aborted, rolled back
    assert bench.read("out") == []
    bench.drain(container)
    assert bench.read("out") == [("a", 1)]


def test_three_aborts_without_progress_stop_with_the_cause(tmp_path: Path) -> None:
    bench = Bench(tmp_path, Summing)
    container = bench.start()
    bench.feed(("a", 1))
    for _ in range(3):
        bench.cluster.fail_next("commit", "aborted")
    container.step(0.0)
    bench.clock.passed += 2
    container.step(0.0)  # the commit is due, and aborted; from now on the record is alone in its transaction
    container.step(0.0)
    with pytest.raises(LogError, match=r"3 transactions in a row .* at record in\[0\]@0.*a fault on purpose"):
        container.step(0.0)
    container.stop()
    container.close()
    container = bench.start()
    bench.drain(container)
    assert [("a", 1)] == bench.read("out"), "whoever stopped it committed nothing of what had been aborted"


def test_a_failing_record_is_named_and_what_came_before_is_committed(tmp_path: Path) -> None:
    bench = Bench(tmp_path, Summing)
    bench.feed(("a", 1), ("boom", 1), ("a", 1))
    container = bench.start()
    with pytest.raises(TaskError, match=r"in\[0\]@1.*boom!.*test_container.py"):
        bench.drain(container)
    assert bench.read("out") == [("a", 1)]
    assert bench.changelog() == {"a": 1}


def test_skip_leaves_nothing_of_the_record_and_commits_to_the_end_of_a_bad_partition(tmp_path: Path) -> None:
    bench = Bench(tmp_path, Summing, on_error="skip")
    container = bench.start()
    for _ in range(5):
        bench.feed_raw(b"bad")
    bench.feed(("boom", 1))
    bench.drain(container)
    assert bench.read("out") == []
    assert bench.changelog() == {}
    assert container.tasks["Partition 0"].committed.inputs["in[0]"].next_offset == 6
    assert container.status()["tasks"][0]["skipped"] == 6


def test_a_job_that_sends_and_stores_nothing_commits_to_the_end(tmp_path: Path) -> None:
    class Silent(StreamTask):
        def process(self, envelope, collector, coordinator):
            pass

    bench = Bench(tmp_path, Silent)
    bench.feed(("a", 1), ("b", 1))
    container = bench.start()
    bench.drain(container)
    assert container.tasks["Partition 0"].committed.inputs["in[0]"].next_offset == 2


def test_start_latest_is_decided_once_before_the_first_record(tmp_path: Path) -> None:
    bench = Bench(tmp_path, Summing, inputs={"in": {"start": "latest"}})
    bench.feed(("before", 1))
    container = bench.start()
    bench.feed(("after", 1))
    container.close()  # a crash before the first commit
    bench.feed(("later", 1))
    container = bench.start()
    bench.drain(container)
    assert bench.read("out") == [("after", 1), ("later", 1)]


def test_a_lost_checkpoint_over_state_is_refused(tmp_path: Path) -> None:
    bench = Bench(tmp_path, Summing)
    bench.feed(("a", 1))
    container = bench.start()
    bench.drain(container)
    container.stop()
    container.close()
    facts = bench.cluster.facts(JOB.checkpoint_topic)
    assert facts is not None
    bench.cluster.delete(JOB.checkpoint_topic)
    from samzapy.ports import TopicSpec

    bench.cluster.create(TopicSpec(JOB.checkpoint_topic, facts.partitions))
    with pytest.raises(StateRefused, match=r"no checkpoint.*samzapy reset"):
        bench.start()


def test_another_incarnation_in_the_coordinator_topic_ends_this_one(tmp_path: Path) -> None:
    bench = Bench(tmp_path, Summing)
    old = bench.start()
    old.drop_all()  # its stores are closed, as when its process is gone; it wakes up later
    new = bench.start()
    with pytest.raises(Superseded):
        old.start()
    bench.feed(("a", 1))
    with pytest.raises(Fenced):  # init comes before the check, so the sleeper fenced the owner ...
        bench.drain(new)
    new.start()  # ... which asks again, is still the one that is named, and goes on
    bench.drain(new)
    assert bench.read("out") == [("a", 1)]


def test_a_bounded_run_ends_at_the_ends_fixed_before_and_calls_end_of_stream_once(tmp_path: Path) -> None:
    calls = Counter[str]()

    class Ending(Summing):
        def end_of_stream(self, collector, coordinator):
            calls["end"] += 1
            collector.send(OutgoingMessageEnvelope(OUT, key="end", message=0))

        def close(self):
            calls["close"] += 1
            with pytest.raises(TaskError):
                self.sums.put("late", 1)

    bench = Bench(tmp_path, Ending)
    bench.feed(("a", 1), ("a", 1))
    ends = {"in[0]": 2}
    bench.feed(("beyond", 1))
    container = bench.start(ends)
    bench.drain(container)
    assert container.finished
    container.close()
    assert bench.read("out") == [("a", 1), ("a", 2), ("end", 0)]
    assert calls == {"end": 1, "close": 1}
    again = bench.start(ends)  # a restart of the same run: the task is not called again
    assert again.finished
    assert calls["end"] == 1
    again.close()
    bench.run_id = "next"
    container = bench.start()
    bench.drain(container)
    assert bench.read("out")[-1] == ("beyond", 1)


def test_shutdown_and_commit_requests_take_effect_after_the_record(tmp_path: Path) -> None:
    class Stopping(Summing):
        def process(self, envelope, collector, coordinator):
            super().process(envelope, collector, coordinator)
            if envelope.key == "commit":
                coordinator.commit()
            if envelope.key == "stop":
                coordinator.shutdown(RequestScope.CURRENT_TASK)

    bench = Bench(tmp_path, Stopping, partitions=2)
    bench.feed(("commit", 1), ("x", 1), ("stop", 1), ("y", 1), partition=0)
    bench.feed(("z", 1), partition=1)
    container = bench.start()
    bench.drain(container)
    states = {t.name: t.state for t in container.tasks.values()}
    assert states == {"Partition 0": "STOPPED", "Partition 1": "RUNNING"}
    assert bench.read("out", 0) == [("commit", 1), ("x", 1), ("stop", 1)]
    assert container.tasks["Partition 0"].committed.inputs["in[0]"].next_offset == 3
    container.close()
    for _ in range(2):  # its container dies, more than once
        container = bench.start()
        bench.feed(("more", 1), partition=0)
        bench.drain(container)
        assert container.tasks["Partition 0"].state == "STOPPED"
        assert bench.read("out", 0)[-1] == ("stop", 1)
        container.close()
    bench.run_id = "next"
    container = bench.start()
    bench.drain(container)
    assert [k for k, _ in bench.read("out", 0)[3:]] == ["y", "more", "more"]
    container.close()


@pytest.mark.parametrize("kind", ["aborted", "in_doubt_lost", "in_doubt_committed"])
def test_a_shutdown_holds_if_it_was_committed_and_is_asked_for_again_if_not(tmp_path: Path, kind: str) -> None:
    asked: list[int] = []

    class Stopping(Summing):
        def process(self, envelope, collector, coordinator):
            super().process(envelope, collector, coordinator)
            if envelope.key == "stop":
                asked.append(envelope.offset)
                coordinator.shutdown(RequestScope.CURRENT_TASK)

    bench = Bench(tmp_path, Stopping)
    bench.feed(("x", 1), ("stop", 1), ("y", 1))
    container = bench.start()
    bench.cluster.fail_next("commit", kind)
    try:
        bench.drain(container)
    except InDoubt:
        container.own()
        bench.drain(container)
    assert [1] * (1 if kind == "in_doubt_committed" else 2) == asked
    assert container.tasks["Partition 0"].state == "STOPPED"
    assert [("x", 1), ("stop", 1)] == bench.read("out")
    container.close()


def test_a_bootstrap_input_is_read_to_its_end_before_the_others(tmp_path: Path) -> None:
    seen: list[str] = []

    class Noting(StreamTask):
        def process(self, envelope, collector, coordinator):
            seen.append(f"{envelope.stream}:{envelope.key}")

    bench = Bench(tmp_path, Noting, inputs={"in": {}, "users": {"bootstrap": True}})
    bench.feed(("v1", 1), ("v2", 1))
    bench.feed(("u1", 1), ("u2", 1), topic="users")
    container = bench.start()
    bench.drain(container)
    assert seen == ["users:u1", "users:u2", "in:v1", "in:v2"]


def test_window_is_called_by_the_clock_and_what_it_sends_is_committed(tmp_path: Path) -> None:
    class Windowed(Summing):
        def window(self, collector, coordinator):
            collector.send(OutgoingMessageEnvelope(OUT, key="window", message=1))

    bench = Bench(tmp_path, Windowed, window_s=10.0)
    container = bench.start()
    for _ in range(30):
        bench.clock.passed += 1
        container.step(0.0)
    container.commit()
    assert bench.read("out") == [("window", 1)] * 3


def test_an_input_that_was_replaced_or_truncated_is_never_silent(tmp_path: Path) -> None:
    bench = Bench(tmp_path, Summing)
    bench.feed(("a", 1), ("a", 1))
    container = bench.start()
    bench.drain(container)
    container.stop()
    container.close()
    bench.feed(("a", 1), ("a", 1))
    bench.cluster.delete_records(TopicPartition("in", 0), 3)
    with pytest.raises(OffsetOutOfRange, match="records were removed unread"):
        bench.start()
    bench.input_settings = {"in": {"on_out_of_range": "earliest"}}
    bench.drain(bench.start())
    assert bench.changelog() == {"a": 3}


@pytest.mark.parametrize("records", [[], ["only"], ["a", "a\x00", "ab", "\x00", "", "a\x00b", "ä", "b" * 1000]])
def test_odd_keys_and_short_changelogs_come_back(tmp_path: Path, records: list[str]) -> None:
    bench = Bench(tmp_path / "one", Summing)
    bench.feed(*((key, i) for i, key in enumerate(records)))
    container = bench.start()
    bench.drain(container)
    container.close()  # a crash
    bench.state = tmp_path / "two"
    container = bench.start()
    store = container.tasks["Partition 0"].stores["s"]
    assert dict(store.all()) == {key: i for i, key in enumerate(records)}
    assert [k for k, _ in store.all()] == sorted(records, key=str.encode)
    assert [k for k, _ in store.prefix("a")] == sorted((k for k in records if k.startswith("a")), key=str.encode)
    restored = container.tasks["Partition 0"].restored["s"]
    assert (restored.source, restored.records) == ("changelog" if records else "empty", len(records))


def test_a_restart_after_a_restore_that_was_cut_short_goes_on_from_where_it_was(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "one", Summing)
    bench.feed(*((f"k{i}", i) for i in range(5000)))
    container = bench.start()
    bench.drain(container)
    container.close()
    bench.state = tmp_path / "two"
    bench.adjust = _cut_after_the_first_load
    with pytest.raises(Cut):
        bench.start()
    bench.adjust = lambda spec: spec
    container = bench.start()
    restored = container.tasks["Partition 0"].restored["s"]
    assert restored.source == "local"
    assert 0 < restored.records < 5000
    assert len(dict(container.tasks["Partition 0"].stores["s"].all())) == 5000


class Cut(Exception):
    """The restore ends here, as if the process had."""


def _cut_after_the_first_load(spec: ContainerSpec) -> ContainerSpec:
    store = spec.stores["s"]
    return replace(spec, stores={"s": replace(store, make=lambda task, engine: _Cutting(store.make(task, engine)))})


def test_stores_are_flushed_after_so_many_changes_so_that_a_restart_reads_little(tmp_path: Path) -> None:
    bench = Bench(tmp_path, Summing, flush_changes=20)
    container = bench.start()
    flushed: list[int] = []
    with failpoints.calling(lambda point: flushed.append(round_) if point == "store.flush.after" else None):
        for round_ in range(10):
            bench.feed(*((f"k{i}", round_) for i in range(7)))
            bench.drain(container)
            bench.clock.sleep(0.1)
            container.step(0.0)
    assert [2, 5, 8] == flushed
    assert 5.0 > bench.clock.passed, "it was time that made them flush"


class _Cutting:
    """A store that takes one load, keeps it, and is gone."""

    def __init__(self, store: TaskStore) -> None:
        self._store = store

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)

    def load(self, records: Sequence[Change], stamp: StoreStamp) -> None:
        self._store.load(records, stamp)
        self._store.flush()
        self._store.close()
        raise Cut
