"""The task of the simulation, and what must have come of it: a pure function of what its topics hold.

A hash chain over each input partition, as in `chain_task`, so that any record lost, doubled or moved shows in all after it; besides that
what else can go wrong leaves a trace here. A count is deleted now and then (a tombstone that is missed brings it back). Every output tells how
many entries of a bootstrap table were there (a gate that opens too early shows). `end_of_stream` counts itself by run (a second call
shows). A hook may take its time (a commit then falls into the middle of a batch).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from samzapy import OutgoingMessageEnvelope, StreamTask, SystemStream
from tests.recovery.chain_task import GENESIS, link

INPUT, SECOND, TABLE, OUTPUT, ENDS = "sim-in", "sim-in-too", "sim-table", "sim-out", "sim-ends"
CHAIN, COUNTS, USERS = "chain", "counts", "users"
KEYS = 12
ENDED = "ended/"


def doomed_key(head: str) -> str | None:
    """The count that the record with this head deletes, if it deletes one."""
    return f"key-{int(head[4:8], 16) % KEYS}" if int(head[:4], 16) % 4 == 0 else None


class SimTask(StreamTask):
    """One output per record of INPUT: {number, offset, head, count, table}; TABLE is kept in a store.

    Args:
        pause: called after each record, with whether it is of TABLE; it may take virtual time.
        seen: told the task's name when `init` was called.
    """

    def __init__(self, pause: Callable[[bool], None], seen: Callable[[str], None]) -> None:
        self.pause, self.seen = pause, seen

    def init(self, context: Any) -> None:
        self.partition = next(iter(context.partitions)).partition
        self.run_id = context.job.run_id
        self.out, self.ends = SystemStream("kafka", OUTPUT), SystemStream("kafka", ENDS)
        self.chain, self.counts = context.get_store(CHAIN), context.get_store(COUNTS)
        self.users = context.get_store(USERS) if context.params["table"] else None
        self.has_all = context.params["table_of_all"]
        self.seen(context.task_name)

    def process(self, envelope: Any, collector: Any, coordinator: Any) -> None:
        if envelope.stream == TABLE:
            self.users.put(f"{envelope.partition}/{envelope.key}" if self.has_all else envelope.key, envelope.message)
            self.pause(True)
            return
        place = str(envelope.partition)
        before = self.chain.get(place) or {"number": 0, "head": GENESIS}
        after = {
            "number": before["number"] + 1,
            "head": link(before["head"], envelope.offset, envelope.key.encode(), envelope.message),
        }
        count = (self.counts.get(envelope.key) or 0) + 1
        self.chain.put(place, after)
        self.counts.put(envelope.key, count)
        gone = doomed_key(after["head"])
        if gone is not None:
            self.counts.delete(gone)
        entries = -1 if self.users is None else len(list(self.users.all()))
        message = {**after, "offset": envelope.offset, "count": count, "table": entries}
        collector.send(OutgoingMessageEnvelope(self.out, message, envelope.key, partition=envelope.partition))
        self.pause(False)

    def end_of_stream(self, collector: Any, coordinator: Any) -> None:
        key = ENDED + self.run_id
        self.counts.put(key, (self.counts.get(key) or 0) + 1)
        collector.send(OutgoingMessageEnvelope(self.ends, self.counts.get(key), self.run_id, partition=self.partition))


class BatchTask(SimTask):
    """The same by the batch; a batch fails now and then, with some of its records done, though none of them would alone.

    Args:
        fails: whether the next batch of several records does.
    """

    def __init__(self, pause: Callable[[bool], None], seen: Callable[[str], None], fails: Callable[[], bool]) -> None:
        super().__init__(pause, seen)
        self.fails = fails

    def process_batch(self, envelopes: Sequence[Any], collector: Any, coordinator: Any) -> None:
        done = len(envelopes) // 2 if len(envelopes) > 1 and self.fails() else len(envelopes)
        for envelope in envelopes[:done]:
            self.process(envelope, collector, coordinator)
        if done < len(envelopes):
            raise ValueError("this batch fails")


class In(NamedTuple):
    """A committed input record."""

    offset: int
    key: str
    value: bytes


@dataclass(slots=True)
class Model:
    """What must have come of one input partition up to a record."""

    partition: int
    number: int = 0
    head: str = GENESIS
    counts: dict[str, int] = field(default_factory=dict)
    outputs: dict[int, dict[str, Any]] = field(default_factory=dict)  # by input offset, in order, without "table"

    def take(self, record: In) -> None:
        self.number += 1
        self.head = link(self.head, record.offset, record.key.encode(), record.value)
        count = self.counts[record.key] = self.counts.get(record.key, 0) + 1
        gone = doomed_key(self.head)
        if gone is not None:
            self.counts.pop(gone, None)
        self.outputs[record.offset] = {"number": self.number, "head": self.head, "offset": record.offset, "count": count, "key": record.key}

    def chain(self) -> dict[str, Any]:
        return {str(self.partition): {"number": self.number, "head": self.head}} if self.number else {}


def model(partition: int, records: Iterable[In]) -> Model:
    """What must have been committed when exactly these records were processed, in this order."""
    made = Model(partition)
    for record in records:
        made.take(record)
    return made


def document(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The job file. `settings`: exactly_once, containers, standby, table, table_of_all, start. With `table_of_all` each task has the whole table, which no
    changelog keeps: it is read again at each start."""
    table = settings["table"]
    stores: dict[str, Any] = {
        CHAIN: {"key": "string", "value": "json"},
        COUNTS: {"key": "string", "value": "integer"},
        "scratch": {"changelog": False},
    }
    inputs: list[dict[str, Any]] = [{"topic": INPUT, "key": "string", "start": settings["start"]}]
    if table:
        stores[USERS] = {"key": "string", "value": "bytes", "changelog": not settings["table_of_all"]}
        inputs.append({"topic": TABLE, "key": "string", "bootstrap": True, "broadcast": settings["table_of_all"]})
    return {
        "job": "sim", "task": "tests.recovery.sim_task:SimTask", "params": {"table": table, "table_of_all": settings["table_of_all"]},
        "kafka": {"bootstrap.servers": "memory:9092"},
        "inputs": inputs,
        "outputs": [{"topic": OUTPUT, "key": "string", "value": "json"}, {"topic": ENDS, "key": "string", "value": "integer"}],
        "stores": stores,
        "commit": {
            "interval": "400ms", "timeout": "10s", "guarantee": "exactly_once" if settings["exactly_once"] else "at_least_once",
        },
        "containers": {
            "count": settings["containers"], "lease": "3s", "heartbeat": "500ms", "host_affinity": "500ms", "max_restarts": 100,
            "restart_window": "10s", "standby": settings["standby"],
        },
    }  # fmt: skip


def pausing(draw: random.Random, sleep: Callable[[float], None], odds: float) -> Callable[[bool], None]:
    """A hook that sometimes takes its time, and where it does, takes it more often for the table."""

    def pause(is_table: bool) -> None:
        if odds and draw.random() < (0.5 if is_table else odds):
            sleep(draw.random() * 0.04)

    return pause
