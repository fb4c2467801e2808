"""Where no file or socket can be opened any more, that is named, and not the brokers."""

from __future__ import annotations

import subprocess
import sys

import pytest

from samzapy.kafka.open_files import used_up

ASKS = """
import os, resource
from confluent_kafka import KafkaError
from samzapy.kafka.errors import log_error

resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
held = []
try:
    while True:
        held.append(os.dup(0))
except OSError:
    pass
if {freed}:
    for one in held[:10]:
        os.close(one)
print(log_error(KafkaError(KafkaError._TIMED_OUT), "the bounds of t[0]"))
"""


@pytest.mark.parametrize(("freed", "words"), [(False, "it has used up the 64 files and sockets"), (True, "that the brokers run")])
def test_a_process_that_can_open_no_more_blames_no_broker(freed: bool, words: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", ASKS.format(freed=freed)], capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL, check=False
    )
    assert words in done.stdout, done.stdout + done.stderr


def test_a_process_that_can_open_more_is_not_blamed() -> None:
    assert "" == used_up()
