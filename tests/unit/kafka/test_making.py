"""A Kafka client that cannot be made ends its process, with the place: nothing of Python's could do that."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from samzapy.api.errors import ConfigurationError
from samzapy.kafka.producer import KafkaTransactionalProducer

MAKE = """
import faulthandler
import resource
import sys
from samzapy.kafka.consumer import KafkaConsumer
from samzapy.kafka.making import guard_clients

faulthandler.enable()
guard_clients({longest})
{limit}
made = [KafkaConsumer({{"bootstrap.servers": "127.0.0.1:1"}}, "g", "c") for _ in range(40)]
sys.exit(7)
"""
FULL = "resource.setrlimit(resource.RLIMIT_AS, (900 << 20, 900 << 20))"


def made(limit: str, longest: float) -> subprocess.CompletedProcess[str]:
    text = MAKE.format(limit=limit, longest=longest)
    return subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL, check=False)


@pytest.mark.skipif(sys.platform != "linux", reason="the limit holds on Linux only")
def test_too_little_address_space_ends_the_process_with_the_place_instead_of_a_hang() -> None:
    done = made(FULL, 2.0)
    assert done.returncode in (-signal.SIGALRM, -signal.SIGABRT, 1), done.stderr  # librdkafka waits, or gives up by itself
    assert "consumer.py" in done.stderr or "Failed to create consumer" in done.stderr or "rdkafka" in done.stderr


def test_a_client_that_can_be_made_leaves_no_alarm_set() -> None:
    text = """
import signal, sys
from samzapy.kafka.consumer import KafkaConsumer
from samzapy.kafka.making import guard_clients, making
guard_clients(30.0)
signal.setitimer(signal.ITIMER_REAL, 50.0)
with making():
    with making():
        assert 0 < signal.getitimer(signal.ITIMER_REAL)[0] <= 30.0
    assert 0 < signal.getitimer(signal.ITIMER_REAL)[0] <= 30.0
assert 30.0 < signal.getitimer(signal.ITIMER_REAL)[0] <= 50.0
KafkaConsumer({"bootstrap.servers": "127.0.0.1:1"}, "g", "c").close()
assert 30.0 < signal.getitimer(signal.ITIMER_REAL)[0] <= 50.0
sys.exit(7)
"""
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL, check=False)
    assert 7 == done.returncode, done.stderr


def test_properties_that_do_not_go_together_are_refused_as_the_job_files_fault() -> None:
    with pytest.raises(ConfigurationError, match=r"refuses these properties together: .*linger\.ms"):
        KafkaTransactionalProducer({"bootstrap.servers": "127.0.0.1:1", "linger.ms": 30_000}, "t", 20_000)
