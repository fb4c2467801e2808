"""How often a broker is asked for the ends of many partitions: counted on the way to it. `SAMZAPY_TEST_PARTITIONS` says of how many (10,000)."""

from __future__ import annotations

import os
from itertools import pairwise

import pytest

from samzapy.kafka.log import KafkaLog
from samzapy.model.offsets import TopicPartition
from tests.broker import admin, create_topic, delete_topic
from tests.figures import Tell
from tests.proxy.proxy import KafkaProxy
from tests.proxy.wire import Api

pytestmark = [pytest.mark.kafka, pytest.mark.prove, pytest.mark.timeout(900)]
PARTITIONS = int(os.environ.get("SAMZAPY_TEST_PARTITIONS", "10000"))
EACH = 1000  # partitions of a topic
ROUNDS = 3


def test_a_round_of_lags_is_at_most_three_requests_to_a_broker(kafka: str, unique: str, tell: Tell) -> None:
    topics = [create_topic(kafka, f"{unique}-{n}", EACH) for n in range(PARTITIONS // EACH)]
    wanted = [TopicPartition(topic, p) for topic in topics for p in range(EACH)]
    try:
        with KafkaProxy(kafka) as proxy:
            own = {"bootstrap.servers": proxy.bootstrap_servers}
            client = KafkaLog(own, own, own, commit_timeout_ms=20_000, lease_ms=10_000).admin()
            client.high_watermarks(wanted)  # waits until each is led
            counts = []
            for _ in range(ROUNDS + 1):
                assert dict.fromkeys(wanted, 0) == client.ends(wanted)
                counts.append(dict(proxy.seen))
            client.close()
        made = [{Api(api).name: n - before.get(api, 0) for api, n in now.items() if n > before.get(api, 0)} for before, now in pairwise(counts)]
        tell(f"{len(wanted):,} partitions: {made}")
        assert all(sum(requests.values()) <= 3 * len(admin(kafka).list_topics(timeout=60).brokers) for requests in made)
    finally:
        for topic in topics:
            delete_topic(kafka, topic)
