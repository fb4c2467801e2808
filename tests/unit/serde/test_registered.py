"""The serdes of a Schema Registry, against a registry of our own on loopback, through the Kafka client's own registry client."""

from __future__ import annotations

import gc
import json
import os
import threading
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient, SchemaRegistryError
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft7Validator

from samzapy.api.errors import ConfigurationError, NotAuthenticated, RegistryUnreachable, SerdeError
from samzapy.config.document import settings_from_document
from samzapy.config.schema import Settings
from samzapy.kafka.schema_registry import LOGIN_WAITS_S, MAX_ANSWER_BYTES, ConfluentRegistry, _is_no_such_thing
from samzapy.memory import resident_bytes
from samzapy.serde.json_schema import JsonSchema
from samzapy.serde.registered import MAX_FORMS, Schemas
from samzapy.wiring.serdes import VALUE, Serdes
from tests.registry import Registry

BUY = {"type": "record", "name": "Buy", "namespace": "shop", "fields": [{"name": "user", "type": "string"}, {"name": "cents", "type": "int"}]}
BUY_2 = {**BUY, "fields": [*BUY["fields"], {"name": "coupon", "type": ["null", "string"], "default": None}]}
WIDER = {**BUY, "fields": [{"name": "cents", "type": "long"}]}


@pytest.fixture
def registry() -> Iterator[Registry]:
    with Registry() as found:
        yield found


def settings_of(registry: Registry, **section: Any) -> Settings:
    document = {
        "job": "shop", "task": "a:B", "kafka": {"bootstrap.servers": "memory:9092"},
        "inputs": [{"topic": "buys", "value": "registry"}],
        "schema_registry": {"url": registry.url, **section},
    }  # fmt: skip
    return settings_from_document(document, os.environ)


def serde(registry: Registry, tmp_path: Path, schema: Any = None, topic: str = "buys", file: str = "buy.avsc", **section: Any) -> Any:
    if schema is None:
        return Serdes(settings_of(registry, **section), [tmp_path]).of("registry", topic, VALUE)
    (tmp_path / file).write_text(json.dumps(schema))
    return Serdes(settings_of(registry, **section), [tmp_path]).of(f"registry:{file}", topic, VALUE)


def test_it_reads_and_writes_what_the_client_library_writes_and_reads(registry: Registry, tmp_path: Path) -> None:
    context = SerializationContext("buys", MessageField.VALUE)
    with SchemaRegistryClient({"url": registry.url}) as client:
        theirs = AvroSerializer(client, json.dumps(BUY))({"user": "ada", "cents": 7}, context)
        ours = serde(registry, tmp_path, BUY)
        assert ours.decode(theirs) == {"user": "ada", "cents": 7}
        assert ours.encode({"user": "ada", "cents": 7}) == theirs
        assert AvroDeserializer(client)(ours.encode({"user": "bob", "cents": 1}), context) == {"user": "bob", "cents": 1}


def test_its_connections_end_with_it(registry: Registry, tmp_path: Path) -> None:
    registry.add("buys-value", BUY)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        serde(registry, tmp_path, BUY).ready()
        gc.collect()
    assert [] == [str(w.message) for w in seen if str(registry.port) in str(w.message)]


