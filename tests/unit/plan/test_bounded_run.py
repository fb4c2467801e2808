"""When a run is over."""

from __future__ import annotations

import pytest

from samzapy.model.offsets import TopicPartition
from samzapy.model.states import ContainerOutcome, TaskState
from samzapy.plan.bounded_run import (
    finished_tasks,
    has_container_finished,
    has_job_finished,
    has_read_all,
    is_input_at_end,
    is_run_over,
    is_stop_overdue,
    run_ends,
)
from samzapy.plan.container_phases import Phase
from samzapy.plan.declared_dead import LifeSigns


def test_a_run_ends_where_its_topics_end_now_and_those_that_it_makes_at_their_beginning() -> None:
    read = [TopicPartition("old", 0), TopicPartition("old", 1), TopicPartition("made", 0)]
    assert run_ends(read, {"made"}, {"old[0]": 7, "old[1]": 0}) == {"old[0]": 7, "old[1]": 0, "made[0]": 0}


@pytest.mark.parametrize(
    ("end", "next_offset", "has_sender_ended", "is_at_end"),
    [(10, 9, False, False), (10, 10, False, True), (10, 11, False, True), (0, 0, False, True), (None, 0, False, False), (None, 0, True, True), (10, 9, True, False)],
)
def test_an_input_is_at_its_end_by_its_offset_and_an_internal_one_by_its_sender(end: int | None, next_offset: int, has_sender_ended: bool, is_at_end: bool) -> None:
    assert is_input_at_end(end, next_offset, has_sender_ended) is is_at_end


def test_a_task_has_ended_when_all_its_inputs_have_and_one_without_inputs_never() -> None:
    assert has_read_all([True, True], is_bounded=True)
    assert not has_read_all([True, False], is_bounded=True)
    assert has_read_all([], is_bounded=True)
    assert not has_read_all([], is_bounded=False)


RUNNING, STOPPED = TaskState.RUNNING, TaskState.STOPPED


@pytest.mark.parametrize(
    ("states", "has_released", "are_starting", "has_finished"),
    [
        ([STOPPED, STOPPED], False, False, True),
        ([STOPPED, RUNNING], False, False, False),
        ([], False, False, False),
        ([STOPPED], True, False, False),
        ([STOPPED], False, True, False),
    ],
)
def test_a_container_has_finished_when_all_that_it_owns_has_stopped(
    states: list[TaskState], has_released: bool, are_starting: bool, has_finished: bool
) -> None:
    assert has_container_finished(states, has_released=has_released, are_starting=are_starting) is has_finished


def test_the_tasks_of_a_container_that_finished_are_finished_except_those_that_it_did_not_take_up() -> None:
    facts = LifeSigns(phase=Phase.LIVE, outcome=ContainerOutcome.FINISHED, not_taken_up=("b",))
    assert finished_tasks(facts, ["a", "b"], is_stopping=False) == {"a"}
    assert finished_tasks(facts, ["a", "b"], is_stopping=True) == set()
    assert finished_tasks(LifeSigns(phase=Phase.LIVE, outcome=ContainerOutcome.STOPPED), ["a"], is_stopping=False) == set()
    assert finished_tasks(LifeSigns(phase=Phase.ENDING, outcome=ContainerOutcome.FINISHED), ["a"], is_stopping=False) == set()


def test_a_job_has_finished_with_its_last_task() -> None:
    assert not has_job_finished({"a"}, ["a", "b"])
    assert has_job_finished({"a", "b", "of another count"}, ["a", "b"])


@pytest.mark.parametrize(
    ("left", "facts", "is_over"),
    [
        ([], {"has_finished": True}, True),
        ([], {}, False),  # a task is between two containers
        ([], {"is_stopping": True}, True),
        ([], {"ends_at_once": True}, True),
        ([Phase.LIVE], {"has_finished": True}, False),
        ([Phase.LIVE], {"ends_at_once": True}, True),
        ([Phase.STOPPING], {"is_stopping": True, "is_topic_refused": True}, False),
        ([Phase.ENDING, Phase.APPLYING], {"is_stopping": True, "is_topic_refused": True}, True),
        ([Phase.ENDING], {"is_stopping": True}, False),
        ([Phase.ENDING], {"is_topic_refused": True}, False),
    ],
)
def test_a_run_is_over_when_no_container_is_waited_for(left: list[Phase], facts: dict[str, bool], is_over: bool) -> None:
    assert is_run_over(left, **{"ends_at_once": False, "is_stopping": False, "is_topic_refused": False, "has_finished": False, **facts}) is is_over


def test_a_stop_is_overdue_after_its_time() -> None:
    assert not is_stop_overdue(None, 1000.0, 60.0)
    assert not is_stop_overdue(10.0, 70.0, 60.0)
    assert is_stop_overdue(10.0, 70.5, 60.0)
