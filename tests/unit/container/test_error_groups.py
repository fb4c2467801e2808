"""Which errors of records are one row on the page: those of one class at one place, whatever was in the records."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from samzapy import StreamTask
from samzapy.streams import App
from samzapy.testing import Harness

INPUTS = [{"topic": topic, "key": "integer", "value": "json"} for topic in ("orders", "users")]
ONE = b"\x00" * 7 + b"\x01"
SKIPS = {"on_error": {"then": "skip"}}


class Reading(StreamTask):
    def process(self, envelope: Any, collector: Any, coordinator: Any) -> None:
        if envelope.message == "boom":
            raise ValueError(envelope.key)
        if envelope.message == "large":
            collector.send("out", object())


class ReadingBatches(Reading):
    """Its records are decoded as it asks for them: in a line of its own."""

    def process_batch(self, envelopes: Any, collector: Any, coordinator: Any) -> None:
        for envelope in envelopes:
            self.process(envelope, collector, coordinator)


def groups(h: Harness) -> Iterator[tuple[str, str, int]]:
    for group in h.container.facts.errors.untold():
        yield group["type"], group["place"], group["count"]


def parts(keys: int, values: int) -> set[tuple[str, str, int]]:
    return {("SerdeError", f"{part} of {topic}", count) for topic in ("orders", "users") for part, count in (("key", keys), ("value", values)) if count}


@pytest.mark.parametrize(("task", "unread"), [(Reading, parts(keys=6, values=3)), (ReadingBatches, parts(keys=0, values=6))])
def test_what_cannot_be_read_is_one_group_for_the_keys_and_one_for_the_values_of_each_topic(task: type[StreamTask], unread: set[Any]) -> None:
    with Harness(task, inputs=INPUTS, outputs=[{"topic": "out", "value": "json"}], **SKIPS) as h:
        for n in range(3):
            for topic in ("orders", "users"):
                h.send_raw(topic, b"no json %d" % n, ONE)
                h.send_raw(topic, b"{}", b"no integer %d" % n)  # those that are given batches do not look at keys
                h.send_raw(topic, b"no json either %d" % n, b"no integer %d" % n)
            h.send("orders", "boom", n)
        h.send("orders", "large", 1)
        h.run()
        found = set(groups(h))
    assert unread < found
    own = sorted((kind, place.partition(":")[0], count) for kind, place, count in found - unread)
    assert [("SerdeError", "test_error_groups.py", 1), ("ValueError", "test_error_groups.py", 3)] == own


def test_of_a_program_the_errors_of_each_operator_are_a_group_and_those_of_a_function_one_of_its_line() -> None:
    app = App()
    orders = app.stream("orders", key=int, value=int)
    app.stream("users", key=int, value=str).count("names").to("names")
    orders.map(lambda n: 6 // n, value=int).count("orders").to("counts")
    with Harness(app, **SKIPS) as h:
        for value in (b"no integer", b"another"):
            h.send_raw("orders", value, ONE)
        h.send("orders", 0, 1)
        h.send_raw("orders", ONE, None)
        h.send_raw("users", b"ada", None)
        h.run()
        found = {(kind, re.sub(r":\d+", ":N", place), count) for kind, place, count in groups(h)}
    assert found == {
        ("SerdeError", "value of orders", 2), ("ZeroDivisionError", "test_error_groups.py:N", 1),
        ("TaskError", "count orders (test_error_groups.py:N)", 1), ("TaskError", "count names (test_error_groups.py:N)", 1),
    }  # fmt: skip
