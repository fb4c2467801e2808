"""Places that are left by an error or a pause where that is seldom: what others asked for, held back or keep is not lost by it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from samzapy import StreamTask
from samzapy.container.pausing import Paused
from samzapy.container.standby import Standbys
from samzapy.kafka.consumer import KafkaConsumer
from samzapy.model.offsets import Bounds, TopicPartition
from samzapy.store.problems import StoreDiskFull
from tests.unit.container.bench import Bench

PARTITION = TopicPartition("in", 0)


class Asking(StreamTask):
    """The first task asks for a commit at each record, the second one fails."""

    def init(self, context):
        self.is_first = context.task_name == "Partition 0"

    def process(self, envelope, collector, coordinator):
        if not self.is_first:
            raise ValueError("not now")
        coordinator.commit()


def test_what_one_reader_of_a_record_asked_for_is_done_though_a_pause_begins_while_another_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench(tmp_path, Asking, partitions=2, broadcast=("all",), inputs={"in": {}, "all": {}}, stores={})
    container = bench.start()

    def paused(*_: object) -> None:
        raise Paused

    monkeypatch.setattr(container._processing, "_failed", paused)
    bench.feed(("a", 1), topic="all", partition=0)
    batch = next(filter(None, (container._inputs.poll(10, 0.0) for _ in range(10))))
    with pytest.raises(Paused):
        container._processing.run(batch)
    assert container._processing._requests.pending


class Full:
    """A store on a disk that is full."""

    def __init__(self) -> None:
        self.was_closed = False

    def flush(self) -> None:
        raise StoreDiskFull("the disk is full.", "")

    def close(self) -> None:
        self.was_closed = True
        raise StoreDiskFull("the disk is full.", "")


class Copy:
    def __init__(self, bench: Bench) -> None:
        self.task = next(iter(bench.spec().tasks.values()))
        self.store, self.pending = Full(), []


@pytest.mark.parametrize("how", ["leave", "give up"])
def test_a_warm_copy_that_cannot_be_written_stops_no_task(tmp_path: Path, how: str) -> None:
    bench = Bench(tmp_path, Asking)
    standbys, copy = Standbys(bench.spec(), bench.log, bench.clock), Copy(bench)
    standbys._copies = {PARTITION: copy}  # type: ignore[dict-item]
    standbys._write = lambda copy: None  # type: ignore[method-assign]
    if how == "leave":
        standbys.leave(copy.task.name)
    else:
        standbys._give_up(StoreDiskFull("the disk is full.", ""))
    assert copy.store.was_closed
    assert not standbys._copies


class Client:
    """confluent_kafka.Consumer: notes what is paused."""

    def __init__(self) -> None:
        self.paused: set[tuple[str, int]] = set()

    def pause(self, partitions: list[Any]) -> None:
        self.paused |= {(p.topic, p.partition) for p in partitions}

    def resume(self, partitions: list[Any]) -> None:
        self.paused -= {(p.topic, p.partition) for p in partitions}

    def incremental_assign(self, partitions: list[Any]) -> None:
        pass

    incremental_unassign = incremental_assign


@pytest.mark.parametrize("is_paused", [True, False])
def test_an_answer_that_was_late_does_not_end_a_pause(monkeypatch: pytest.MonkeyPatch, is_paused: bool) -> None:
    """"Out of range", of an earlier fetch: the position is in range, so the partition is read on from there, by a seek."""
    consumer = KafkaConsumer({"bootstrap.servers": "127.0.0.1:1"}, "g", "c")
    client = consumer._consumer = Client()  # type: ignore[assignment]
    consumer._assigned, consumer._known = {PARTITION: 0}, {PARTITION}
    monkeypatch.setattr(consumer, "bounds", lambda _: Bounds(0, 10))
    monkeypatch.setattr(consumer, "positions", lambda _: {PARTITION: 5})
    if is_paused:
        consumer.pause([PARTITION])
    assert consumer._out_of_range(PARTITION) is None
    assert client.paused == ({PARTITION} if is_paused else set())
    consumer.resume([PARTITION])
    assert not client.paused
    assert not consumer._paused
