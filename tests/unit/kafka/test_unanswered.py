"""A client that no broker answers, or that gets no further than its login."""

from __future__ import annotations

import gc

import pytest
from confluent_kafka import KafkaError
from confluent_kafka.admin import AdminClient

import samzapy.kafka.admin
from samzapy.api.errors import ClusterUnreachable, LogError, TlsFailed
from samzapy.kafka.admin import KafkaAdmin
from tests.broker import free_port

ALERT = "ssl://127.0.0.1:9093/bootstrap: Receive failed: SSL routines::tlsv13 alert certificate expired: SSL alert number 45"


@pytest.mark.parametrize("is_refused", [False, True])
def test_a_client_is_gone_when_it_is_closed_whoever_still_has_its_error(is_refused: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its threads go on asking the broker as long as it is there."""
    monkeypatch.setattr(samzapy.kafka.admin, "REACH_TIMEOUT_S", 0.0)
    with KafkaAdmin({"bootstrap.servers": f"127.0.0.1:{free_port()}"}) as admin:
        client = id(admin._admin)
        if is_refused:
            admin._refusals.heard(KafkaError(KafkaError._TRANSPORT, ALERT))
        with pytest.raises(LogError) as kept:
            admin.cluster_id()
    assert (TlsFailed if is_refused else ClusterUnreachable) is type(kept.value)
    assert client not in [id(found) for found in gc.get_objects() if isinstance(found, AdminClient)]
