"""The class that a user writes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic

from samzapy.api.context import MessageCollector, TaskContext, TaskCoordinator
from samzapy.api.envelope import IncomingMessageEnvelope
from samzapy.api.type_variables import K, V


class StreamTask(Generic[K, V]):
    """A task of a stream job: one instance per task, single-threaded, records of a partition in offset order.

    Only `process` is required, or `process_batch` in its place. Attributes of `self` are not rolled back when one of them raises and do not
    survive a restart: keep state that must survive in a store.

    `StreamTask[str, int]` tells a type checker of the inputs' keys and messages; without parameters both are Any.
    """

    def init(self, context: TaskContext) -> None:
        """Called once, after the task's stores are restored and before any record."""

    def process(self, envelope: IncomingMessageEnvelope[K, V], collector: MessageCollector, coordinator: TaskCoordinator) -> None:
        """Called for each record. Its puts and sends take effect together when it returns; if it raises, none of them does."""
        raise NotImplementedError(f"{type(self).__name__} must define process(envelope, collector, coordinator)")

    def process_batch(
        self, envelopes: Sequence[IncomingMessageEnvelope[K, V]], collector: MessageCollector, coordinator: TaskCoordinator
    ) -> None:
        """Called in place of `process`, if a class defines it, with records of one partition in the order of their offsets: those in a row that
        a poll brought, 1 to 256 of them. Nothing waits for a batch to fill.

        What it puts and sends takes effect together when it returns. If it raises, none of it does, and it is called again with each of the
        records alone, until one raises alone: `on_error` applies to that one. So records may come twice, and what is not in a store or sent
        must bear that. A key or value that cannot be decoded raises where it is asked for.
        """
        raise NotImplementedError(f"{type(self).__name__} must define process_batch(envelopes, collector, coordinator)")

    def window(self, collector: MessageCollector, coordinator: TaskCoordinator) -> None:
        """Called every `window` (job file), between two records."""

    def end_of_stream(self, collector: MessageCollector, coordinator: TaskCoordinator) -> None:
        """Called once when all the task's inputs have ended (`--until-end`)."""

    def close(self) -> None:
        """Called after the final commit. Store writes raise here."""
