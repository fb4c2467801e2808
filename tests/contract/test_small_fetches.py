"""What records that are compressed much take of a consumer's memory."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.broker import produce
from tests.contract.log_worlds import KafkaWorld, new_topic

pytestmark = pytest.mark.kafka
READING = """
import sys
from pathlib import Path
from samzapy.kafka.log import KafkaLog
from samzapy.model.offsets import TopicPartition
settings = {"bootstrap.servers": sys.argv[1]}
with KafkaLog(settings, settings, settings, 10_000, 10_000).consumer("g", "c", small=sys.argv[3] == "small") as consumer:
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

    usual, small = megabytes("usual"), megabytes("small")
    assert 200 < usual
    assert small < usual / 2
