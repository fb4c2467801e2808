"""Records at a fixed rate, each with the time at which it was made: `python -m tests.bench.feed --kafka HOST:PORT --topic T …`.

A process of its own, so that it does not wait for whoever reads. A record is due at its own time; one that is sent late still bears the
time at which it was due, so what delays the feeder counts as latency and hides none.
"""

from __future__ import annotations

import argparse
import random
import threading
import time

from confluent_kafka import Producer

TICK_S = 0.002


def feed(servers: str, topic: str, rate: int, seconds: float, users: int) -> int:
    """Returns how many records were sent, once all are acknowledged."""
    failures: list[object] = []
    producer = Producer({
        "bootstrap.servers": servers, "partitioner": "murmur2_random", "linger.ms": 1, "enable.idempotence": True,
        "delivery.report.only.error": True, "on_delivery": lambda error, _: failures.append(error) if error is not None else None,
    })  # fmt: skip
    draw, pause, total, sent = random.Random(7), threading.Event(), int(rate * seconds), 0
    started, clock = time.time(), time.monotonic()
    while sent < total:
        due = min(total, int((time.monotonic() - clock) * rate))
        while sent < due:
            producer.produce(topic, b'{"t":%.6f}' % (started + sent / rate), b"u%d" % draw.randrange(users))
            sent += 1
        producer.poll(0)
        pause.wait(TICK_S)
    if producer.flush(60) or failures:
        raise SystemExit(f"{topic}: not all of {total} records were acknowledged ({failures[:1]})")
    return sent


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Records at a fixed rate.")
    parser.add_argument("--kafka", required=True)
    parser.add_argument("--topic", required=True)
    parser.add_argument("--rate", type=int, default=5000)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--users", type=int, default=50_000)
    given = parser.parse_args()
    print(feed(given.kafka, given.topic, given.rate, given.seconds, given.users))
