"""The class that a user writes."""

from __future__ import annotations

from typing import Generic

from samzapy.api.context import MessageCollector, TaskContext, TaskCoordinator
from samzapy.api.envelope import IncomingMessageEnvelope
from samzapy.api.type_variables import K, V


class StreamTask(Generic[K, V]):
    """A task of a stream job: one instance per task, single-threaded, records of a partition in offset order.

    Only `process` is required. Attributes of `self` are not rolled back when `process` raises and do not survive a restart: keep state that
    must survive in a store.

    `StreamTask[str, int]` tells a type checker of the inputs' keys and messages; without parameters both are Any.
    """

    def init(self, context: TaskContext) -> None:
        """Called once, after the task's stores are restored and before any record."""

    def process(self, envelope: IncomingMessageEnvelope[K, V], collector: MessageCollector, coordinator: TaskCoordinator) -> None:
        """Called for each record. Its puts and sends take effect together when it returns; if it raises, none of them does."""
        raise NotImplementedError(f"{type(self).__name__} must define process(envelope, collector, coordinator)")

    def window(self, collector: MessageCollector, coordinator: TaskCoordinator) -> None:
        """Called every `window` (job file), between two records."""

    def end_of_stream(self, collector: MessageCollector, coordinator: TaskCoordinator) -> None:
        """Called once when all the task's inputs have ended (`--until-end`)."""

    def close(self) -> None:
        """Called after the final commit. Store writes raise here."""
