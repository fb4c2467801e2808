"""Puts example records into a Kafka topic: `python -m jobs.feed sentences --count 1000`. Makes the topic if it is not there.

What it takes: `sentences`, `wikipedia-feed`, `users`, `page-views` (generated; the topic has the same name), or `lines`: those of standard
input into `--topic`, `key<TAB>value` or only a value. Without a key, records go round the partitions.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Callable, Iterable, Iterator

from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from jobs import page_views, wikipedia_feed, word_count

Records = Iterable[tuple[bytes | None, bytes | None]]
USERS = 200
TIMEOUT_S = 15.0
BY_KEY = -1  # as the client calls it: the key decides
QUIET = logging.getLogger("jobs.feed.client")  # what goes wrong is told once, as an error
QUIET.addHandler(logging.NullHandler())
QUIET.propagate = False


def generated(what: str, count: int, seed: int) -> Records:
    """The records of one of the example topics."""
    of: dict[str, Callable[[], Records]] = {
        "sentences": lambda: word_count.records(count, seed),
        "wikipedia-feed": lambda: wikipedia_feed.records(count=count, seed=seed),
        "users": lambda: page_views.users(USERS, seed),
        "page-views": lambda: page_views.page_views(count, USERS, seed),
    }
    return of[what]()


def records_of_lines(lines: Iterable[str]) -> Iterator[tuple[bytes | None, bytes]]:
    """`key<TAB>value` or only a value, a record a line."""
    for line in lines:
        key, tab, value = line.rstrip("\r\n").partition("\t")
        yield (key.encode(), value.encode()) if tab else (None, key.encode())


def create_topic(servers: str, topic: str, partitions: int) -> int:
    """Makes the topic where there is none; returns how many partitions it has.

    Raises:
        KafkaException: no broker answered, or it refused.
    """
    admin = AdminClient({"bootstrap.servers": servers}, logger=QUIET)
    there = admin.list_topics(timeout=TIMEOUT_S).topics
    if topic in there:
        return len(there[topic].partitions)
    try:
        admin.create_topics([NewTopic(topic, partitions)])[topic].result(TIMEOUT_S)
    except KafkaException as error:
        if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
            raise
    return partitions


def send(servers: str, topic: str, partitions: int, records: Records) -> int:
    """Sends all of them and waits until the brokers have them; returns how many.

    Raises:
        KafkaException: one was not taken.
    """
    failed: list[KafkaError] = []

    def delivered(error: KafkaError | None, _: object) -> None:
        if error is not None:
            failed.append(error)

    settings = {"bootstrap.servers": servers, "partitioner": "murmur2_random", "enable.idempotence": True, "linger.ms": 20}
    producer = Producer(settings, logger=QUIET)
    number = 0
    for number, (key, value) in enumerate(records, 1):
        partition = number % partitions if key is None else BY_KEY
        while True:
            try:
                producer.produce(topic, value, key, partition, on_delivery=delivered)
                break
            except BufferError:
                producer.poll(0.1)
        if number % 1000 == 0:
            producer.poll(0)
    producer.flush()
    if failed:
        raise KafkaException(failed[0])
    return number


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m jobs.feed", description="Puts example records into a Kafka topic.")
    parser.add_argument("what", choices=["sentences", "wikipedia-feed", "users", "page-views", "lines"])
    parser.add_argument("--kafka", default=os.environ.get("KAFKA_BOOTSTRAP", "localhost:9092"), metavar="HOST:PORT")
    parser.add_argument("--topic", help="another topic than that of the same name; needed for lines")
    parser.add_argument("--count", type=int, default=1000, help="how many records")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--partitions", type=int, default=4, help="of a topic that is made")
    args = parser.parse_args()
    if args.what == "lines" and not args.topic:
        parser.error("lines need a --topic")
    topic = args.topic or args.what
    try:
        partitions = create_topic(args.kafka, topic, args.partitions)
        records = records_of_lines(sys.stdin) if args.what == "lines" else generated(args.what, args.count, args.seed)
        number = send(args.kafka, topic, partitions, records)
    except KafkaException as error:
        print(f"error: {args.kafka}: {error.args[0].str()}", file=sys.stderr)
        return 4
    print(f"{number} records in {topic}, {partitions} partitions", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
