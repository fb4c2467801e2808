"""What a client says of a broker that does not accept its certificate: the library reports no more than a connection that was closed."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError

from samzapy.api.errors import TlsFailed
from samzapy.kafka.logins import Refusals

AT = "ssl://127.0.0.1:9093/bootstrap: Receive failed: error:0A000412:SSL routines::"
AFTER = ": SSL alert number 42 (after 0ms in state APIVERSION_QUERY)"


@pytest.mark.parametrize("alert", ["bad certificate", "certificate unknown", "certificate expired", "certificate required", "unknown ca"])
@pytest.mark.parametrize("words", ["ssl/tls alert {}", "tlsv13 alert {}", "sslv3 alert {}"])
@pytest.mark.parametrize(("key", "remedy"), [("", "Set `ssl.keystore.location`"), ("ssl.certificate.location", "`ssl.certificate.location` names: that it has")])
def test_an_alert_about_the_clients_certificate_is_said_as_that(alert: str, words: str, key: str, remedy: str) -> None:
    refusals = Refusals({key: "/a/file.pem"} if key else {})
    refusals.heard(KafkaError(KafkaError._TRANSPORT, AT + words.format(alert) + AFTER))
    error = refusals.error("asking")
    assert isinstance(error, TlsFailed)
    assert f"the broker at 127.0.0.1:9093 does not accept this client's certificate, or wants one ({alert})" in error.message
    assert remedy in error.remedy


@pytest.mark.parametrize("reason", ["Receive failed: Connection reset by peer", "Disconnected while requesting ApiVersion", "Connect to x failed: alert"])
def test_a_connection_that_breaks_is_no_refusal(reason: str) -> None:
    refusals = Refusals({})
    refusals.heard(KafkaError(KafkaError._TRANSPORT, f"ssl://127.0.0.1:9093/bootstrap: {reason}"))
    assert refusals.error("asking") is None
