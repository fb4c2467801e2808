"""ports.PlainProducer over confluent-kafka: the outputs of at_least_once."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Producer

from samzapy.api.errors import REFUSED, LogError, shortened
from samzapy.kafka.client import CLOSED, Looked, Settings, quiet, served
from samzapy.kafka.errors import delivery_error
from samzapy.kafka.making import making
from samzapy.kafka.producer import DEFAULTS, FORCED, Headers
from samzapy.kafka.sending import larger_than_queue, send_all_of
from samzapy.ports import Outgoing

PLAIN = {"linger.ms": 5}


class KafkaPlainProducer:
    """An idempotent producer outside transactions. After Kafka refused a record it goes on with the settings that `refit` gives."""

    def __init__(self, settings: Settings, client_id: str, message_timeout_ms: int, refit: Callable[[], Settings] | None = None) -> None:
        self._own = (client_id, message_timeout_ms)
        self._refit = refit
        self._looked = Looked()
        self._error: LogError | None = None
        self._timed: set[str] = set()  # topics of records since the last flush whose timestamp the task gave
        self._connect(settings)

    def _connect(self, settings: Settings) -> None:
        client_id, message_timeout_ms = self._own
        own = {
            "client.id": client_id, "message.timeout.ms": message_timeout_ms, "delivery.report.only.error": True,
            "on_delivery": self._on_delivery,
        }  # fmt: skip
        with making():
            self._producer = Producer(quiet({**DEFAULTS, **PLAIN, **settings, **FORCED, **own}))
        self._produce = self._producer.produce
        self.waited_s = 0.0

    def _on_delivery(self, error: KafkaError | None, message: Any) -> None:
        if error is not None and self._error is None:
            what = f"a record for {message.topic()}[{message.partition()}], key {shortened(message.key())}"
            self._error = delivery_error(error, what, message.topic(), self._timed)

    def send(
        self, topic: str, value: bytes | None, key: bytes | None, partition: int = -1, timestamp_ms: int = 0, headers: Headers = None
    ) -> None:
        was_empty = False
        while True:
            try:
                if timestamp_ms or headers:
                    if timestamp_ms:
                        self._timed.add(topic)
                    self._produce(topic, value, key, partition, None, None, timestamp_ms, list(headers or ()))
                else:
                    self._produce(topic, value, key, partition)
                return
            except BufferError:
                if was_empty:
                    raise larger_than_queue(topic, value, key) from None
                was_empty = not len(self._producer)
                if not was_empty:
                    began = time.monotonic()
                    self._serve(0.1)
                    self.waited_s += time.monotonic() - began
            except KafkaException as error:
                if not self._looked.again(error, self._producer, topic, partition):
                    self._error = self._error or delivery_error(error.args[0], f"a record for {topic}, key {shortened(key)}", topic)
                    return

    def send_all(self, records: Sequence[Outgoing]) -> None:
        send_all_of(self._produce, self.send, records, self._timed)
        self._serve(0)

    def poll(self) -> None:
        self._serve(0)

    def _serve(self, seconds: float) -> None:
        self._noting(self._producer.poll, seconds)

    def _noting(self, call: Callable[..., Any], *arguments: Any) -> None:
        """A call in which a fatal error may be met: what the producer still had is lost, which `flush` tells."""
        try:
            served(call, *arguments)
        except KafkaException as error:
            self._error = self._error or delivery_error(error.args[0], "the producer of outputs")

    def flush(self) -> None:
        self._noting(self._producer.flush)
        self._timed.clear()
        if self._error is not None:
            error, self._error = self._error, None
            if isinstance(error, REFUSED) and self._refit is not None:
                self._connect(self._refit())  # nothing is on its way any more
            raise error

    def close(self) -> None:
        if self._producer is not CLOSED:
            self._serve(0)
        self._produce, self._producer = CLOSED.produce, CLOSED
