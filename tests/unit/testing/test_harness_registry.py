"""Jobs with a Schema Registry in the harness: what they read, keep and send, and how schemas change."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from samzapy import StreamTask
from samzapy.api.errors import RegistryUnreachable
from samzapy.config.errors import ConfigError
from samzapy.testing import Harness

BUY = {"type": "record", "name": "Buy", "fields": [{"name": "cents", "type": "int"}]}
BUY_2 = {"type": "record", "name": "Buy", "fields": [{"name": "cents", "type": "int"}, {"name": "coupon", "type": "string", "default": "none"}]}
TOTAL = {"type": "record", "name": "Total", "fields": [{"name": "cents", "type": "long"}]}
TOTAL_2 = {"type": "record", "name": "Total", "fields": [{"name": "cents", "type": "long"}, {"name": "buys", "type": "long", "default": 0}]}


class Totals(StreamTask):
    def init(self, context):
        self.totals = context.get_store("totals")

    def process(self, envelope, collector, coordinator):
        total = self.totals.get(envelope.key, {"cents": 0})
        total = {**total, "cents": total["cents"] + envelope.message["cents"]}
        if "buys" in total:
            total["buys"] += 1
        self.totals.put(envelope.key, total)
        collector.send("totals", total, key=envelope.key)


def job(**changes: object) -> dict[str, object]:
    return {
        "inputs": [{"topic": "buys", "key": "string", "value": "registry:buy.avsc"}],
        "outputs": [{"topic": "totals", "key": "string", "value": "registry:total.avsc"}],
        "stores": {"totals": {"key": "string", "value": "registry:total.avsc"}},
        "schema_registry": {"url": "http://localhost:8081"},
        **changes,
    }


@pytest.fixture(autouse=True)
def _schemas(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, schema in (("buy", BUY), ("buy-2", BUY_2), ("total", TOTAL)):
        Path(f"{name}.avsc").write_text(json.dumps(schema))


def test_state_and_readers_go_on_when_schemas_change() -> None:
    with Harness(Totals, **job()) as h:
        h.send("buys", {"cents": 5}, key="ada")
        h.send("buys", {"cents": 6, "coupon": "X"}, key="ada", schema="buy-2.avsc")  # a producer that is newer than the job
        h.run()
        assert h.output("totals") == [("ada", {"cents": 5}), ("ada", {"cents": 11})]
        Path("total.avsc").write_text(json.dumps(TOTAL_2))
        h.restart(**job())  # the same job with a field more: what the store holds is read by it
        h.send("buys", {"cents": 1}, key="ada")
        h.run()
        assert h.store("totals") == {"ada": {"cents": 12, "buys": 1}}
        h.crash(keep_state=False)
        assert h.store("totals") == {"ada": {"cents": 12, "buys": 1}}
        h.send("buys", {"cents": 1}, key="ada")
        h.run()
        assert h.output("totals")[-1] == ("ada", {"cents": 13, "buys": 2})


def test_a_store_may_change_from_one_schema_file_to_another() -> None:
    Path("other.avsc").write_text(json.dumps(TOTAL_2))
    with Harness(Totals, **job()) as h:
        h.send("buys", {"cents": 5}, key="ada")
        h.run()
        h.restart(stores={"totals": {"key": "string", "value": "registry:other.avsc"}})
        assert h.store("totals") == {"ada": {"cents": 5, "buys": 0}}


def test_bytes_without_a_header_are_a_dead_letter_and_a_silent_registry_is_not() -> None:
    with Harness(Totals, **job(on_error={"then": "dead_letter"})) as h:
        h.send("buys", {"cents": 5}, key="ada")
        h.send_raw("buys", b'{"cents": 5}', b"ada")
        h.run()
        (letter,) = h.dead_letters()
        assert letter.value == b'{"cents": 5}'
        assert "its first byte is 123" in letter.error

        h.send("buys", {"cents": 6, "coupon": "X"}, key="ada", schema="buy-2.avsc")
        h.crash()
        h.registry.answers = False
        h._job.serdes._schemas._forms.clear()  # a new process knows no schema
        with pytest.raises(RegistryUnreachable):
            h.run()
        h.crash()
        h.registry.answers = True
        h.run()
        assert len(h.dead_letters()) == 1
        assert h.output("totals")[-1] == ("ada", {"cents": 11})


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"schema_registry": None}, "needs a Schema Registry"),
        ({"schema_registry": {"url": "http://ada:pw@localhost:8081"}}, "a login in the address"),
        ({"schema_registry": {"url": "localhost:8081"}}, "expected an address"),
        ({"schema_registry": {"url": "http://localhost:8081", "conf": {"cache.capacity": 1}}}, "no key of the registry's client"),
        ({"stores": {"totals": {"key": "registry:buy.avsc", "value": "json"}}}, "keys of a store cannot be of the Schema Registry"),
        ({"schema_registry": {"url": "http://localhost:8081", "subjects": "record"}, "outputs": [{"topic": "t", "value": "registry"}]}, "no schema is named"),
        ({"inputs": [{"topic": "buys", "value": "registry:"}]}, "names no schema file"),
    ],
)
def test_what_cannot_work_is_refused_with_the_job_file(changes: dict[str, object], said: str) -> None:
    with pytest.raises(ConfigError, match=said) as found:
        Harness(Totals, **job(**changes))
    assert "pw" not in str(found.value).replace("password", "")
