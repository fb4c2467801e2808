"""Kafka's client is asked about properties: every wrong one is found, without a connection, and no secret is told."""

from __future__ import annotations

import pytest

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


@pytest.mark.parametrize(
    ("key", "value", "read", "hint"),
    [
        ("message.max.bytes", "2000KiB", "2000", "Write the number of bytes: 2048000. "),
        ("batch.size", "1MB", "1", "Write the number of bytes: 1048576. "),
        ("socket.timeout.ms", "60s", "60", "Write the number of milliseconds: 60000. "),
        ("topic.metadata.refresh.interval.ms", "5 min", "5", "Write the number of milliseconds: 300000. "),
        ("queue.buffering.max.kbytes", "1GiB", "1", "Write the number of KiB: 1048576. "),
        ("queue.buffering.max.messages", "100_000", "100", "Write the number: 100000. "),
        ("queue.buffering.max.messages", "100k", "100", "Write the number. "),
    ],
)
def test_a_number_with_a_unit_is_refused_where_the_client_would_leave_out_the_unit(key: str, value: str, read: str, hint: str) -> None:
    for side in ({key: value}, {"producer": {key: value}}):
        ((message, remedy),) = told(**side).values()
        assert (f"expected a number, found {value!r}, which Kafka's client would read as {read}", True) == (message, remedy.startswith(hint)), remedy


def test_texts_and_numbers_as_texts_are_no_misread_numbers() -> None:
    texts = {"client.id": "10s", "client.rack": "1d", "group.instance.id": "100_000", "ssl.cipher.suites": "1k"}
    assert {} == told(**texts, consumer={"queued.min.messages": "100", "fetch.wait.max.ms": " 7 "}, producer={"linger.ms": "0.5"})


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
