"""What a reader of the outputs notices while records keep coming: how old an update is, and how long there is none after a container died.

loops.py ends where its input ends, so there is no loop beside these.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import orjson
from confluent_kafka import Consumer, KafkaException, TopicPartition

from tests.bench.place import PARTITIONS, ROOT, USERS, Place
from tests.bench.ratios import percentile
from tests.bench.runs import LiveJob, live_job
from tests.bench.yardstick import Figures, Side, Sides
from tests.broker import create_topic

RATE, RECOVERY_RATE = 5000, 1000  # records a second
SECONDS, SMALL_SECONDS, WARM_UP_S = 25.0, 8.0, 4.0
KILL_AFTER_S = 5.0
PATIENCE_S = 120.0
AT_LEAST = {"guarantee": "at_least_once"}
EXACTLY = {"guarantee": "exactly_once", "interval": "100ms"}
Update = tuple[float, bytes, int, float]  # when it was read, the key, its count, the time that its record bears


def latency(place: Place) -> Sides:
    """From when a record was due to when its update was read, at 5,000 records a second."""
    seconds = SMALL_SECONDS if place.small else SECONDS
    sides = [
        Side("at_least_once", partial(_latency, place, AT_LEAST, seconds, WARM_UP_S)),
        exactly_once(place, seconds, WARM_UP_S),
    ]
    return Sides(sides, [(sides[1].name, sides[0].name)], int(RATE * seconds))


def exactly_once(place: Place, seconds: float, warm_up_s: float) -> Side:
    """The same for records of a transaction, which are committed every 100 ms."""
    return Side("exactly_once, 100 ms", partial(_latency, place, EXACTLY, seconds, warm_up_s))


def recovery(place: Place) -> Sides:
    """A container is killed: until an update of a record that came after that is read."""
    seconds = KILL_AFTER_S * 4
    return Sides([Side("samzapy", partial(_recovery, place, seconds))], [], int(RECOVERY_RATE * seconds))


def _latency(place: Place, commit: dict[str, str], seconds: float, warm_up_s: float) -> Figures:
    with _counting(place, commit, RATE, seconds) as (_, updates):
        return latencies(list(updates), int(RATE * seconds), warm_up_s)


def latencies(found: list[Update], records: int, warm_up_s: float) -> Figures:
    """Once the updates are found to be right."""
    _check_counts(found, records)
    begun = min(made for _, _, _, made in found) + warm_up_s
    late_ms = [(read - made) * 1000 for read, _, _, made in found if made >= begun]
    return {"p50_ms": percentile(late_ms, 50), "p99_ms": percentile(late_ms, 99)}


def _recovery(place: Place, seconds: float) -> Figures:
    found: list[Update] = []
    killed = 0.0
    with _counting(place, {}, RECOVERY_RATE, seconds) as (live, updates):
        for update in updates:
            found.append(update)
            if not killed and update[3] - found[0][3] > KILL_AFTER_S:
                os.kill((live.status() or {})["containers"][0]["pid"], signal.SIGKILL)
                killed = time.time()
    _check_counts(found, int(RECOVERY_RATE * seconds))
    return {"recovery_s": min(read for read, _, _, made in found if made > killed) - killed}


@contextlib.contextmanager
def _counting(place: Place, commit: dict[str, str], rate: int, seconds: float) -> Iterator[tuple[LiveJob, Iterator[Update]]]:
    """A job that counts while it is fed, and its updates as they are read."""
    with place.attempt() as name:
        given, output = create_topic(place.servers, f"{name}-in", PARTITIONS), place.output(name)
        job = place.job_file(
            place.runs / name, "CountTimed", [{"topic": given, "key": "bytes", "value": "json"}], params={"out": output}, commit=commit,
            outputs=[{"topic": output, "key": "bytes", "value": "json"}], stores={"sums": {"key": "bytes", "value": "integer"}},
        )  # fmt: skip
        with live_job(job) as live:
            live.running()
            with feeding(place, given, output, rate, seconds) as updates:
                yield live, updates


@contextlib.contextmanager
def feeding(place: Place, given: str, output: str, rate: int, seconds: float) -> Iterator[Iterator[Update]]:
    """Records at a rate, and the updates as they are read."""
    command = [sys.executable, "-m", "tests.bench.feed", "--kafka", place.servers, "--topic", given, "--rate", str(rate)]
    command += ["--seconds", str(seconds), "--users", str(USERS)]
    feeder = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    try:
        yield _updates(place.servers, output, int(rate * seconds))
        if feeder.wait(PATIENCE_S):
            raise RuntimeError(f"the feeder ended with {feeder.returncode}")
    finally:
        if feeder.poll() is None:
            feeder.kill()
            feeder.wait()


def _updates(servers: str, topic: str, count: int) -> Iterator[Update]:
    """As they come, up to `count` of them."""
    consumer = Consumer({
        "bootstrap.servers": servers, "group.id": "bench-look-on", "enable.auto.commit": False, "auto.offset.reset": "earliest",
        "fetch.wait.max.ms": 5, "fetch.queue.backoff.ms": 5,
    })  # fmt: skip
    try:
        consumer.assign([TopicPartition(topic, p, 0) for p in range(PARTITIONS)])
        read, deadline = 0, time.monotonic() + PATIENCE_S
        while read < count:
            if time.monotonic() > deadline:
                raise RuntimeError(f"{topic}: {read} of {count} updates after {PATIENCE_S:.0f} s")
            message = consumer.poll(0.1)
            if message is None:
                continue
            error = message.error()
            if error is None:
                value: dict[str, Any] = orjson.loads(message.value())
                read += 1
                yield time.time(), message.key(), value["c"], value["t"]
            elif not error.retriable():
                raise KafkaException(error)
    finally:
        consumer.close()


def _check_counts(found: list[Update], records: int) -> None:
    """Each record led to one update, and each key was counted 1, 2, 3 …"""
    counts: dict[bytes, int] = {}
    for _, key, count, _ in found:
        if count != counts.get(key, 0) + 1:
            raise AssertionError(f"{key!r} was counted {count} after {counts.get(key, 0)}")
        counts[key] = count
    if sum(counts.values()) != records:
        raise AssertionError(f"{records} records, {sum(counts.values())} updates")
