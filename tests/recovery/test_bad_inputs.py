"""Bad input of every kind that a job may meet, in one table: what is said of it, by which code, and that the answer comes soon.

Here is what needs no broker: state of earlier runs (on the in-memory log, with real RocksDB stores), records, job files and control
requests. What needs one is in test_bad_topics. Where the job goes on, the act has compared its state with the true one.
"""

from __future__ import annotations

import json
import logging
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from samzapy.api.errors import SamzapyError
from samzapy.config.load import load_job
from samzapy.model.barrier import BARRIER_KEY
from samzapy.model.checkpoint import MAX_BYTES, checkpoint_from_bytes
from samzapy.model.ownership import Ledger
from samzapy.store.directory import store_path
from tests.recovery import bad_records as record
from tests.recovery import bad_state as state
from tests.recovery.bad_control import Listening, ask_for_websocket

PATIENCE_S = 5.0  # of this process's time, for any answer
FILE = 'job: j\ntask: t:T\nkafka: {bootstrap.servers: "h:9092"}\ninputs: [{topic: a}]\n'
GOES_ON = ""
SERDE, REFUSED, SUPERSEDED, MISMATCH, RANGE, CONFIG, FILES = "SZ210", "SZ330", "SZ313", "SZ110", "SZ320", "SZ100", "SZ101"

