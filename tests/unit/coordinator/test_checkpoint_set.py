"""`checkpoint set` on the in-memory log: ordered as a whole or not at all, carried out once, whatever crashes in between."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from samzapy.api.errors import ConfigurationError, LogError, OffsetOutOfRange, OwnedElsewhere, StateRefused
from samzapy.container.partition_watermark import TimeRules
from samzapy.container.spec import TimeSpec
from samzapy.coordinator.checkpoint_set import CheckpointSetOptions
from samzapy.model.barrier import BARRIER_KEY
from samzapy.model.event_time import NEVER
from samzapy.model.offsets import TopicPartition
from samzapy.model.ownership import FIRST_RUN_KEY, LEASE_KEY, FirstRun, LeaseRecord
from samzapy.plan.checkpoint_orders import Choice, Target
from samzapy.readers import read_to_end
from tests.unit.container.bench import JOB
from tests.unit.coordinator.stopped_job import CHANGELOG, EARLIEST, LATEST, P0, P1, AtTheWrite, FailingStart, Story, write

# -- what becomes of state -----------------------------------------------------------------------------------------------------------


def test_state_and_offsets_agree_after_a_reset_as_if_it_had_run_once(tmp_path: Path) -> None:
    story = Story(tmp_path, ("a", 1), ("b", 2), ("a", 3))
    plan = story.set(EARLIEST, reset=True)
    assert {TopicPartition(CHANGELOG, 0): [b"a", b"b"]} == plan.deletions
    assert {} == story.bench.changelog()
    story.run()
    assert {"a": 4, "b": 2} == story.bench.changelog()
    assert [("a", 1), ("b", 2), ("a", 4)] * 2 == story.bench.read("out")


def test_with_the_state_the_positions_of_inputs_that_left_are_forgotten(tmp_path: Path) -> None:
    story = Story(tmp_path, inputs={"in": {}, "more": {}})
    story.bench.feed(("a", 1))
    story.bench.feed(("a", 10), topic="more")
    story.run()
    story.bench.input_settings = {"in": {}}
    story.run()
    assert ((P0, "more[0]", 1),) == story.set(EARLIEST, reset=True).left
    story.run()
    assert {"a": 1} == story.bench.changelog()
    story.bench.input_settings = {"in": {}, "more": {}}
    story.run()
    assert {"a": 11} == story.bench.changelog()


def test_state_that_is_kept_keeps_them(tmp_path: Path) -> None:
    story = Story(tmp_path, inputs={"in": {}, "more": {}})
    story.bench.feed(("a", 10), topic="more")
    story.run()
    story.bench.input_settings = {"in": {}}
    story.run()
    assert () == story.set(EARLIEST).left
    story.bench.input_settings = {"in": {}, "more": {}}
    story.run()
    assert {"a": 10} == story.bench.changelog()


@pytest.mark.parametrize("reset", [True, False])
def test_event_time_is_forgotten_with_the_state_and_kept_with_it(tmp_path: Path, reset: bool) -> None:
    time = TimeSpec(lambda envelope: int(envelope.message), TimeRules())
    story = Story(tmp_path, ("a", 100), inputs={"in": {"time": time}})
    assert {"in": 100} == story.start().tasks[P0].committed.watermarks
    story.set(EARLIEST, reset=reset)
    task = story.start().tasks[P0]
    assert task.time is not None
    assert (NEVER if reset else 100) == task.time.watermark
    assert (NEVER if reset else 100) == task.inputs[0].watermark.newest  # type: ignore[union-attr]


@pytest.mark.parametrize(("host", "source"), [("h", "local"), ("another", "changelog")])
def test_every_host_learns_of_the_reset_from_the_changelog(tmp_path: Path, host: str, source: str) -> None:
    story = Story(tmp_path, ("a", 1), ("gone", 2))
    story.set(LATEST, reset=True)
    story.bench.feed(("a", 5))
    story.bench.adjust = lambda spec: story.bench.spec(host=host)
    container = story.start()
    assert source == container.tasks[P0].restored["s"].source
    story.bench.drain(container)
    assert {"a": 5} == story.bench.changelog()
    container.close()


@pytest.mark.parametrize("keep_after", [False, True])
def test_a_local_store_that_is_older_than_removed_deletions_does_not_bring_the_state_back(tmp_path: Path, keep_after: bool) -> None:
    """The store has all that the checkpoint names; the deletions came after that, and compaction has removed them since."""
    story = Story(tmp_path, ("a", 1), ("gone", 2))
    story.set(LATEST, reset=True)
    if keep_after:
        story.set(LATEST)  # which takes the deletions over
    story.bench.clock.sleep(2 * 86_400)
    story.bench.cluster.compact(CHANGELOG, drop_tombstones=True)
    story.bench.feed(("a", 5))
    container = story.start()
    assert "empty" == container.tasks[P0].restored["s"].source
    assert "too old" in container.tasks[P0].restored["s"].reason
    story.bench.drain(container)
    assert {"a": 5} == dict(container.tasks[P0].stores["s"].all())
    container.close()


def test_what_an_order_deleted_is_no_lost_checkpoint_afterwards(tmp_path: Path) -> None:
    """Deletions come after the changes that the checkpoint before the order names; the one that carries it out names them."""
    story = Story(tmp_path, inputs={"in": {}, "more": {}})
    story.bench.feed(("a", 1), ("gone", 2))
    story.run()
    story.set(LATEST, Choice("more"), reset=True)
    for host in ("first", "second"):
        story.bench.state = tmp_path / host
        container = story.start()
        assert ("changelog", 4) == (container.tasks[P0].restored["s"].source, container.tasks[P0].restored["s"].records)
        container.close()


def test_changes_that_no_checkpoint_names_are_told_although_some_inputs_are_ordered(tmp_path: Path) -> None:
    story = Story(tmp_path, inputs={"in": {}, "more": {}})
    story.bench.feed(("a", 1))
    story.run()
    story.bench.feed(("a", 2))
    story.run()
    lost = story.bench.cluster.partition(TopicPartition(JOB.checkpoint_topic, 0))
    lost.end -= 2  # the checkpoint and its marker, as after an unclean leader election
    lost.records = [r for r in lost.records if r.offset() < lost.end]
    story.set(LATEST, Choice("more"))
    story.bench.state = tmp_path / "another"
    with pytest.raises(StateRefused, match="later checkpoints were lost"):
        story.start()
    story.set(LATEST)
    story.run()
    assert {"a": 3} == story.bench.changelog()


def test_state_that_is_kept_counts_again_what_is_read_again(tmp_path: Path) -> None:
    story = Story(tmp_path, ("a", 1), ("b", 2))
    story.set(EARLIEST)
    story.run()
    assert {"a": 2, "b": 4} == story.bench.changelog()


def test_forward_means_that_records_are_passed_over(tmp_path: Path) -> None:
    story = Story(tmp_path, ("a", 1))
    story.bench.feed(("a", 10), ("a", 100), ("a", 1000))
    story.set(Target(offset=3))
    story.run()
    assert {"a": 1001} == story.bench.changelog()


# -- once ----------------------------------------------------------------------------------------------------------------------------


def test_an_order_is_spent_once_a_checkpoint_has_its_id(tmp_path: Path) -> None:
    story = Story(tmp_path, ("a", 1), ("b", 2))
    story.set(EARLIEST)
    story.run()
    assert story.checkpoint().startpoint_id == story.ledger().startpoints[P0].id
    story.run()
    assert {"a": 2, "b": 4} == story.bench.changelog()
    assert 2 == story.at()


def test_the_order_is_committed_before_init_even_where_nothing_moves(tmp_path: Path) -> None:
    story = Story(tmp_path, ("a", 1))
    story.set(LATEST)
    container = story.start()
    assert 1 == story.at()
    assert story.checkpoint().startpoint_id == story.ledger().startpoints[P0].id
    container.close()


@pytest.mark.parametrize("kind", ["aborted", "in_doubt_lost", "in_doubt_committed", "fenced"])
@pytest.mark.parametrize("commits_before", [0, 1], ids=["barrier", "checkpoint"])
def test_a_start_that_crashes_on_the_way_leaves_the_order_to_the_next(tmp_path: Path, kind: str, commits_before: int) -> None:
    story = Story(tmp_path, ("a", 1), ("b", 2))
    story.set(EARLIEST, reset=True)
    good, story.bench.log = story.bench.log, FailingStart(story.bench.cluster, commits_before, kind)
    with contextlib.suppress(LogError):
        story.start().drop_all()
    story.bench.log = good
    story.run()
    assert ({"a": 1, "b": 2}, 2) == (story.bench.changelog(), story.at())


def test_a_container_that_dies_after_its_first_commit_does_not_go_back_again(tmp_path: Path) -> None:
    story = Story(tmp_path, ("a", 1), ("b", 2))
    story.set(EARLIEST, reset=True)
    container = story.start()
    story.bench.drain(container)
    container.drop_all()
    story.bench.feed(("a", 10))
    story.run()
    assert {"a": 11, "b": 2} == story.bench.changelog()


# -- some inputs only ----------------------------------------------------------------------------------------------------------------


def test_one_partition_is_set_and_the_others_stay_with_their_state(tmp_path: Path) -> None:
    story = Story(tmp_path, ("a", 1), ("b", 2), partitions=2)
    plan = story.set(EARLIEST, Choice(partition=1), reset=True)
    assert [(P1, 2, 0)] == [(s.task, s.before, s.after) for s in plan.steps]
    assert {P1} == set(story.ledger().startpoints)
    assert ({"a": 1, "b": 2}, {}) == (story.bench.changelog(0), story.bench.changelog(1))
    story.run()
    assert ({"a": 1, "b": 2}, {"a": 1, "b": 2}) == (story.bench.changelog(0), story.bench.changelog(1))
    assert ("", 2, 2) == (story.checkpoint(0).startpoint_id, story.at(0), story.at(1))


def test_a_second_order_keeps_what_the_first_said_of_other_inputs(tmp_path: Path) -> None:
    story = Story(tmp_path, inputs={"in": {}, "more": {}})
    story.bench.feed(("a", 1), ("b", 2))
    story.bench.feed(("c", 3), ("d", 4), topic="more")
    story.run()
    story.set(EARLIEST, Choice("in"))
    plan = story.set(Target(offset=1), Choice("more"))
    assert [("in[0]", 0, 0, False), ("more[0]", 2, 1, True)] == [(str(s.topic_partition), s.before, s.after, s.chosen) for s in plan.steps]
    story.run()
    assert {"a": 2, "b": 4, "c": 3, "d": 8} == story.bench.changelog()


def test_a_second_order_does_not_repeat_one_that_is_spent(tmp_path: Path) -> None:
    story = Story(tmp_path, inputs={"in": {}, "more": {}})
    story.bench.feed(("a", 1))
    story.bench.feed(("c", 3), topic="more")
    story.run()
    story.set(EARLIEST, Choice("in"))
    story.run()
    story.set(EARLIEST, Choice("more"))
    assert {"more[0]": 0} == story.ledger().startpoints[P0].offsets
    story.run()
    assert {"a": 2, "c": 6} == story.bench.changelog()


def test_inputs_that_the_job_does_not_have_are_refused_with_those_it_has(tmp_path: Path) -> None:
    story = Story(tmp_path, ("a", 1), partitions=2)
    with pytest.raises(ConfigurationError, match=r"--topic in --partition 7: .*in \(partitions 0 to 1\)"):
        story.set(EARLIEST, Choice("in", 7))


# -- the checkpoint topic is lost ----------------------------------------------------------------------------------------------------


def test_lost_checkpoints_are_told_by_an_order_for_every_input_and_by_no_other(tmp_path: Path) -> None:
    story = Story(tmp_path, ("a", 1), partitions=2)
    first_run = FirstRun(story.bench.cluster.facts(JOB.checkpoint_topic).topic_id, 2)  # type: ignore[union-attr]
    write(story, FIRST_RUN_KEY, first_run.to_bytes())
    story.set(LATEST)  # an order that was carried out long ago says nothing about this
    story.run()
    story.lose(JOB.checkpoint_topic)
    with pytest.raises(StateRefused, match=r"was deleted and created again .* set all inputs in one command"):
        story.set(EARLIEST, Choice(partition=0))
    assert first_run == story.ledger().first_run

    story.set(LATEST)
    assert FirstRun(story.bench.cluster.facts(JOB.checkpoint_topic).topic_id, 2) == story.ledger().first_run  # type: ignore[union-attr]
    story.run()
    assert ({"a": 1}, 1) == (story.bench.changelog(), story.at())


# -- refusals ------------------------------------------------------------------------------------------------------------------------


def test_an_offset_out_of_range_is_refused_with_every_bound_and_the_job_is_given_back(tmp_path: Path) -> None:
    story = Story(tmp_path, ("a", 1), ("b", 2), partitions=2)
    with pytest.raises(ConfigurationError, match=r"--to-offset 3 is out of range: in\[0\] allows 0 to 2 \(its end\), in\[1\] allows 0 to 2 \(its end\)"):
        story.set(Target(offset=3), reset=True)
    ledger = story.ledger()
    assert {} == ledger.startpoints
    assert ledger.lease is not None
    assert ledger.lease.ended
    assert {"a": 1, "b": 2} == story.bench.changelog()


def test_a_look_changes_nothing(tmp_path: Path) -> None:
    story = Story(tmp_path, ("a", 1))
    before = {t: story.bench.cluster.bounds(TopicPartition(t, 0)) for t in (JOB.coordinator_topic, JOB.checkpoint_topic, CHANGELOG)}
    plan = story.checkpoint_set().preview(CheckpointSetOptions(EARLIEST, reset_state=True), story.ledger())
    assert [(P0, 1, 0)] == [(s.task, s.before, s.after) for s in plan.steps]
    assert before == {t: story.bench.cluster.bounds(TopicPartition(t, 0)) for t in before}


def test_a_run_that_answers_is_refused(tmp_path: Path) -> None:
    story = Story(tmp_path, ("a", 1))
    write(story, LEASE_KEY, LeaseRecord(run_id="run", url="http://x", host="h", pid=7, process_start="s", renewed_ms=story.bench.clock.now_ms()).to_bytes())
    with pytest.raises(OwnedElsewhere, match="is run by process 7 on h"):
        story.checkpoint_set(is_alive=lambda url: True).execute(CheckpointSetOptions(EARLIEST))
    assert {} == story.ledger().startpoints


def test_a_container_that_still_runs_is_fenced_and_its_uncommitted_work_never_seen(tmp_path: Path) -> None:
    story = Story(tmp_path, ("a", 1))
    container = story.start()
    story.bench.feed(("a", 10))
    container.step(0.0)
    story.set(EARLIEST, reset=True)
    with pytest.raises(LogError):
        container.commit()
    container.drop_all()
    story.run()
    assert {"a": 11} == story.bench.changelog()
    assert [("a", 1), ("a", 1), ("a", 11)] == story.bench.read("out")


def test_a_run_that_takes_the_job_over_meanwhile_wins(tmp_path: Path) -> None:
    story = Story(tmp_path, ("a", 1))
    lease = LeaseRecord(run_id="another", url="http://x", host="h", pid=7, process_start="s", renewed_ms=1).to_bytes()
    log = AtTheWrite(story.bench.cluster, lambda: write(story, LEASE_KEY, lease))
    with pytest.raises(OwnedElsewhere, match="has taken over"):
        story.set(EARLIEST, reset=True, log=log)
    assert ({}, {"a": 1}) == (story.ledger().startpoints, story.bench.changelog())


@pytest.mark.parametrize(
    ("kind", "error", "is_done"),
    [
        ("in_doubt_committed", None, True),
        ("suspicious", None, True),
        ("in_doubt_lost", LogError, False),
        ("aborted", LogError, False),
        ("fenced", OwnedElsewhere, False),
    ],
)
def test_it_is_ordered_as_a_whole_or_not_at_all(tmp_path: Path, kind: str, error: type[Exception] | None, is_done: bool) -> None:
    story = Story(tmp_path, ("a", 1), ("b", 2))
    log = AtTheWrite(story.bench.cluster, lambda: story.bench.cluster.fail_next("commit", kind))
    if error is None:
        story.set(EARLIEST, reset=True, log=log)
    else:
        with pytest.raises(error):
            story.set(EARLIEST, reset=True, log=log)
    assert (is_done, {} if is_done else {"a": 1, "b": 2}) == (P0 in story.ledger().startpoints, story.bench.changelog())
    story.run()
    assert ({"a": 1, "b": 2}, 2) == (story.bench.changelog(), story.at())


def test_a_changelog_that_another_job_writes_is_not_deleted(tmp_path: Path) -> None:
    story = Story(tmp_path, ("a", 1))
    place = TopicPartition(CHANGELOG, 0)
    batches = read_to_end(story.bench.log.restore_consumer("t"), place, story.bench.clock)
    barrier = [m.value() or b"" for batch in batches for m in batch if m.key() == BARRIER_KEY][-1]
    story.bench.log.plain_producer("x").send(CHANGELOG, barrier.replace(b'"test"', b'"other"'), BARRIER_KEY, 0)
    with pytest.raises(StateRefused, match="belongs to store 's' of other-1, Partition 0; samzapy does not delete it"):
        story.set(EARLIEST, reset=True)
    assert {"a": 1} == story.bench.changelog()


# -- without checkpoints, and later -----------------------------------------------------------------------------------------------------


def test_it_says_where_a_first_start_begins(tmp_path: Path) -> None:
    story = Story(tmp_path)
    story.bench.feed(("a", 1), ("a", 10))
    plan = story.set(Target(offset=1))
    assert [(None, 1)] == [(s.before, s.after) for s in plan.steps]
    story.run()
    assert {"a": 10} == story.bench.changelog()


def test_state_without_a_checkpoint_goes_on_where_every_input_is_told_to(tmp_path: Path) -> None:
    story = Story(tmp_path, ("a", 1))
    story.lose(JOB.checkpoint_topic)
    with pytest.raises(StateRefused, match=r"checkpoint set JOB.yaml --partition 0 --to-latest --keep-state"):
        story.start()
    story.bench.feed(("a", 10))
    story.set(Target(offset=1))
    story.run()
    assert ({"a": 11}, 2) == (story.bench.changelog(), story.at())


def test_state_without_a_checkpoint_is_refused_while_an_input_is_left_open(tmp_path: Path) -> None:
    story = Story(tmp_path, inputs={"in": {}, "more": {}})
    story.bench.feed(("a", 1))
    story.run()
    story.lose(JOB.checkpoint_topic)
    story.set(LATEST, Choice("in"))
    with pytest.raises(StateRefused, match="there is no checkpoint"):
        story.start()
    story.set(LATEST, Choice("more"))
    story.run()
    assert {"a": 1} == story.bench.changelog()


def test_what_became_of_the_input_between_the_order_and_the_start_is_not_passed_over(tmp_path: Path) -> None:
    story = Story(tmp_path, ("a", 1), ("b", 2))
    story.set(EARLIEST)
    story.bench.cluster.partition(TopicPartition("in", 0)).delete_before(1)
    with pytest.raises(OffsetOutOfRange, match="is before the topic's start 1"):
        story.start()
    story.lose("in")
    story.bench.feed(("a", 1))
    with pytest.raises(OffsetOutOfRange, match="deleted and created again"):
        story.start()
    story.set(EARLIEST, reset=True)
    story.run()
    assert {"a": 1} == story.bench.changelog()
