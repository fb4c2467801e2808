"""A stage is put before a table or a window that has state: whether the keys stay with the tasks that have it depends on who placed them so far."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

import pytest

from samzapy.api.errors import StateMismatch
from samzapy.config.document import settings_from_document
from samzapy.model.key_partition import partition_of_key
from samzapy.ops.inspection import job_in_kafka, readable_checkpoints
from samzapy.ops.moved_keys import moved_keys
from samzapy.plan.forgetting import OF_INTERNAL
from samzapy.streams import App, Stream, tumbling
from samzapy.streams.expand import sections
from samzapy.streams.operators.rows import key_in_row
from samzapy.testing import Harness
from samzapy.wiring.program import program_tasks

T0 = 1_600_000_000_000
PARTITIONS = 4


def counted(stream: Stream[str, str]) -> None:
    stream.count("store").to("out")


def windowed(stream: Stream[str, str]) -> None:
    stream.window(tumbling("10s")).count("store").to("out")


def program(make: Callable[[Stream[str, str]], None], partitions: int | None = None) -> App:
    app = App()
    stream = app.stream("in", key=str, value=str, watermark_delay="0s")
    make(stream if partitions is None else stream.key_by(lambda value: value, "by-value", key=str, partitions=partitions))
    return app


def by_murmur2(key: str) -> int:
    return partition_of_key(key.encode(), PARTITIONS)


def by_crc32(key: str) -> int:
    return zlib.crc32(key.encode()) % PARTITIONS


def refusal(app: App, h: Harness) -> StateMismatch | None:
    document: dict[str, Any] = {"job": "test", "app": "program:app", "kafka": {"bootstrap.servers": "x:1"}, **sections(app.graph, {}, {}).to_json()}
    settings = settings_from_document(document, {})
    facts = job_in_kafka(settings, h.log)
    key_of = program_tasks(settings, (), app, False, None).key_of
    return moved_keys(settings, key_of, facts.tasks, readable_checkpoints(settings, facts, h.log, h.clock), h.log, h.clock)


def fill(h: Harness, place: Callable[[str], int]) -> None:
    for n in range(40):
        h.send("in", f"k{n}", key=f"k{n}", partition=place(f"k{n}"), timestamp=T0 + n)
    h.run()


@pytest.mark.parametrize("make", [counted, windowed])
@pytest.mark.parametrize("place", [by_murmur2, by_crc32])
def test_keys_are_looked_at_where_they_come_through_an_internal_topic_only_now(make: Callable[[Stream[str, str]], None], place: Callable[[str], int]) -> None:
    with Harness(program(make), tasks=PARTITIONS) as h:
        fill(h, place)
        assert refusal(program(make), h) is None
        refused = refusal(program(make, PARTITIONS), h)
        if place is by_murmur2:
            assert refused is None
            h.restart(program(make, PARTITIONS))
            h.run()
            with pytest.raises(StateMismatch, match=r"'store' were in 4 partitions of an internal topic, and would be in 4 partitions: .*Put back what was"):
                h.restart(program(make))
        else:
            assert refused is not None
            assert "keys in Partition 0 would go to a task that does not have their state (for example b'k" in refused.message
            assert "murmur2, as Java's producers do. The input that they came from before is written with another partitioner: " in refused.message
            assert "samzapy state drop JOB.yaml store" in refused.remedy


def test_state_that_came_through_an_internal_topic_before_is_not_looked_at() -> None:
    with Harness(program(counted, PARTITIONS), tasks=PARTITIONS) as h:
        fill(h, by_crc32)
        assert refusal(program(counted, PARTITIONS), h) is None
        kept = h.checkpoint(0).fingerprint["store 'store' partitions of its keys"]  # type: ignore[union-attr]
        assert kept == f"4{OF_INTERNAL}"


def test_of_a_windows_row_the_records_key_is_asked() -> None:
    assert key_in_row(b"\x00") is None
    assert key_in_row(b"\x10" + bytes(8) + b"key") == b"key"