def test_values_of_old_and_new_writers_are_read_by_the_schema_in_the_file(registry: Registry, tmp_path: Path) -> None:
    for schema in (BUY, BUY_2):
        registry.add("buys-value", schema)
    old, new = serde(registry, tmp_path, BUY).encode({"user": "ada", "cents": 7}), serde(registry, tmp_path, BUY_2).encode(
        {"user": "bob", "cents": 8, "coupon": "X"}
    )
    assert old[:5] != new[:5]
    reader = serde(registry, tmp_path, BUY_2)
    assert [reader.decode(old), reader.decode(new)] == [{"user": "ada", "cents": 7, "coupon": None}, {"user": "bob", "cents": 8, "coupon": "X"}]
    assert serde(registry, tmp_path, WIDER).decode(new) == {"cents": 8}
    assert serde(registry, tmp_path).decode(old) == {"user": "ada", "cents": 7}
    needs_more = serde(registry, tmp_path, {**BUY, "fields": [{"name": "shop", "type": "string"}]})
    with pytest.raises(SerdeError, match=r"by schema 1: .*shop.*need a default"):
        needs_more.decode(old)
    renamed = {**BUY, "name": "Purchase"}
    with pytest.raises(SerdeError, match=r"by schema 1: .the writer's schema has a record shop\.Buy, the file's has shop\.Purchase"):
        serde(registry, tmp_path, renamed).decode(old)
    assert serde(registry, tmp_path, {**renamed, "aliases": ["shop.Buy"]}).decode(old) == {"user": "ada", "cents": 7}


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "it has 0 bytes, and the header alone has 5"),
        (b"\0\0\0\1", "it has 4 bytes"),
        (b'{"user": "ada"}', "its first byte is 123"),
        (b"\0\0\0\0\0abc", "the Schema Registry has no schema 0"),
        (b"\0\xff\xff\xff\xffabc", "the Schema Registry has no schema 4294967295"),
        (b"\0\0\0\0\x63abc", "the Schema Registry has no schema 99"),
        (b"\0\0\0\0\1", "by schema 1: 'a number that does not end'"),
        (b"\0\0\0\0\1\6ad", "by schema 1: 'a length of 3"),
        (b"\0\0\0\0\1\6ada\2more", "by schema 1: '4 bytes follow the value'"),
    ],
)
def test_bytes_that_are_no_value_are_an_error_that_names_them(registry: Registry, tmp_path: Path, data: bytes, said: str) -> None:
    registry.add("buys-value", BUY)
    with pytest.raises(SerdeError, match="serde registry cannot read") as found:
        serde(registry, tmp_path).decode(data)
    assert said in found.value.message
    assert found.value.remedy


@given(data=st.binary(max_size=40), number=st.integers(0, 3))
def test_no_bytes_do_anything_else_than_a_value_or_a_serde_error(hostile: Any, data: bytes, number: int) -> None:
    for each in (data, b"\0" + number.to_bytes(4, "big") + data):
        try:
            hostile.decode(each)
        except SerdeError:
            continue


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with Registry() as found:
        found.add("buys-value", BUY_2)
        found.add("other", {"type": "array", "items": "null"})
        yield serde(found, tmp_path_factory.mktemp("hostile"), BUY_2)


def test_a_schema_is_asked_for_once_and_an_unknown_number_not_for_each_record(registry: Registry, tmp_path: Path) -> None:
    registry.add("buys-value", BUY)
    ours = serde(registry, tmp_path, BUY)
    for _ in range(50):
        ours.decode(ours.encode({"user": "ada", "cents": 7}))
    assert [line for line in registry.asked if "ids" in line] == ["GET /schemas/ids/1"]
    for _ in range(50):
        with pytest.raises(SerdeError):
            ours.decode(b"\0\0\0\0\x63abc")
    assert registry.asked.count("GET /schemas/ids/99") == 1
    for number in range(100, 100 + MAX_FORMS + 10):  # what is remembered is bounded
        ours._schemas._unknown[number] = (0.0 if number == 100 else 1e18, None)
    with pytest.raises(SerdeError):
        ours.decode(b"\0\0\0\1\0abc")


def test_a_registry_that_does_not_answer_is_no_fault_of_the_record(registry: Registry, tmp_path: Path) -> None:
    registry.add("buys-value", BUY)
    data = serde(registry, tmp_path, BUY).encode({"user": "ada", "cents": 7})
    registry.answers = False
    reader = serde(registry, tmp_path, BUY_2)
    with pytest.raises(RegistryUnreachable, match=registry.url) as found:
        reader.decode(data)
    assert "503" in found.value.message
    assert not isinstance(found.value, SerdeError)
    registry.answers = True
    assert reader.decode(data) == {"user": "ada", "cents": 7, "coupon": None}


