"""When a run is over: a bounded one (`--until-end`) where its inputs are at their ends; any other when its containers have stopped.

An input is at its end, then a task that has read all its inputs, then a container whose tasks have ended, then the job.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from samzapy.model.offsets import TopicPartition
from samzapy.model.states import ContainerOutcome, TaskState
from samzapy.plan.container_phases import Phase
from samzapy.plan.declared_dead import LifeSigns


def run_ends(partitions: Iterable[TopicPartition], made: Collection[str], found: Mapping[str, int]) -> dict[str, int]:
    """Where a bounded run ends, by str(TopicPartition). `made`: the topics that it creates, which are empty; `found`: the ends of the others now."""
    return {str(p): 0 if p.topic in made else found[str(p)] for p in partitions}


def is_input_at_end(end: int | None, next_offset: int, has_sender_ended: bool) -> bool:
    """Whether a task has read an input to its end. One without an end is an internal topic of a bounded run, or of a run that is not bounded.
    `has_sender_ended`: whether it is internal, and the stage that writes it has told that it ended."""
    return has_sender_ended if end is None else next_offset >= end


def has_read_all(are_at_end: Sequence[bool], is_bounded: bool) -> bool:
    """Whether a task has ended, given whether each of its inputs is at its end. One whose inputs have left the job has nothing to read."""
    return is_bounded and all(are_at_end)


def has_container_finished(states: Collection[TaskState], *, has_released: bool, are_starting: bool) -> bool:
    """Whether a container has nothing left to do: every task that it owns has stopped by itself.

    Args:
        states: of the tasks that it holds.
        has_released: whether it has released tasks that its newest record still names.
        are_starting: whether tasks that it owns have not been started yet.
    """
    return bool(states) and not has_released and not are_starting and all(state == TaskState.STOPPED for state in states)


def finished_tasks(facts: LifeSigns, tasks: Iterable[str], is_stopping: bool) -> set[str]:
    """Which of a container's tasks have ended by themselves, and are not started again in this run. While the job stops, nobody needs to know."""
    if facts.outcome != ContainerOutcome.FINISHED or is_stopping or facts.phase not in (Phase.LIVE, Phase.STOPPING):
        return set()
    return set(tasks) - set(facts.not_taken_up)


def has_job_finished(finished: Collection[str], tasks: Iterable[str]) -> bool:
    """Whether all the job's tasks have ended by themselves."""
    return set(finished) >= set(tasks)


def is_run_over(left: Collection[Phase], *, ends_at_once: bool, is_stopping: bool, is_topic_refused: bool, has_finished: bool) -> bool:
    """Whether nothing of a run is waited for any more.

    Args:
        left: the phases of the containers that are not done.
        ends_at_once: without final commits.
        has_finished: all tasks have ended by themselves.
        is_topic_refused: the coordinator topic refuses what is written. When nothing runs any more, the next run ends in it what is left.
    """
    if ends_at_once or not left:  # without containers a task may still be between two, and gets another one
        return ends_at_once or is_stopping or has_finished
    return is_stopping and is_topic_refused and all(phase in (Phase.ENDING, Phase.APPLYING) for phase in left)


def is_stop_overdue(stop_asked_s: float | None, now_s: float, timeout_s: float) -> bool:
    """Whether containers that were asked to stop are ended, because they have not. `stop_asked_s`: when that was; None: nobody asked."""
    return stop_asked_s is not None and now_s - stop_asked_s > timeout_s