# what is bad -> (the act, the error's code or that the job goes on, words)
STATE: dict[str, tuple[state.Act, str, tuple[str, ...]]] = {
    # protocol, "Starting a task": a local store is kept if ...
    "store of another job": (state.stamped(job="other"), GOES_ON, ("changelog:", "belongs to another job")),
    "store of another id": (state.stamped(id="2"), GOES_ON, ("changelog:", "belongs to another job")),
    "store of another task": (state.stamped(task="Partition 1"), GOES_ON, ("changelog:", "belongs to another job, task or store")),
    "store of another name": (state.stamped(store="t"), GOES_ON, ("changelog:", "belongs to another")),
    "store of other serdes": (state.stamped(value_serde="json"), GOES_ON, ("changelog:", "other serdes")),
    "store of another changelog": (state.stamped(topic_id="old"), GOES_ON, ("changelog:", "changelog topic was replaced")),
    "store before the changelog's start": (state.stamped(position=-1), GOES_ON, ("changelog:", "no longer has the records that it would read next")),
    "store ahead of the changelog": (state.stamped(position=10**6), GOES_ON, ("changelog:", "ahead of the changelog")),
    "store ahead of the checkpoint": (state.stamped(sequence=10**6), GOES_ON, ("changelog:", "ahead of the checkpoint")),
    "store that lags and is old": (
        state.stamped(position=state.behind, as_of_ms=state.older(0.6)), GOES_ON, ("changelog:", "too old: tombstones"),
    ),
    "store that lags and is of the future": (
        state.stamped(position=state.behind, as_of_ms=state.older(-1)), GOES_ON, ("changelog:", "too old: tombstones"),
    ),
    "store that lags and is young": (state.stamped(position=state.behind, as_of_ms=state.older(0.4)), GOES_ON, ("local:", "recent enough")),
    "store old and complete": (state.stamped(as_of_ms=state.older(400)), GOES_ON, ("local:", "all that the checkpoint names")),
    # directories
    "stamp that is no JSON": (state.stamp_of(b"\xff\xfe"), GOES_ON, ("changelog:", "its stamp cannot be read")),
    "stamp nested deep": (state.stamp_of(state.deep()), GOES_ON, ("changelog:", "nested deeper")),
    "stamp of a later version": (state.stamp_of(b'{"v":2}'), GOES_ON, ("changelog:", "unknown version")),
    "SST file cut in half": (state.damaged("*.sst", "cut"), GOES_ON, ("changelog:", "damaged or missing")),
    "SST file overwritten": (state.damaged("*.sst", "filled"), GOES_ON, ("changelog:", "damaged or missing")),
    "SST file with one byte turned": (state.one_byte_turned, GOES_ON, ("changelog:", "in doubt", "no local store on this host")),
    "SST file gone": (state.damaged("*.sst", "gone"), GOES_ON, ("changelog:", "damaged or missing")),
    "MANIFEST gone": (state.damaged("MANIFEST-*", "gone"), GOES_ON, ("changelog:", "damaged or missing")),
    "CURRENT gone": (state.damaged("CURRENT", "gone"), GOES_ON, ("changelog:", "not kept")),
    "CURRENT overwritten": (state.damaged("CURRENT", "filled"), GOES_ON, ("changelog:", "damaged or missing")),
    **{
        f"directory in the place of {name}": (state.damaged(name, "a directory"), GOES_ON, ("changelog:", "damaged or missing: ", "directory"))
        for name in ("*.sst", "MANIFEST-*", "CURRENT", "LOCK", "IDENTITY", "rocksdict-config.json")
    },
    "files damaged at random": (state.damaged_at_random(3, 12), GOES_ON, ("12 times", "changelog")),
    "generation that is a link": (state.linked, GOES_ON, ("changelog:", "no local store on this host")),
    "generation open elsewhere": (state.in_use, GOES_ON, ("changelog:", "another process has it open")),
    "generation set aside": (state.set_aside, GOES_ON, ("changelog:", "no local store on this host")),
    "file in the store's place": (state.a_file_in_its_place, "SZ100", ("is a file, not a directory", "Name a directory")),
    # checkpoints
    "checkpoint that is no JSON": (state.checkpoint_of(b"\x00\x01"), REFUSED, ("cannot be read", "samzapy reset")),
    "checkpoint that is a list": (state.checkpoint_of(b"[]"), REFUSED, ("list where an object",)),
    "checkpoint nested deep": (state.checkpoint_of(state.deep()), REFUSED, ("nested deeper",)),
    "checkpoint with a number of 5000 digits": (state.checkpoint_of(b'{"crc":' + b"1" * 5000 + b"}"), REFUSED, ("cannot be read",)),
    "checkpoint of a later version": (state.checkpoint_of(b'{"version":4,"crc":0}'), REFUSED, ("version 4", "reads versions 1 to 3")),
    "checkpoint with one bit turned": (state.flipped, REFUSED, ("CRC does not match",)),
    "checkpoint of another job": (
        state.checkpoint_with(lambda c: replace(c, job="other")), REFUSED, ("holds the checkpoint of other-1", "another name or id"),
    ),
    "checkpoint of a later epoch": (
        state.checkpoint_with(lambda c: replace(c, epoch=10**6)), REFUSED,
        ("epoch 1000000", "but the last owner in the coordinator topic is of epoch", "reset JOB.yaml --coordinator --execute"),
    ),
    "barrier of a later epoch beside the checkpoints": (
        state.written_to(state.JOB.checkpoint_topic, BARRIER_KEY, state.barrier(epoch=10**30, store="")), REFUSED,
        ("at offset", f"epoch {10**30}", "but the last owner in the coordinator topic is of epoch", "reset JOB.yaml --coordinator --execute"),
    ),
    "checkpoint of other serdes": (state.other_serdes, MISMATCH, ("value serde was 'json'", "says 'integer'", "samzapy reset")),
    "checkpoint lost": (state.lost_checkpoints, REFUSED, ("no checkpoint", "count them twice", "samzapy reset")),
    "checkpoint deleted by a tombstone": (state.checkpoint_of(None), REFUSED, ("no checkpoint", "count them twice")),
    # changelogs
    "changelog truncated, local store gone": (state.truncated(False), REFUSED, ("truncated", "silently miss keys")),
    "changelog truncated, local store whole": (state.truncated(True), GOES_ON, ("local:",)),
    "changelog made again": (state.replaced_changelog, REFUSED, ("deleted and created again",)),
    "changelog that lost its end": (
        state.checkpoint_with(state.marked(position=10**6)), REFUSED, ("its end was lost", "the checkpoint says 1000000"),
    ),
    "record without a key in a changelog": (state.keyless, GOES_ON, ("local:",)),
    "another job's barrier": (state.foreign_barrier, REFUSED, ("belongs to store 's' of other-1", "its own changelog")),
    "barrier of a later epoch": (
        state.written_to(state.CHANGELOG, BARRIER_KEY, state.barrier(epoch=10**6)), GOES_ON, ("local:",),
    ),
    "barrier nested deep": (state.written_to(state.CHANGELOG, BARRIER_KEY, state.deep(levels=4000)), GOES_ON, ("local:",)),
    "barrier that is empty": (state.written_to(state.CHANGELOG, BARRIER_KEY, None), GOES_ON, ("local:",)),
    # the coordinator topic
    "coordinator record that is no JSON": (state.coordinator_says(b"{"), SUPERSEDED, ("container/0",)),
    "coordinator record nested deep": (state.coordinator_says(state.deep()), SUPERSEDED, ("container/0", "nested deeper")),
    "coordinator record of a later version": (state.coordinator_says(b'{"v":7}'), SUPERSEDED, ("unknown version", "that wrote it")),
    "coordinator record without fields": (state.coordinator_says(b'{"v":1}'), SUPERSEDED, ("field 'container' is None",)),
    # inputs
    "input made again": (state.input_made_again, RANGE, ("deleted and created again", "on_out_of_range")),
    "input records removed unread, fail": (state.input_removed("fail"), RANGE, ("in[0]", "removed unread", "on_out_of_range")),
    "input records removed unread, earliest": (state.input_removed("earliest"), GOES_ON, ("local:",)),
    "input records removed unread, latest": (state.input_removed("latest"), GOES_ON, ("local:",)),
    "checkpoint after the input's end, fail": (state.input_rewound("fail"), RANGE, ("is after the topic's end",)),
    "checkpoint after the input's end, earliest": (state.input_rewound("earliest"), GOES_ON, ("local:",)),
    "checkpoint after the input's end, latest": (state.input_rewound("latest"), GOES_ON, ("local:",)),
}  # fmt: skip

