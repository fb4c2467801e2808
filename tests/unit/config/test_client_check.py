"""Kafka's client is asked about properties: every wrong one is found, without a connection, and no secret is told."""

from __future__ import annotations

from samzapy.config.client_check import check_client_keys
from samzapy.kafka.client import check_properties


def told(**kafka: object) -> dict[str, tuple[str, str]]:
    document = {"kafka": {"bootstrap.servers": "nowhere.invalid:1", **kafka}}
    return {".".join(map(str, f.path)): (f.message, f.hint) for f in check_client_keys(document, check_properties)}


def test_what_is_right_is_accepted() -> None:
    assert {} == told(**{"linger.ms": 5, "producer": {"compression.type": "gzip"}, "consumer": {"fetch.min.bytes": 10}})


def test_every_misspelt_key_is_found() -> None:
    found = told(**{"linger.mss": 5, "socket.timeout.m": 1, "producer": {"compresion.type": "gzip"}, "consumer": {"fetch.min.byte": 10}})

    assert {
        "kafka.linger.mss": ("unknown Kafka property 'linger.mss'", "did you mean 'linger.ms'?"),
        "kafka.socket.timeout.m": ("unknown Kafka property 'socket.timeout.m'", "did you mean 'socket.timeout.ms'?"),
        "kafka.producer.compresion.type": ("unknown Kafka property 'compresion.type'", "did you mean 'compression.type'?"),
        "kafka.consumer.fetch.min.byte": ("unknown Kafka property 'fetch.min.byte'", "did you mean 'fetch.min.bytes'?"),
    } == found


def test_a_wrong_value_is_told_at_its_key() -> None:
    found = told(consumer={"fetch.min.bytes": "many"})

    assert ["kafka.consumer.fetch.min.bytes"] == list(found)
    assert "refuses it" in found["kafka.consumer.fetch.min.bytes"][0]


def test_keys_that_need_one_another_are_not_judged_alone() -> None:
    sasl = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.username": "u", "sasl.password": "p"}

    assert ["kafka.linger.mss"] == list(told(**sasl, **{"linger.mss": 5}))


def test_keys_that_are_refused_are_not_shown_to_the_client() -> None:
    shown: list[dict[str, object]] = []

    def ask(group: str, properties: dict[str, object]) -> str | None:
        shown.append({"group": group, **properties})
        return None

    check_client_keys({"kafka": {"bootstrap.servers": "h", "plugin.library.paths": "/x.so", "error_cb": "f", "linger.ms": 5}}, ask)

    assert [{"group": "kafka.producer", "linger.ms": 5}, {"group": "kafka.consumer", "linger.ms": 5}] == shown


def test_a_secret_value_is_not_told() -> None:
    def ask(group: str, properties: dict[str, object]) -> str | None:
        return f"bad value {properties['sasl.password']}" if "sasl.password" in properties else None

    (finding,) = check_client_keys({"kafka": {"sasl.password": "hunter2"}}, ask)

    assert "hunter2" not in finding.message
    assert "bad value ***" in finding.message