NO_SCHEMAS = [
    {"schema": None}, {}, {"schema": 7}, {"schema": "{not json"}, {"schema": json.dumps(BUY), "schemaType": 7},
    {"schema": json.dumps(BUY), "schemaType": ["AVRO"]}, [], None,
]  # fmt: skip


@pytest.mark.parametrize("answer", NO_SCHEMAS, ids=repr)
def test_an_answer_without_a_schema_is_not_kept(registry: Registry, tmp_path: Path, answer: Any) -> None:
    registry.add("buys-value", BUY)
    data = serde(registry, tmp_path, BUY).encode({"user": "ada", "cents": 7})
    reader = serde(registry, tmp_path, BUY_2)
    registry.instead = [answer] * 2
    for _ in range(2):
        with pytest.raises(RegistryUnreachable):
            reader.decode(data)
    assert reader.decode(data) == {"user": "ada", "cents": 7, "coupon": None}


@pytest.mark.parametrize("answer", [{}, {"schema": None}, {"schema": 7}, {"schema": "<html>"}, []])
def test_an_answer_without_a_schema_that_another_refers_to_blames_no_record(registry: Registry, tmp_path: Path, answer: Any) -> None:
    place = {"type": "record", "name": "shop.Place", "fields": [{"name": "city", "type": "string"}]}
    registry.add("place", place)
    user = {"type": "record", "name": "shop.User", "fields": [{"name": "at", "type": "shop.Place"}]}
    refers = [{"name": "shop.Place", "subject": "place", "version": 1}]
    data = b"\0" + registry.add("users-value", user, references=refers).to_bytes(4, "big") + b"\x08Rome"
    reader = serde(registry, tmp_path)
    registry.instead = [{"schema": json.dumps(user), "references": refers}, answer]
    with pytest.raises(RegistryUnreachable):
        reader.decode(data)
    assert reader.decode(data) == {"at": {"city": "Rome"}}


NO_NUMBERS = [{}, {"id": 0}, {"id": None}, {"id": -1}, {"id": 2**31}, {"id": 2**40}, {"id": "1"}, {"id": 1.0}, {"id": True}, [], "1", None]


@pytest.mark.parametrize("answer", NO_NUMBERS, ids=repr)
@pytest.mark.parametrize("register", [False, True])
def test_nothing_is_written_by_a_number_that_is_none(registry: Registry, tmp_path: Path, register: bool, answer: Any) -> None:
    """A schema in a file: looked up, and where it is not there, registered."""
    if not register:
        registry.add("buys-value", BUY)
    ours = serde(registry, tmp_path, BUY)
    registry.unknown, registry.instead = int(register), [answer]
    with pytest.raises(RegistryUnreachable, match=registry.url):
        ours.ready(register)
    ours.ready(register)
    assert ours.encode({"user": "ada", "cents": 7})[:5] == b"\0\0\0\0\1"


@pytest.mark.parametrize("answer", NO_NUMBERS, ids=repr)
def test_nothing_is_written_by_a_newest_schema_without_a_number(registry: Registry, tmp_path: Path, answer: Any) -> None:
    registry.add("buys-value", BUY)
    ours = serde(registry, tmp_path)
    registry.instead = [{"subject": "buys-value", "version": 1, "schema": json.dumps(BUY), **answer} if isinstance(answer, dict) else answer]
    with pytest.raises(RegistryUnreachable, match=registry.url):
        ours.ready()
    ours.ready()
    assert ours.encode({"user": "ada", "cents": 7})[:5] == b"\0\0\0\0\1"


