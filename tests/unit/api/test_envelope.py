"""What an outgoing envelope takes, and that it refuses the rest where it is made: the line is the user's own."""

from __future__ import annotations

from typing import Any

import pytest

from samzapy import OutgoingMessageEnvelope, StreamTask, SystemStream, TaskError
from samzapy.testing import Harness

OUT = SystemStream("kafka", "out")

WRONG: dict[str, tuple[tuple[Any, ...], dict[str, Any], type[Exception], str]] = {
    "no stream": ((None, 1), {}, TypeError, "system_stream"),
    "a number": ((7, 1), {}, TypeError, "system_stream"),
    "three parts": ((("kafka", "out", 0), 1), {}, TypeError, "system_stream"),
    "a partition as text": ((OUT, 1), {"partition": "0"}, TypeError, "partition"),
    "a truth as partition": ((OUT, 1), {"partition": True}, TypeError, "partition"),
    "a time of more than 64 bits": ((OUT, 1), {"timestamp": 1 << 63}, ValueError, "from 1 to 9223372036854775807"),
    "a header's name with NUL": ((OUT, 1), {"headers": [("a\0b", b"x")]}, ValueError, "has a character that no header's name can have"),
    "a header's value with half of a surrogate pair": ((OUT, 1), {"headers": {"h": "\ud800"}}, ValueError, "the value of 'h' has half of a surrogate pair"),
    "a header's name with half of a surrogate pair": ((OUT, 1), {"headers": {"\ud800": b"x"}}, ValueError, "has a character that no header's name"),
    "the epoch, which the client takes for now": ((OUT, 1), {"timestamp": 0}, ValueError, "timestamp 0"),
    "before the epoch": ((OUT, 1), {"timestamp": -1}, ValueError, "timestamp -1"),
    "seconds with a fraction": ((OUT, 1), {"timestamp": 1.5}, TypeError, "timestamp"),
    "a dict of headers with a number": ((OUT, 1), {"headers": {"a": 1}}, TypeError, "value of 'a'"),
    "headers as text": ((OUT, 1), {"headers": "a=1"}, TypeError, "headers"),
    "a header's number": ((OUT, 1), {"headers": [("a", 1)]}, TypeError, "value of 'a'"),
    "a header's name as bytes": ((OUT, 1), {"headers": [(b"a", b"1")]}, TypeError, "pair"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_cannot_be_sent_is_refused_where_it_is_made(case: str) -> None:
    args, more, error, words = WRONG[case]
    with pytest.raises(error, match=words):
        OutgoingMessageEnvelope(*args, **more)


@pytest.mark.parametrize("stream", ["out", OUT, ("kafka", "out")])
def test_a_topic_may_be_named_plainly(stream: Any) -> None:
    assert OUT == OutgoingMessageEnvelope(stream, 1).system_stream


def test_headers_are_kept_as_the_client_takes_them() -> None:
    given = [("a", b"1"), ["b", "ü"], ("c", None)]
    taken = [("a", b"1"), ("b", "ü".encode()), ("c", None)]
    assert taken == OutgoingMessageEnvelope("out", 1, headers=given).headers  # type: ignore[arg-type]
    assert taken == OutgoingMessageEnvelope("out", 1, headers={"a": b"1", "b": "ü", "c": None}).headers


class _Relay(StreamTask):
    """Sends what it gets to the topic that the record names."""

    def process(self, envelope: Any, collector: Any, coordinator: Any) -> None:
        if envelope.message == "no envelope":
            collector.send(("out", "x"))
        collector.send(OutgoingMessageEnvelope("out", envelope.message, timestamp=5, headers=[("h", "x")]))


SECTIONS = {
    "inputs": [{"topic": "in", "key": "string", "value": "string"}],
    "outputs": [{"topic": "out", "key": "string", "value": "string"}],
}


def test_a_task_sends_by_a_topics_name() -> None:
    with Harness(_Relay, **SECTIONS) as h:
        h.send("in", "hello")
        h.run()
        (record,) = h.records("out")
        assert (b"hello", 5, [("h", b"x")]) == (record.value(), record.timestamp()[1], record.headers())


def test_what_is_no_envelope_is_called_that() -> None:
    with Harness(_Relay, **SECTIONS) as h:
        h.send("in", "no envelope")
        with pytest.raises(TaskError, match="send takes a topic and a message, or an OutgoingMessageEnvelope"):
            h.run()


SENDS: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {
    "a value": (("out", "v"), {}),
    "a tombstone": (("out", None), {"key": "k"}),
    "with a key": (("out", "v"), {"key": "k"}),
    "with a key by position": (("out", "v", "k"), {}),
    "all that there is": (("out", "v"), {"key": "k", "partition": 1, "timestamp": 5, "headers": {"h": "x"}}),
    "a partition key": (("out", "v"), {"key": "k", "partition_key": "other"}),
    "a stream": ((OUT, "v"), {"key": "k"}),
}
REFUSED: dict[str, tuple[tuple[Any, ...], dict[str, Any], str]] = {
    "an unknown topic": (("elsewhere", "v"), {}, "topic elsewhere, which the job file does not list"),
    "another system": ((SystemStream("kinesis", "out"), "v"), {}, "no system 'kinesis'"),
    "a topic alone": (("out",), {}, "send takes a topic and a message"),
    "a number": ((7, "v"), {}, "system_stream"),
    "a key beside an envelope": ((OutgoingMessageEnvelope("out", "v"),), {"key": "k"}, "nothing besides an envelope"),
    "a partition beside an envelope": ((OutgoingMessageEnvelope("out", "v"),), {"partition": 1}, "nothing besides an envelope"),
    "a partition that is not there": (("out", "v"), {"partition": 9}, "partition 9"),
    "a partition as text": (("out", "v"), {"partition": "1"}, "partition"),
    "the epoch, which the client takes for now": (("out", "v"), {"timestamp": 0}, "timestamp 0: it must be milliseconds since 1970"),
    "before the epoch": (("out", "v"), {"key": "k", "timestamp": -1}, "timestamp -1: it must be milliseconds since 1970"),
}


class _Sender(StreamTask):
    """Sends as the test says; a record says how."""

    calls: Any = ()

    def process(self, envelope: Any, collector: Any, coordinator: Any) -> None:
        args, more = self.calls[int(envelope.message)]
        collector.send(*args, **more)


@pytest.mark.parametrize("case", SENDS)
def test_a_topic_and_a_message_are_sent_as_their_envelope_is(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    args, more = SENDS[case]
    monkeypatch.setattr(_Sender, "calls", [(args, more), ((OutgoingMessageEnvelope(*args, **more),), {})])
    with Harness(_Sender, tasks=2, **SECTIONS) as h:
        h.send("in", "0", partition=0)
        h.send("in", "1", partition=0)
        h.run()
        plain, wrapped = h.records("out")
        assert (plain.key(), plain.value(), plain.headers()) == (wrapped.key(), wrapped.value(), wrapped.headers())
        if plain.key() is not None:  # without a key any partition is right
            assert plain.partition() == wrapped.partition()


@pytest.mark.parametrize("case", REFUSED)
def test_a_send_that_means_nothing_is_refused(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    args, more, words = REFUSED[case]
    monkeypatch.setattr(_Sender, "calls", [(args, more)])
    with Harness(_Sender, tasks=2, **SECTIONS) as h:
        h.send("in", "0", partition=0)
        with pytest.raises(TaskError, match=words):
            h.run()
        assert [] == h.output("out")
