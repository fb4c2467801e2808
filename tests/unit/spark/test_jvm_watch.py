"""A call into the JVM that takes too long ends the JVM; short ones, however many, do not."""

from __future__ import annotations

import logging
import threading

import pytest

from samzapy.spark.jvm_watch import JvmWatch
from tests.integration.processes import until


def test_a_call_that_does_not_return_is_told_of_once_and_ends_the_jvm_once(caplog: pytest.LogCaptureFixture) -> None:
    killed: list[str] = []
    ended = threading.Event()

    def kill(why: str) -> None:
        killed.append(why)
        ended.set()

    watch = JvmWatch(kill, silent_s=0.5, told_s=0.1, look_s=0.01)
    with caplog.at_level(logging.WARNING), watch.call():
        assert ended.wait(30)
    watch.close()
    assert 1 == len([text for text in caplog.messages if "has not answered" in text])
    assert ["did not answer for 0 s, and was ended"] == killed or ["did not answer for 1 s, and was ended"] == killed


def test_calls_that_return_are_no_silence() -> None:
    killed: list[str] = []
    watch = JvmWatch(killed.append, silent_s=5.0, told_s=5.0, look_s=0.001)
    for _ in range(2000):
        with watch.call():
            pass
    assert {} == watch._since
    watch.close()
    until(lambda: not any(t.name == "spark-watch" for t in threading.enumerate()), "its thread ends")
    assert [] == killed


def test_the_time_in_which_the_driver_itself_stood_still_is_no_silence() -> None:
    """A suspended driver, or machine, that wakes in the middle of a call: the JVM gets its time to answer."""
    killed: list[str] = []
    clock = [1000.0]
    looks = threading.Semaphore(0)

    def monotonic() -> float:
        looks.release()
        return clock[0]

    watch = JvmWatch(killed.append, silent_s=30.0, told_s=10.0, look_s=0.001, monotonic=monotonic)
    with watch.call():
        clock[0] += 3600.0
        for _ in range(100):
            assert looks.acquire(timeout=30)
        assert [] == killed
    watch.close()