@pytest.mark.parametrize("answer", [{}, {"is_compatible": None}, {"is_compatible": "false"}, [], None])
def test_an_answer_that_does_not_say_whether_a_schema_is_compatible_is_none(registry: Registry, tmp_path: Path, answer: Any) -> None:
    registry.add("buys-value", BUY)
    ours = serde(registry, tmp_path, BUY_2)
    registry.unknown, registry.instead = 1, [answer]
    with pytest.raises(RegistryUnreachable, match=registry.url):
        ours.refuse_unfit(may_register=True)
    ours.refuse_unfit(may_register=True)


def test_what_writes_must_be_registered_unless_the_job_registers_it(registry: Registry, tmp_path: Path) -> None:
    ours = serde(registry, tmp_path, BUY, topic="totals")
    with pytest.raises(ConfigurationError, match="no version of subject totals-value is the same") as found:
        ours.ready()
    assert "register: true" in found.value.remedy
    ours.ready(register=True)
    assert ours.encode({"user": "ada", "cents": 7})[:5] == b"\0\0\0\0\1"
    broken = serde(registry, tmp_path, {**BUY, "fields": [{"name": "shop", "type": "string"}]}, topic="totals")
    with pytest.raises(ConfigurationError, match="not compatible with the newest version of subject totals-value"):
        broken.refuse_unfit(may_register=True)
    with pytest.raises(ConfigurationError, match="refuses the schema for subject totals-value: Schema being registered is incompatible"):
        broken.ready(register=True)


@pytest.mark.parametrize("register", [True, False])
def test_what_is_sent_to_an_input_is_registered_if_the_job_file_says_so(registry: Registry, tmp_path: Path, register: bool) -> None:
    """As `samzapy send TOPIC --job` writes: no run registers the schema of an input."""
    (tmp_path / "buy.avsc").write_text(json.dumps(BUY))
    serdes = Serdes(settings_of(registry, register=register), [tmp_path])
    serdes.ready(register)
    if not register:
        with pytest.raises(ConfigurationError, match="no version of subject buys-value is the same"):
            serdes.to_write("registry:buy.avsc", "buys", VALUE)
        return
    written = serdes.to_write("registry:buy.avsc", "buys", VALUE).encode({"user": "ada", "cents": 7})
    assert {"user": "ada", "cents": 7} == serde(registry, tmp_path).decode(written)


def test_without_a_file_the_newest_schema_of_the_subject_writes(registry: Registry, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="no subject buys-value"):
        serde(registry, tmp_path).encode({})
    registry.add("buys-value", BUY)
    newest = registry.add("buys-value", BUY_2)
    ours = serde(registry, tmp_path)
    assert ours.encode({"user": "ada", "cents": 7})[:5] == b"\0" + newest.to_bytes(4, "big")
    with pytest.raises(SerdeError, match="cannot write a dict"):
        ours.encode({"user": "ada", "cents": "seven"})


@pytest.mark.parametrize(("rule", "subject"), [("topic", "totals-value"), ("record", "shop.Buy"), ("topic_record", "totals-shop.Buy")])
def test_subjects_are_called_as_the_client_library_calls_them(registry: Registry, tmp_path: Path, rule: str, subject: str) -> None:
    serde(registry, tmp_path, BUY, topic="totals", subjects=rule).ready(register=True)
    assert f"POST /subjects/{subject}/versions" in registry.asked


def test_a_schema_that_refers_to_others_is_read_with_them(registry: Registry, tmp_path: Path) -> None:
    registry.add("place", {"type": "record", "name": "shop.Place", "fields": [{"name": "city", "type": "string"}]})
    user = {"type": "record", "name": "shop.User", "fields": [{"name": "at", "type": "shop.Place"}]}
    number = registry.add("users-value", user, references=[{"name": "shop.Place", "subject": "place", "version": 1}])
    assert serde(registry, tmp_path).decode(b"\0" + number.to_bytes(4, "big") + b"\x08Rome") == {"at": {"city": "Rome"}}


