"""Tailing what a job says of itself in Kafka, while it runs: its checkpoint and coordinator topics, read_committed, from their start.

In a thread and from before the topics exist, so compaction hides nothing; what `finish` returns is complete up to the end at that time. A
broker that is away is waited for; any other error ends the tail and is raised to whoever asks for the events.
"""

from __future__ import annotations

import threading
import time

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message, TopicPartition

from samzapy.model.names import Job
from tests.beside import Beside
from tests.broker import read_all
from tests.recovery.audit import Committed, Event, Leased, Seen, event_of

PASSING = {
    KafkaError._ALL_BROKERS_DOWN,
    KafkaError._RESOLVE,
    KafkaError._TIMED_OUT,
    KafkaError._TRANSPORT,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.UNKNOWN_TOPIC_OR_PART,
}


class Observer(Beside):
    """Tails a job's checkpoint and coordinator topics in a thread, from before they exist until `finish`."""

    def __init__(self, servers: str, job: Job) -> None:
        super().__init__("observer")
        self._servers = servers
        self._topics = (job.coordinator_topic, job.checkpoint_topic)
        self._lock = threading.Lock()
        self._events: dict[tuple[str, int, int], Event | None] = {}
        self._failure: Exception | None = None
        self._url: str | None = None
        self._newest: dict[str, Committed] = {}

    def events(self) -> list[Event]:
        """What was seen so far.

        Raises:
            what ended the tail, if something did.
        """
        with self._lock:
            if self._failure is not None:
                raise self._failure
            return [e for e in self._events.values() if e is not None]

    def newest(self) -> dict[str, Committed]:
        """Each task's newest checkpoint.

        Raises:
            what ended the tail, if something did.
        """
        with self._lock:
            if self._failure is not None:
                raise self._failure
            return dict(self._newest)

    def url(self) -> str | None:
        """Where the newest lease says that the coordinator is."""
        return self._url

    def finish(self) -> list[Event]:
        """Read what is left, up to the end as it is now, and stop. For a job that has stopped."""
        self._end()
        for topic in self._topics:
            for r in read_all(self._servers, topic):
                self._take(topic, r.key, r.value, r.partition, r.offset, r.timestamp)
        return self.events()

    def _run(self) -> None:
        consumer = Consumer(
            {
                "bootstrap.servers": self._servers,
                "log_level": 0,
                "group.id": "samzapy-tests-observe",
                "enable.auto.commit": False,
                "enable.auto.offset.store": False,
                "isolation.level": "read_committed",
                "auto.offset.reset": "earliest",
                "fetch.wait.max.ms": 20,
            }
        )
        try:
            missing = set(self._topics)
            while not self._stopping.is_set():
                if missing:
                    missing -= self._assign(consumer, missing)
                for message in consumer.consume(500, 0.05):
                    self._look_at(message)
        except Exception as failure:
            with self._lock:
                self._failure = failure  # whoever asks for the events gets it
        finally:
            consumer.close()

    @staticmethod
    def _assign(consumer: Consumer, topics: set[str]) -> set[str]:
        """Begin with those that exist by now. All topics are listed: asking for one by name might create it."""
        there = consumer.list_topics(timeout=10).topics
        found = {t for t in topics if t in there and there[t].partitions}
        for topic in found:
            consumer.incremental_assign([TopicPartition(topic, p, OFFSET_BEGINNING) for p in there[topic].partitions])
        return found

    def _look_at(self, message: Message) -> None:
        error = message.error()
        if error is None:
            at = message.partition() or 0, message.offset() or 0
            self._take(str(message.topic()), message.key(), message.value(), *at, message.timestamp()[1])
        elif error.code() not in PASSING:
            raise KafkaException(error)

    def _take(self, topic: str, key: bytes | None, value: bytes | None, partition: int, offset: int, made_ms: int) -> None:
        place = (topic, partition, offset)
        if place not in self._events:
            event = event_of(key, value, Seen(partition, offset, made_ms, time.time_ns() // 1_000_000))
            with self._lock:
                self._events[place] = event
                if isinstance(event, Committed):
                    self._newest[event.checkpoint.task] = event
            if isinstance(event, Leased):
                self._url = event.lease.url or None
