"""What records that are compressed much take of a consumer's memory."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest
from confluent_kafka import Producer

from samzapy.clock import SystemClock
from samzapy.container.input_consumer import InputConsumer
from samzapy.model.caution import Caution
from samzapy.model.offsets import TopicPartition
from tests.broker import LIMIT_S, produce
from tests.contract.log_worlds import KafkaWorld, new_topic

pytestmark = pytest.mark.kafka
READING = """
import sys
from pathlib import Path
from samzapy.kafka.log import KafkaLog
from samzapy.model.offsets import TopicPartition
from samzapy.ports import Fetch
settings = {"bootstrap.servers": sys.argv[1]}
with KafkaLog(settings, settings, settings, 10_000, 10_000).consumer("g", "c", Fetch[sys.argv[3]]) as consumer:
    consumer.assign({TopicPartition(sys.argv[2], 0): 0})
    left = 20
    while left:
        left -= len(consumer.poll(500, 0.1))
# not getrusage: its peak begins with what the parent had when it forked
[peak] = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM:")]
print(int(peak.split()[1]) // 1024)
"""


def test_small_fetches_bound_what_compressed_records_take(kafka: str) -> None:
    topic = new_topic(KafkaWorld(kafka).log)
    for _ in range(20):  # each in a batch of its own
        produce(kafka, topic, [(None, bytes(10_000_000), 0)], message_max_bytes=20_000_000, compression_type="zstd")

    def megabytes(how: str) -> int:
        done = subprocess.run([sys.executable, "-c", READING, kafka, topic, how], capture_output=True, text=True, check=True, timeout=60)
        return int(done.stdout)

    usual, least = megabytes("USUAL"), megabytes("LEAST")
    assert 200 < usual
    assert least < usual / 2


def test_after_a_second_death_small_batches_are_gathered_and_after_the_first_many_come_at_once(kafka: str) -> None:
    """A feed of many small batches, two of three partitions at their end: each poll, which is reported to the coordinator, has many of them."""
    log = KafkaWorld(kafka).log
    topic = new_topic(log, 3)
    producer = Producer({"bootstrap.servers": kafka, "linger.ms": 100, "batch.num.messages": 5})
    for _ in range(1000):  # a full batch does not wait
        producer.produce(topic, b"v", partition=0)
    assert 0 == producer.flush(LIMIT_S)

    def polls(deaths: int) -> int:
        consumer = InputConsumer(lambda fetch: log.consumer(topic, "c", fetch), Caution(watch_s=300.0, deaths=deaths), SystemClock(), 0)
        with consumer:
            consumer.assign({TopicPartition(topic, p): 0 for p in range(3)})
            left = count = 0
            deadline = time.monotonic() + LIMIT_S
            while left < 1000 and time.monotonic() < deadline:
                records = consumer.poll(500, 1.0)
                left, count = left + len(records), count + bool(records)
            assert 1000 == left
            return count

    assert polls(1) < 10
    assert polls(2) < 150
