"""Keys of stores as JSON and as Avro: an entry is found by its bytes, so equal keys must have the same bytes."""

from __future__ import annotations

import dataclasses
import datetime
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from samzapy import StreamTask
from samzapy.api.errors import SerdeError
from samzapy.config.errors import ConfigError
from samzapy.config.key_schema import why_no_key, why_no_key_file
from samzapy.serde.basic import JsonSerde
from samzapy.serde.json_keys import MAX_ORDERS, JsonKeySerde, as_stored_key
from samzapy.testing import Harness
from samzapy.wiring.program import expand

NOON = datetime.datetime(2024, 1, 2, 12, tzinfo=datetime.UTC)
SCALARS = st.none() | st.booleans() | st.integers(-5, 5) | st.floats(-3, 3).map(lambda x: round(x * 2) / 2) | st.text("ab", max_size=2)
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab", max_size=2), inner, max_size=3), max_leaves=6)


@dataclasses.dataclass(frozen=True)
class Point:
    y: int
    x: float


def in_another_order(value: Any) -> Any:
    """An equal value."""
    if isinstance(value, dict):
        return {key: in_another_order(value[key]) for key in reversed(value)}
    return [in_another_order(each) for each in value] if isinstance(value, list) else value


@given(VALUES)
def test_equal_dicts_have_the_same_bytes_or_the_second_one_is_refused(value: Any) -> None:
    serde = JsonKeySerde()
    try:
        one = serde.encode(value)
    except SerdeError:  # two orders within one key
        return
    assert one == serde.encode(value) == JsonSerde.encode(value), "the bytes of keys are what they were"
    try:
        other = serde.encode(in_another_order(value))
    except SerdeError:
        other = one
    assert one == other


@pytest.mark.parametrize(
    "key",
    [
        "a", "null", 1, -(2**63), None, True, 1.5, 1.0, 1e300, [], [1, "a", None], {}, {"b": 1, "a": {"d": [1.5], "c": 2}}, NOON, Point(1, 1.5), (1, "a"),
        {"from": {"x": 1, "y": 2}, "to": {"y": 2, "x": 1}},
    ],
)
def test_a_key_is_written_as_ever_and_read(key: Any) -> None:
    serde = JsonKeySerde()
    assert serde.encode(key) == serde.encode(key) == JsonSerde.encode(key)
    assert serde.decode(serde.encode(key)) == JsonSerde.decode(JsonSerde.encode(key))


@pytest.mark.parametrize(
    ("first", "second"), [({"a": 1, "b": 2}, {"b": 2, "a": 1}), ([{"x": {"b": 1, "a": 2}}], [{"x": {"a": 1, "b": 2}}]), (({"b": 1, "a": 2},), [{"a": 3, "b": 1}])]
)
def test_names_in_another_order_than_before_are_refused(first: Any, second: Any) -> None:
    serde = JsonKeySerde()
    serde.encode(first)
    for _ in range(2):
        with pytest.raises(SerdeError, match="its names came in another order before") as caught:
            serde.encode(second)
    assert "a store finds its entries by the bytes of their keys" in str(caught.value)
    serde.encode(first)
    JsonKeySerde().encode(second)


def test_the_orders_that_are_known_are_bounded() -> None:
    serde = JsonKeySerde()
    for n in range(MAX_ORDERS + 10):
        serde.encode({f"a{n}": 1, "b": 2})
    assert MAX_ORDERS == len(serde._orders)


def test_other_serdes_stay_what_they_are() -> None:
    class Own(JsonSerde):
        pass

    own = Own()
    assert as_stored_key(own) is own
    assert type(as_stored_key(JsonSerde())) is JsonKeySerde


class Count(StreamTask[Any, Any]):
    def init(self, context: Any) -> None:
        self.counts = context.get_store("counts")

    def process(self, envelope: Any, collector: Any, coordinator: Any) -> None:
        self.counts.put(envelope.message, self.counts.get(envelope.message, 0) + 1)