RECORDS: dict[str, tuple[Callable[[Path], object], str, tuple[str, ...]]] = {
    "a key that is no UTF-8": (record.fed("string", b"\xff\xfe", b"v"), SERDE, ("in[0]@0", "not UTF-8")),
    "an integer of seven bytes": (record.fed("integer", b"k", b"1234567"), SERDE, ("in[0]@0", "reads 8 bytes", "has 7")),
    "JSON cut short": (record.fed("json", b"k", b'{"a":'), SERDE, ("in[0]@0", "serde json cannot read")),
    "JSON nested 100,000 deep": (record.fed("json", b"k", b"[" * 100_000 + b"]" * 100_000), SERDE, ("in[0]@0", "depth limit")),
    "JSON number of 100,000 digits": (record.fed("json", b"k", b"1" * 100_000), SERDE, ("in[0]@0", "infinity")),
    "JSON number beyond all": (record.fed("json", b"k", b"[1e999]"), SERDE, ("in[0]@0", "infinity")),
    "JSON text of 17 MiB": (record.decoded("json", b'"' + b"x" * (17 << 20) + b'"'), SERDE, ("more than 16777216",)),
    "JSON with half a character": (record.fed("json", b"k", b'"\\ud800"'), SERDE, ("in[0]@0", "surrogate")),
    "Avro: five bytes, 20 million items": (
        record.avro({"type": "array", "items": "null"}, b"\x80\xb4\x89\x13\x00"), SERDE, ("in[0]@0", "20000000 items"),
    ),
    "Avro: a length of a terabyte": (record.avro("bytes", b"\x80\x80\x80\x80\x80\x80\x01"), SERDE, ("in[0]@0", "a length of")),
    "Avro: bytes after the value": (record.avro("long", b"\x02\x00"), SERDE, ("in[0]@0", "1 bytes follow the value")),
    "Avro: nested 100,000 deep": (record.avro(record.TREE, b"\x02" * 100_000 + b"\x00"), SERDE, ("in[0]@0", "nested deeper than 64")),
    "Avro: 17 MiB": (record.avro_decoded("bytes", b"\x00" * (17 << 20)), SERDE, ("more than 16777216",)),
    "a put of two megabytes": (record.handled(lambda t: t.store.put("k", "x" * 2_000_000)), "SZ211", ("in[0]@0", "s-changelog", "2000")),
    "a send of two megabytes": (record.handled(lambda t: t.send("out", "x" * 2_000_000)), "SZ211", ("in[0]@0", "out", "2000")),
    "a send to an unknown topic": (record.handled(lambda t: t.send("elsewhere", "x")), "SZ213", ("in[0]@0", "elsewhere", "outputs")),
    "a put of the reserved key": (record.handled(lambda t: t.store.put("\x00samzapy/barrier", "x")), "SZ200", ("in[0]@0", "samzapy's own")),
    "a value of another kind": (record.handled(lambda t: t.store.put("k", 7)), SERDE, ("in[0]@0", "takes text")),
    "two jobs on one changelog": (state.shared_before_the_first_start, REFUSED, ("belongs to store 's' of other-1",)),
    "a checkpoint of two megabytes": (lambda _: _unreadable(b"x" * (MAX_BYTES + 1)), "", ("more than samzapy ever writes",)),
    "an endless number in the ledger": (lambda _: _ledger(b'{"v":1,"ends":{"a":1e999}}'), "", ("infinity",)),
    "a ledger key of 5000 characters": (lambda _: _ledger(b"{}", b"startpoint/" + b"9" * 5000), "", ("5011 characters",)),
}  # fmt: skip