@pytest.mark.parametrize("at_top", [["null", "shop.Place"], {"type": "array", "items": "shop.Place"}], ids=repr)
def test_a_schema_may_be_nothing_but_references(registry: Registry, tmp_path: Path, at_top: Any) -> None:
    registry.add("place", {"type": "record", "name": "shop.Place", "fields": [{"name": "city", "type": "string"}]})
    registry.add("buys-value", at_top, references=[{"name": "shop.Place", "subject": "place", "version": 1}])
    value = [{"city": "Rome"}] if isinstance(at_top, dict) else {"city": "Rome"}
    with SchemaRegistryClient({"url": registry.url}) as client:
        context = SerializationContext("buys", MessageField.VALUE)
        ours = serde(registry, tmp_path)
        assert ours.decode(ours.encode(value)) == value == AvroDeserializer(client)(ours.encode(value), context)


@pytest.mark.parametrize("base", [{}, {"$id": "http://shop.example/user.json"}], ids=["", "$id"])
def test_a_json_schema_that_refers_to_others_is_written_with_them(registry: Registry, tmp_path: Path, base: dict[str, str]) -> None:
    registry.add("city", {"type": "string", "minLength": 3}, kind="JSON")
    refers = [{"name": "city.json", "subject": "city", "version": 1}]
    registry.add("place", {"type": "object", "properties": {"city": {"$ref": "city.json"}}}, kind="JSON", references=refers)
    user = {**base, "type": "object", "properties": {"at": {"$ref": "place.json"}}}
    registry.add("buys-value", user, kind="JSON", references=[{"name": "place.json", "subject": "place", "version": 1}])
    ours = serde(registry, tmp_path)
    assert ours.decode(ours.encode({"at": {"city": "Rome"}})) == {"at": {"city": "Rome"}}
    with pytest.raises(SerdeError, match=r"\$\.at\.city"):
        ours.encode({"at": {"city": "Ro"}})


def test_what_a_json_schema_refers_to_and_nobody_has_is_named(registry: Registry, tmp_path: Path) -> None:
    registry.add("buys-value", {"type": "object", "properties": {"at": {"$ref": "place.json"}}}, kind="JSON")
    with pytest.raises(SerdeError, match=r"the schema refers to place\.json, which is not in it"):
        serde(registry, tmp_path).encode({"at": 1})


@pytest.mark.parametrize(
    ("items", "are_unique"),
    [
        ([1, 1.0], False), ([True, 1], True), ([0, False], True), ([{"a": 1, "b": [2]}, {"b": [2.0], "a": 1}], False), ([{"a": 1}, {"a": True}], True),
        ([[1], {"a": 1}, "1", None, 1], True), ([[1, 2], [2, 1]], True), ([None, None], False), (["a", "a"], False), ([], True), ("aa", True),
    ],
)  # fmt: skip
def test_items_are_unique_as_the_package_has_it(items: Any, are_unique: bool) -> None:
    schema = {"uniqueItems": True}
    assert are_unique is Draft7Validator(schema).is_valid(items)
    if are_unique:
        JsonSchema(schema).check(items)
    else:
        with pytest.raises(ValueError, match=r"\$: an item is there twice"):
            JsonSchema(schema).check(items)


def test_unique_items_are_not_compared_each_with_each() -> None:
    """Twice as many objects take twice as long, not four times."""
    checked = JsonSchema({"items": {"uniqueItems": True}})
    few, many = ([[{"a": number} for number in range(count)]] for count in (100, 800))

    def seconds(value: Any) -> float:
        start = time.process_time()
        checked.check(value)
        return time.process_time() - start

    assert min(seconds(many) for _ in range(3)) < 30 * min(seconds(few) for _ in range(3))


