"""A task's bootstrap inputs, which are read before its others, and the ends of a bounded run."""

from __future__ import annotations

from collections.abc import Mapping

from samzapy.container.task_instance import TaskInput, TaskInstance
from samzapy.model.offsets import TopicPartition
from samzapy.model.states import TaskState
from samzapy.plan.bounded_run import is_input_at_end


def open_gates(task: TaskInstance, here: Mapping[TopicPartition, int]) -> None:
    """Of the bootstrap inputs that have reached theirs. `here`: the next offset of each input."""
    for task_input in task.inputs:
        if task_input.gate is not None and here[task_input.partition] >= task_input.gate:
            task_input.gate = None
    if task.state == TaskState.BOOTSTRAPPING and all(task_input.gate is None for task_input in task.inputs):
        task.state = TaskState.RUNNING


def mark_ends(task: TaskInstance, here: Mapping[TopicPartition, int]) -> None:
    """Mark the inputs that are at their end. `here`: the next offset of each."""
    for task_input in task.inputs:
        watermark, end = task_input.watermark, task_input.end
        has_sender_ended = task_input.spec.between is not None and watermark is not None and watermark.ended
        next_offset = 0 if end is None else max(here[task_input.partition], task_input.resume_at)
        if not task_input.ended and is_input_at_end(end, next_offset, has_sender_ended):
            task_input.ended = True
            if watermark is not None:
                watermark.ended = True


def must_wait(task_input: TaskInput) -> bool:
    """Until its task's bootstrap inputs have been read."""
    return task_input.task.state == TaskState.BOOTSTRAPPING and task_input.gate is None and not task_input.spec.bootstrap