def test_a_store_refuses_a_dict_in_another_order() -> None:
    with Harness(Count, inputs=[{"topic": "in", "value": "json"}], stores={"counts": {"key": "json", "value": "integer"}}) as h:
        for _ in range(2):
            h.send("in", {"a": 1, "b": 2})
        h.run()
        assert [(r.key(), r.value()) for r in h.records("test-1-counts-changelog")][-1] == (b'{"a":1,"b":2}', (2).to_bytes(8, "big"))
        h.send("in", {"b": 2, "a": 1})
        with pytest.raises(Exception, match=r"its names came in another order before"):
            h.run()


# -- Avro ----------------------------------------------------------------------------------------------------------------------------


def record(**fields: Any) -> dict[str, Any]:
    return {"type": "record", "name": "K", "fields": [{"name": name, "type": kind} for name, kind in fields.items()]}


LABELS = {"type": "map", "values": "string"}


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        (LABELS, "its schema is a map"), (record(a="long", m=LABELS), "its field 'm' is a map"), (record(a=["null", LABELS]), "its field 'a' is a map"),
        (record(a={"type": "array", "items": LABELS}), "its field 'a' is a map"), (record(a={**record(b=LABELS), "name": "L"}), "its field 'a.b' is a map"),
    ],
)  # fmt: skip
def test_an_avro_schema_with_several_forms_of_equal_keys_is_refused(tmp_path: Path, schema: Any, why: str) -> None:
    (tmp_path / "k.avsc").write_text(json.dumps(schema))
    assert why_no_key(schema).startswith(why)
    assert why_no_key_file("avro:k.avsc", [tmp_path]).startswith(why)
    job = {"job": "j", "task": f"{__name__}:Count", "kafka": {"bootstrap.servers": "h:1"}, "inputs": [{"topic": "in"}]}
    (tmp_path / "job.yaml").write_text(json.dumps({**job, "stores": {"counts": {"key": "avro:k.avsc", "value": "integer"}}}))
    with pytest.raises(ConfigError, match=rf"values of avro:k\.avsc cannot be keys of a store: {why}"):
        Harness(tmp_path / "job.yaml")
    (tmp_path / "job.yaml").write_text(json.dumps({**job, "stores": {"counts": {"key": "integer", "value": "avro:k.avsc"}}}))
    with Harness(tmp_path / "job.yaml"):
        pass


PROGRAM = """
from samzapy.streams import App, tumbling
app = App()
app.stream("in", key="{key}", value=int, watermark_delay="1s").{then}
"""


@pytest.mark.parametrize(
    ("key", "then"),
    [
        ("avro:many.avsc", 'count("n")'), ("avro:many.avsc", 'window(tumbling("1m")).count("n")'),
        ("string", 'key_by(lambda v: {}, "by", key="avro:many.avsc").to("out")'),
    ],
)  # fmt: skip
def test_a_program_that_looks_up_such_keys_is_refused_in_its_job_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str, then: str) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "many.avsc").write_text(json.dumps(record(m=LABELS)))
    (tmp_path / "one.avsc").write_text(json.dumps(record(m="long")))
    for name, replaced, said in (("many_keys", "many", r"keys of kind avro:many\.avsc cannot be looked up: its field 'm' is a map"), ("one_key", "one", "")):
        monkeypatch.delitem(sys.modules, name, raising=False)
        (tmp_path / f"{name}.py").write_text(PROGRAM.format(key=key, then=then).replace("many.avsc", f"{replaced}.avsc"))
        _, findings = expand({"job": "j", "app": f"{name}:app"}, [tmp_path])
        assert bool(findings) == bool(said)
        assert not [finding.message for finding in findings if not re.search(said, finding.message)]
        monkeypatch.delitem(sys.modules, name, raising=False)


@pytest.mark.parametrize(
    "schema",
    ["long", "string", "double", record(a="int", b={"type": "array", "items": "string"}, c=["null", "long"]), {"type": "enum", "name": "E", "symbols": ["A"]},
     record(a={"type": "bytes", "logicalType": "decimal", "precision": 4}), record(map="long", double="string"), 7, record(a=7)],
)  # fmt: skip
def test_others_may_be_keys(schema: Any) -> None:
    assert why_no_key(schema) == ""


def test_a_file_that_cannot_be_read_is_told_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "k.avsc").write_text("{")
    assert why_no_key_file("avro:k.avsc", [tmp_path]) == why_no_key_file("avro:gone.avsc", [tmp_path]) == why_no_key_file("json", [tmp_path]) == ""