def test_unique_items_are_so_by_reference_too() -> None:
    """The package looks its own checks up again for a schema that names its dialect."""
    dialect, part = {"$schema": "http://json-schema.org/draft-07/schema#"}, {"properties": {"a": {"uniqueItems": True}}}
    for checked in (
        JsonSchema({**dialect, "properties": {**part["properties"], "n": {"$ref": "#"}}}),
        JsonSchema({**dialect, "properties": {"n": {"$ref": "other.json"}}}, {"other.json": {**dialect, **part}}),
    ):
        checked.check({"n": {"a": [1, 2]}})
        with pytest.raises(ValueError, match=r"\$\.n\.a: an item is there twice"):
            checked.check({"n": {"a": [1, 1]}})


def test_a_registry_that_says_404_of_a_schema_is_taken_at_its_word() -> None:
    """Some answer so where Confluent's says 40403."""
    told = ((404, "No artifact with id 7", True), (404, "HTTP 404 Not Found", False), (40403, "Schema not found", True), (None, "", False))
    for code, message, is_missing in told:
        assert is_missing is _is_no_such_thing(SchemaRegistryError(404, code, message))


@pytest.mark.parametrize("path", ["/wrong", "/wrong/path"])
def test_a_wrong_path_blames_no_record(registry: Registry, path: str) -> None:
    """Its server answers it with 404, and so do others in JSON; a schema that is not there is 40403."""
    found = ConfluentRegistry(registry.url + path, {})
    for ask in (lambda: found.by_id(1), lambda: found.newest("buys-value"), lambda: found.id_of("buys-value", "AVRO", '"long"')):
        with pytest.raises(RegistryUnreachable, match=r"HTTP 404.*Check `schema_registry\.url`"):
            ask()
    assert ConfluentRegistry(registry.url, {}).by_id(1) is None


@pytest.mark.parametrize("deep", [False, True], ids=["", "of a reference"])
@pytest.mark.parametrize(("subject", "version"), [("place", 2), ("gone", 1)])
def test_a_schema_whose_reference_is_missing_is_told_as_that(registry: Registry, tmp_path: Path, subject: str, version: int, deep: bool) -> None:
    registry.add("place", {"type": "record", "name": "shop.Town", "fields": []})
    refers = [{"name": "shop.Place", "subject": subject, "version": version}]
    user: dict[str, Any] = {"type": "record", "name": "shop.User", "fields": [{"name": "at", "type": "shop.Place"}]}
    if deep:
        registry.add("between", {"type": "record", "name": "shop.Between", "fields": [{"name": "at", "type": "shop.Place"}]}, references=refers)
        refers = [{"name": "shop.Between", "subject": "between", "version": 1}]
        user["fields"] = [{"name": "at", "type": "shop.Between"}]
    number = registry.add("users-value", user, references=refers)
    now, what = [0.0], f"schema {number} refers to version {version} of subject {subject}, which the Schema Registry does not have"
    schemas = Schemas(ConfluentRegistry(registry.url, {}), lambda: now[0])
    for _ in range(3):
        with pytest.raises(SerdeError, match=what):
            schemas.form(number)
    asked = len(registry.asked)
    now[0] = 4.9
    with pytest.raises(SerdeError, match=what):
        schemas.form(number)
    assert len(registry.asked) == asked, "not asked again for each record"
    registry.add(subject, {"type": "record", "name": "shop.Place", "fields": [{"name": "city", "type": "string"}]})
    now[0] = 5.0
    found = schemas.form(number)
    assert found is not None
    assert found.read(b"\0\0\0\0\0\x08Rome", 5, None) == {"at": {"at": {"city": "Rome"}} if deep else {"city": "Rome"}}


def test_a_login_is_used_and_is_in_no_message(registry: Registry, tmp_path: Path) -> None:
    registry.login = "ada:a-long-password"
    registry.add("buys-value", BUY)
    ours = serde(registry, tmp_path, BUY, conf={"basic.auth.user.info": "ada:a-long-password"})
    assert ours.encode({"user": "ada", "cents": 7})
    with pytest.raises(NotAuthenticated, match="refuses the login") as found:
        serde(registry, tmp_path, BUY, conf={"basic.auth.user.info": "ada:a-wrong-password"}).ready()
    assert "password" not in str(found.value)


