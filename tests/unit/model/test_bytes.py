"""The versioned bytes of checkpoints, barriers, stamps and coordinator records: they come back, and damage is noticed."""

from __future__ import annotations

import dataclasses
import json
import math
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from samzapy.model.barrier import BARRIER_KEY, Barrier, barrier_from_bytes
from samzapy.model.caution import piece_from_json
from samzapy.model.checkpoint import Checkpoint, InputMark, StoreMark, UnreadableCheckpoint, checkpoint_from_bytes
from samzapy.model.dead_letter import read_trace, trace_headers
from samzapy.model.event_time import Leap, PartitionMark
from samzapy.model.ownership import (
    LEASE_KEY,
    ContainerRecord,
    LeaseRecord,
    Ledger,
    UnreadableRecord,
    container_key,
    end_offsets_key,
    end_offsets_to_bytes,
)
from samzapy.model.stamp import StoreIdentity, StoreStamp, stamp_from_bytes

CHECKPOINT = Checkpoint(
    job="job",
    id="1",
    task="Partition 0",
    container=3,
    incarnation="i",
    epoch=4,
    sequence=5,
    inputs={"in[0]": InputMark("id", 6)},
    stores={"s": StoreMark("log", "id", 7, 8)},
    startpoint_id="start",
    ended_run_id="run",
    fingerprint={"task count": "1"},
)


def test_a_checkpoint_comes_back() -> None:
    assert checkpoint_from_bytes(CHECKPOINT.to_bytes()) == CHECKPOINT


def test_times_make_a_checkpoint_of_version_2_and_come_back() -> None:
    leap = Leap(1_700_000_000_000, 5, 60, 1_700_000_000_001)
    inputs = {
        "a[0]": InputMark("id", 6, PartitionMark(-5, True, 7, None)), "b[0]": InputMark("id", 6, PartitionMark(3, False, 7, leap)),
        "c[0]": InputMark("id", 6, PartitionMark()), "d[0]": InputMark("id", 6),
    }  # fmt: skip
    with_times = dataclasses.replace(CHECKPOINT, inputs=inputs, watermarks={"a+b+c": -5})
    assert json.loads(with_times.to_bytes())["version"] == 2
    assert checkpoint_from_bytes(with_times.to_bytes()) == with_times
    assert json.loads(with_times.without_times().to_bytes())["version"] == 1 == json.loads(CHECKPOINT.to_bytes())["version"]
    for wrong in ({"newest": "1"}, {"idle": 1}, {"leap": [1]}, {"seen_ms": None}):
        raw = json.loads(with_times.to_bytes())
        del raw["crc"]
        raw["inputs"]["a[0]"]["time"] |= wrong
        with pytest.raises(UnreadableCheckpoint, match=r"expected|not enough"):
            checkpoint_from_bytes(json.dumps({**raw, "crc": crc_of(raw)}).encode())


def crc_of(body: dict[str, object]) -> int:
    return zlib.crc32(json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode())


@given(st.integers(0, 10_000), st.integers(1, 255))
def test_no_damaged_checkpoint_is_taken_for_another(position: int, change: int) -> None:
    data = bytearray(CHECKPOINT.to_bytes())
    data[position % len(data)] ^= change
    try:
        assert checkpoint_from_bytes(bytes(data)) == CHECKPOINT  # white space, say
    except UnreadableCheckpoint:
        return


@pytest.mark.parametrize("data", [b"", b"null", b"[]", b"{}", b"\xff", b'{"version":2,"crc":0}', b"[" * 100_000, b"x" * (2 << 20)])
def test_what_is_no_checkpoint_is_refused(data: bytes) -> None:
    with pytest.raises(UnreadableCheckpoint):
        checkpoint_from_bytes(data)


def test_a_barrier_comes_back_and_others_are_refused() -> None:
    barrier = Barrier("job", "1", "Partition 0", "s", 2, "i", "n")
    assert barrier_from_bytes(barrier.to_bytes()) == barrier
    assert len(BARRIER_KEY) == 16
    for data in (None, b"", b"1", b'{"v":1}', b"x" * 5000):
        with pytest.raises(ValueError, match=r".+"):
            barrier_from_bytes(data)


