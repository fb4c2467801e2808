"""The class that a user writes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic

from samzapy.api.context import MessageCollector, TaskContext, TaskCoordinator
from samzapy.api.envelope import IncomingMessageEnvelope
from samzapy.api.type_variables import K, V


class StreamTask(Generic[K, V]):
    """The base class of a user's task, as in Apache Samza. Each task has its own object of the class. All methods are called from one thread; records of a
    partition come in the order of their offsets.

    A class must define `process`, or `process_batch` instead. Attributes of `self` keep what a failed call did to them, and are lost at an abort or a
    restart: keep state that must last in a store.

    An exception of `process` or `process_batch` is handled as `on_error` says; one of any other method stops the job.

    `StreamTask[str, int]` tells a type checker that the inputs' keys are str and their messages int; without parameters both are Any.
    """

    def init(self, context: TaskContext) -> None:
        """Called once for each task object, after the task's stores are restored and before any record."""

    def process(self, envelope: IncomingMessageEnvelope[K, V], collector: MessageCollector, coordinator: TaskCoordinator) -> None:
        """Called for each record. What it puts and sends takes effect when it returns, all together; if it raises, nothing does."""
        raise NotImplementedError(f"{type(self).__name__} must define process(envelope, collector, coordinator)")

    def process_batch(
        self, envelopes: Sequence[IncomingMessageEnvelope[K, V]], collector: MessageCollector, coordinator: TaskCoordinator
    ) -> None:
        """Called instead of `process`, if the class defines it, with 1 to 256 records of one partition, in the order of their offsets. It gets the records
        that have arrived: nothing waits for a batch to fill.

        What it puts and sends takes effect when it returns, all together. If it raises, nothing does, and it is called again with one record at a
        time, until one fails: `on_error` applies to that record. So a record may be given twice; effects outside of stores and sends must allow
        for that. A key or value that cannot be decoded raises SerdeError when it is read from the envelope.
        """
        raise NotImplementedError(f"{type(self).__name__} must define process_batch(envelopes, collector, coordinator)")

    def window(self, collector: MessageCollector, coordinator: TaskCoordinator) -> None:
        """Called at the interval that the job file sets with `window` ("10s"), between two records. Not related to the windows of programs."""

    def end_of_stream(self, collector: MessageCollector, coordinator: TaskCoordinator) -> None:
        """Called once in a bounded run (`--until-end`), when the task has read all its inputs to their ends. It may still put and send."""

    def close(self) -> None:
        """Called after the task's last commit, when it stops or moves to another container. It may still read stores; a write raises StoreClosed. It is not called
        after a crash or an abort."""