def test_a_login_that_was_accepted_is_tried_a_few_times_more(registry: Registry, caplog: pytest.LogCaptureFixture) -> None:
    number, waited = registry.add("buys-value", BUY), list[float]()
    asked = ConfluentRegistry(registry.url, {}, wait=waited.append)
    registry.refusals = 1
    with pytest.raises(NotAuthenticated, match="refuses the login: Unauthorized"):  # who was never let in is not kept waiting
        asked.by_id(number)
    assert (waited, registry.refusals) == ([], 0)
    assert asked.newest("buys-value") is not None
    registry.refusals = len(LOGIN_WAITS_S)
    assert asked.by_id(number) is not None
    assert (tuple(waited), registry.refusals) == (LOGIN_WAITS_S, 0)
    assert "refuses a login that it accepted before: HTTP 401; tried again in 1 s" in caplog.text
    registry.refusals = 100
    with pytest.raises(NotAuthenticated, match="refuses the login, after 4 tries: Unauthorized"):
        asked.id_of("buys-value", "AVRO", json.dumps(BUY_2))
    assert registry.refusals == 100 - 4


def test_an_answer_that_never_comes_to_an_end_is_given_up(registry: Registry) -> None:
    number = registry.add("buys-value", BUY)
    asked = ConfluentRegistry(registry.url, {}, answer_s=0.2)
    registry.drips = True
    with pytest.raises(RegistryUnreachable, match=r"its answer has not come to an end within 0\.2 s"):
        asked.by_id(number)
    registry.drips = False
    found = ConfluentRegistry(registry.url, {}).by_id(number)
    asked._answer_s = 60.0
    assert asked.by_id(number) == found is not None
    for thread in threading.enumerate():
        if thread.name == "asks the Schema Registry":
            thread.join(30)
            assert not thread.is_alive()


def test_an_answer_that_would_fill_the_memory_is_not_read(registry: Registry) -> None:
    number = registry.add("buys-value", BUY)
    asked = ConfluentRegistry(registry.url, {}, answer_s=60.0)
    before = resident_bytes() or 0
    registry.floods = True
    with pytest.raises(RegistryUnreachable, match=f"an answer of more than {MAX_ANSWER_BYTES} bytes"):
        asked.by_id(number)
    registry.floods, registry.packs = False, 32 << 20
    with pytest.raises(RegistryUnreachable, match="an answer in encoding gzip, which was not asked for"):
        asked.by_id(number)
    assert (resident_bytes() or 0) - before < 150 << 20  # the registry of this test packs in this process
    registry.packs = 0
    assert asked.by_id(number) is not None


def test_json_schema_values_are_checked_by_the_file(registry: Registry, tmp_path: Path) -> None:
    schema = {"type": "object", "title": "Buy", "required": ["cents"], "properties": {"cents": {"type": "integer", "minimum": 0}}}
    registry.add("buys-value", schema, kind="JSON")
    ours = serde(registry, tmp_path, schema, file="buy.json")
    data = ours.encode({"cents": 7})
    assert data == b'\0\0\0\0\1{"cents":7}'
    assert ours.decode(data) == serde(registry, tmp_path).decode(data) == {"cents": 7}
    with pytest.raises(SerdeError, match=r"\$\.cents"):
        ours.encode({"cents": -1})
    with pytest.raises(SerdeError, match=r"\$\.cents"):
        ours.decode(data.replace(b"7", b"-1"))
    with pytest.raises(SerdeError, match="schema 1 is of kind JSON, not AVRO"):
        serde(registry, tmp_path, BUY).decode(data)


def test_another_kind_of_schema_is_named(registry: Registry, tmp_path: Path) -> None:
    registry.add("buys-value", "syntax = 'proto3';", kind="PROTOBUF")
    with pytest.raises(SerdeError, match="kind PROTOBUF"):
        serde(registry, tmp_path).decode(b"\0\0\0\0\1\0abc")