def test_a_stamp_comes_back_and_others_are_refused() -> None:
    stamp = StoreStamp(StoreIdentity("job", "1", "Partition 0", "s", "string", "json"), "id", 1, 2, 3)
    assert stamp_from_bytes(stamp.to_bytes()) == stamp
    for raw in ({}, {**json.loads(stamp.to_bytes()), "position": "1"}, {**json.loads(stamp.to_bytes()), "v": 2}):
        with pytest.raises(ValueError, match=r".+"):
            stamp_from_bytes(json.dumps(raw).encode())


STAMP_OF_7CD9763 = (
    b'{"v":1,"job":"job","id":"1","task":"Partition 0","store":"s","topic_id":"id","position":1,"sequence":2,"as_of_ms":3,'
    b'"key_serde":"string","value_serde":"json"}'
)


def test_a_stamp_on_disk_is_written_and_read_as_ever() -> None:
    """Recorded with commit 7cd9763: local stores on disk have these bytes."""
    stamp = StoreStamp(StoreIdentity("job", "1", "Partition 0", "s", "string", "json"), "id", 1, 2, 3)
    assert stamp_from_bytes(STAMP_OF_7CD9763) == stamp
    assert stamp.to_bytes() == STAMP_OF_7CD9763


def test_the_ledger_keeps_the_newest_of_each_and_the_highest_epoch() -> None:
    ledger = Ledger()
    for epoch, incarnation in ((1, "a"), (2, ""), (3, "b")):
        ledger.apply(container_key(0), ContainerRecord(0, epoch, incarnation, ("Partition 0",), "run", "h", 1).to_bytes())
    lease = LeaseRecord(run_id="run", url="http://127.0.0.1:1", host="h", pid=1, process_start="s", renewed_ms=5)
    ledger.apply(LEASE_KEY, lease.to_bytes())
    ledger.apply(end_offsets_key("run"), end_offsets_to_bytes({"in[0]": 7}))
    ledger.apply(b"something/else", b"of a later version")
    assert (ledger.epoch, ledger.containers[0].incarnation, ledger.lease) == (3, "b", lease)
    assert ledger.end_offsets == {"run": {"in[0]": 7}}
    ledger.apply(end_offsets_key("run"), None)
    assert ledger.end_offsets == {}
    with pytest.raises(UnreadableRecord):
        ledger.apply(LEASE_KEY, b'{"v":1}')


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("url", url) for url in (
            "http://[::1", "http://127.0.0.1:99999", "http://127.0.0.1:1\r\nX-Forged: 1", "http://127.0.0.1:0", "http://", "ftp://127.0.0.1/",
            "file:///etc/passwd", "http://u:p@127.0.0.1:1", "http://127.0.0.1:1/a/../b", "http://127.0.0.1:1?x", "http://\u202e:1", "x" * 5000,
        )),
        ("renewed_ms", 10**18), ("renewed_ms", -(10**17)), ("renewed_ms", -1), ("pid", -1), ("pid", 1 << 40),
    ],
)  # fmt: skip
def test_a_lease_that_no_coordinator_writes_is_refused_where_it_is_read(field: str, value: object) -> None:
    lease = LeaseRecord(run_id="run", url="http://127.0.0.1:1", host="h", pid=1, process_start="s", renewed_ms=5)
    for url in ("", "http://127.0.0.1:1", "http://[::1]:1", "http://some-host.example:65535"):
        ledger = Ledger()
        ledger.apply(LEASE_KEY, dataclasses.replace(lease, url=url).to_bytes())
        assert ledger.lease is not None
    with pytest.raises(UnreadableRecord, match=f"field '{field}'"):
        Ledger().apply(LEASE_KEY, dataclasses.replace(lease, **{field: value}).to_bytes())


@pytest.mark.parametrize("number", ["9" * 5000, "-1", "", "\u0663", "1e9"])
def test_a_record_that_is_no_trace_of_a_replay_is_taken_for_none(number: str) -> None:
    assert (7, 1, False) == read_trace(trace_headers(7, 1))
    assert (7, 1, True) == read_trace(trace_headers(7, 1, is_discarded=True))
    for offset, time_ms in ((number, "1"), ("7", number)):
        assert read_trace([("samzapy-replayed", offset.encode()), ("samzapy-time", time_ms.encode())]) is None


def test_what_a_report_says_is_under_way_may_be_anything() -> None:
    for spans in ([["in", 0, 0, math.inf]], [["in", math.nan, 0, 1]], [[]], {}, "x", None):
        assert piece_from_json({"spans": spans, "count": 1}) is None