def _unreadable(data: bytes) -> str:
    with pytest.raises(ValueError, match=r".+") as raised:
        checkpoint_from_bytes(data)
    return str(raised.value)


def _ledger(value: bytes, key: bytes = b"end-offsets/run") -> str:
    with pytest.raises(ValueError, match=r".+") as raised:
        Ledger().apply(key, value)
    return str(raised.value)


def with_name(place: int, name: str) -> Callable[[Path], object]:
    names = ["cluster", "host", "job-1", "task", "store"]
    names[place] = name
    return lambda folder: store_path(folder, *names)


def a_file(text: str | bytes, *sets: str) -> Callable[[Path], object]:
    def act(folder: Path) -> object:
        path = folder / "job.yaml"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        (folder / "large").write_bytes(b"x" * (65 << 10))
        return load_job([path], list(sets), {})

    return act


FILES_TABLE: dict[str, tuple[Callable[[Path], object], str, tuple[str, ...]]] = {
    "job that is a path": (a_file(FILE, "job=../../etc"), FILES, ("'../../etc'", "must not be a path")),
    "id that is a path": (a_file(FILE, "id=../1"), FILES, ("letters and digits",)),
    "store that is a path": (a_file(FILE + "stores: {../s: {}}\n"), FILES, ("a store name", "must not be a path")),
    "topic that is a path": (a_file(FILE + "outputs: [{topic: ../t}]\n"), FILES, ("is not a Kafka topic name",)),
    "host that is a path": (with_name(1, "../h"), CONFIG, ("cannot be a directory's name",)),
    "cluster id that is a path": (with_name(0, ".."), CONFIG, ("cannot be a directory's name",)),
    "YAML tag that would run code": (a_file(FILE + "params: {a: !!python/object/apply:os.system [x]}\n"), FILES, ("tag", "job.yaml:5")),
    "YAML aliases that multiply": (
        a_file("a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(f"{c}: &{c} [{','.join(['*' + p] * 9)}]\n" for p, c in zip("abcdefgh", "bcdefghi", strict=True))),
        FILES, ("more than 20000 values",),
    ),
    "YAML nested 60,000 deep": (a_file("{a: " * 60_000), FILES, ("nested more than 32 deep",)),
    "file of a megabyte": (a_file(FILE + "#" * (1 << 20)), FILES, ("larger than 256 KiB",)),
    "file that is no text": (a_file(b"\xff\xfe\x00job"), FILES, ("not UTF-8 text",)),
    "control characters": (a_file(FILE + "params: {a: \x1b[2J}\n"), FILES, ("U+001B",)),
    "variable that is not set": (a_file(FILE + 'params: {a: "${NOPE}"}\n'), FILES, ("NOPE is not set", "job.yaml:5")),
    "secret file of 65 KiB": (a_file(FILE + 'params: {a: "${file:large}"}\n'), FILES, ("larger than 64 KiB",)),
    "number of 5000 digits": (a_file(FILE, "containers.count=" + "9" * 5000), FILES, ("containers.count",)),
    "library that would be loaded": (a_file(FILE, "kafka.plugin.library.paths=/tmp/x.so"), FILES, ("would run code",)),
    "schema that leaves the folder by an absolute path": (a_file(FILE, "stores.s.value=avro:/nowhere/x.avsc"), FILES, ("does not exist",)),
}  # fmt: skip


def answered(act: Callable[[], object]) -> tuple[str, str]:
    """(code, words): of the error, or ("", what the act returned)."""
    started = time.process_time()
    try:
        code, words = "", str(act())
    except SamzapyError as error:
        code, words = error.code, str(error)
    assert time.process_time() - started < PATIENCE_S
    return code, words


def said(expected: tuple[str, tuple[str, ...]], got: tuple[str, str]) -> None:
    code, words = expected
    assert code == got[0], got
    assert [] == [w for w in words if w not in got[1]], got
    assert len(got[1]) < 2000
    assert "Traceback" not in got[1]


@pytest.mark.parametrize("name", STATE)
def test_bad_state_is_refused_or_built_anew_and_never_taken_for_good(name: str, tmp_path: Path) -> None:
    act, code, words = STATE[name]
    ran = state.Ran(tmp_path)

    said((code, words), answered(lambda: act(ran)))


@pytest.mark.parametrize("name", RECORDS)
def test_a_bad_record_is_named(name: str, tmp_path: Path) -> None:
    act, code, words = RECORDS[name]

    said((code, words), answered(lambda: act(tmp_path)))


@pytest.mark.parametrize("name", FILES_TABLE)
def test_a_bad_job_file_or_name_is_refused(name: str, tmp_path: Path) -> None:
    act, code, words = FILES_TABLE[name]

    said((code, words), answered(lambda: act(tmp_path)))


# -- control requests ------------------------------------------------------------------------------------------------------------------

GOOD = json.dumps({"container": 0, "incarnation": "nobody", "report": {}}).encode()
CONTROL: dict[str, tuple[dict[str, object], int, str]] = {
    "unsigned": ({"signature": ""}, 403, "not signed"),
    "signed with another token": ({"token": "another"}, 403, "not signed"),
    "signed for another body": ({"signed_body": b"{}"}, 403, "not signed"),
    "signed for another path": ({"signed_path": "/control/finished"}, 403, "not signed"),
    "of an hour ago": ({"age_s": 3600.0}, 403, "too old"),
    "of an hour ahead": ({"age_s": -3600.0}, 403, "too old"),
    "of no time": ({"time_s": "nan"}, 403, "too old"),
    "replayed": ({"times": 2}, 403, "seen before"),
    "nine megabytes": ({"body": b"x" * (9 << 20)}, 413, "more than 8388608 bytes"),
    "no JSON": ({"body": b"{"}, 400, "not understood"),
    "a list": ({"body": b"[]"}, 400, "not understood"),
    "nested deep": ({"body": b"[" * 100_000}, 400, "not understood"),
    "a container that is text": ({"body": b'{"container":"x","incarnation":"i","report":{}}'}, 400, "not understood"),
    "a container without end": ({"body": b'{"container":1e999,"incarnation":"i","report":{}}'}, 400, "not understood"),
    "of an incarnation that nobody named": ({}, 409, "nobody"),
}


@pytest.fixture(scope="module")
def control() -> Iterator[Listening]:
    with Listening() as listening:
        yield listening


@pytest.mark.parametrize("name", CONTROL)
def test_a_bad_control_request_is_refused(name: str, control: Listening) -> None:
    how, status, words = CONTROL[name]

    got, answer = control.post("/control/heartbeat", **{"body": GOOD, **how})  # type: ignore[arg-type]

    assert (status, True) == (got, words in answer), answer
    assert control.token not in answer


@pytest.mark.parametrize(
    ("authorization", "body", "status"),
    [
        ("", b"", 403), ("Bearer wrong", b"", 403), ("Bearer \xff", b"", 403), ("good", b"x" * (65 << 10), 413), ("good", b"[" * 50_000, 400),
        ("good", b'{"containers": 1e999}', 400), ("good", b"[]", 400),
    ],
)
def test_a_bad_request_to_change_something_is_refused(authorization: str, body: bytes, status: int, control: Listening) -> None:
    given = f"Bearer {control.token}" if authorization == "good" else authorization

    got, answer = control.change("/api/v1/scale", given, body)

    assert status == got, answer
    assert control.token not in answer
    assert not re.search(r"Traceback|File \"", answer)


@pytest.mark.parametrize("verb", ["stop", "scale", "restart"])
def test_a_captured_request_to_change_something_is_refused_when_it_comes_again(verb: str, control: Listening) -> None:
    got, answer = control.post(f"/api/v1/{verb}", b'{"containers": "x", "container": "x"}', times=2, to_web=True)

    assert (403, True) == (got, "seen before" in answer), answer


def test_who_asks_to_go_on_in_websocket_is_answered_and_fills_no_log(control: Listening, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        assert 200 == ask_for_websocket(control.web_url)  # the page, as for whoever does not ask
    assert "pgrade" not in caplog.text
    assert "WebSocket" not in caplog.text


def test_the_table_has_more_than_forty_rows() -> None:
    assert len(STATE) + len(RECORDS) + len(FILES_TABLE) + len(CONTROL) > 100
