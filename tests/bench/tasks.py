"""The tasks that are measured, written as a user would write them."""

from __future__ import annotations

from typing import Any

import msgspec

from samzapy import StreamTask


class Project(StreamTask):
    """W1: what costs less than 5, in two fields."""

    def init(self, context: Any) -> None:
        self.out = context.params["out"]

    def process(self, envelope: Any, collector: Any, coordinator: Any) -> None:
        record = envelope.message
        if record["amount"] < 5.0:
            collector.send(self.out, {"user": record["user"], "amount": record["amount"]}, envelope.key)


class CountAndSum(StreamTask):
    """W2: count and sum of each user, an update for each record."""

    def init(self, context: Any) -> None:
        self.out = context.params["out"]
        self.sums = context.get_store("sums")

    def process(self, envelope: Any, collector: Any, coordinator: Any) -> None:
        record = envelope.message
        state = self.sums.get(envelope.key)
        if state is None:
            state = {"c": 0, "s": 0.0}
        state["c"] += 1
        state["s"] += record["amount"]
        self.sums.put(envelope.key, state)
        collector.send(self.out, {"user": record["user"], "c": state["c"], "s": state["s"]}, envelope.key)


class View(msgspec.Struct):
    """What a record says."""

    user: str
    amount: float


class Totals(msgspec.Struct):
    """What is kept of a user."""

    c: int = 0
    s: float = 0.0


class Update(msgspec.Struct):
    """What is sent of a user."""

    user: str
    c: int
    s: float


class CountAndSumTyped(CountAndSum):
    """The same, with records, state and updates as classes."""

    def process(self, envelope: Any, collector: Any, coordinator: Any) -> None:
        record = envelope.message
        state = self.sums.get(envelope.key)
        if state is None:
            state = Totals()
        state.c += 1
        state.s += record.amount
        self.sums.put(envelope.key, state)
        collector.send(self.out, Update(record.user, state.c, state.s), envelope.key)


class ProjectBatches(Project):
    """The same, by the batch."""

    def process_batch(self, envelopes: Any, collector: Any, coordinator: Any) -> None:
        send, out = collector.send, self.out
        for envelope in envelopes:
            record = envelope.message
            if record["amount"] < 5.0:
                send(out, {"user": record["user"], "amount": record["amount"]}, envelope.key)


class Cheap(msgspec.Struct):
    """What is sent of a record that costs less than 5."""

    user: str
    amount: float


class ProjectTypedBatches(Project):
    """With classes, by the batch."""

    def process_batch(self, envelopes: Any, collector: Any, coordinator: Any) -> None:
        send, out = collector.send, self.out
        for envelope in envelopes:
            record = envelope.message
            if record.amount < 5.0:
                send(out, Cheap(record.user, record.amount), envelope.key)


class CountAndSumBatches(CountAndSum):
    """The same, by the batch."""

    def process_batch(self, envelopes: Any, collector: Any, coordinator: Any) -> None:
        get, put, send, out = self.sums.get, self.sums.put, collector.send, self.out
        for envelope in envelopes:
            record, key = envelope.message, envelope.key
            state = get(key)
            if state is None:
                state = {"c": 0, "s": 0.0}
            state["c"] += 1
            state["s"] += record["amount"]
            put(key, state)
            send(out, {"user": record["user"], "c": state["c"], "s": state["s"]}, key)


class CountAndSumTypedBatches(CountAndSum):
    """With classes, by the batch."""

    def process_batch(self, envelopes: Any, collector: Any, coordinator: Any) -> None:
        get, put, send, out = self.sums.get, self.sums.put, collector.send, self.out
        for envelope in envelopes:
            record, key = envelope.message, envelope.key
            state = get(key) or Totals()
            state.c += 1
            state.s += record.amount
            put(key, state)
            send(out, Update(record.user, state.c, state.s), key)


class CountTimed(CountAndSum):
    """The same count, with the time that the record carries, so that whoever reads the update knows how old it is."""

    def process(self, envelope: Any, collector: Any, coordinator: Any) -> None:
        record = envelope.message
        count = (self.sums.get(envelope.key) or 0) + 1
        self.sums.put(envelope.key, count)
        collector.send(self.out, {"c": count, "t": record["t"]}, envelope.key)


class Keep(StreamTask):
    """Keeps the last value of each key: state of any size."""

    def init(self, context: Any) -> None:
        self.kept = context.get_store("kept")

    def process(self, envelope: Any, collector: Any, coordinator: Any) -> None:
        self.kept.put(envelope.key, envelope.message)
