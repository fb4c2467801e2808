"""What all clients share: settings, the library's log, and calls that are tried again over what passes."""

from __future__ import annotations

import contextlib
import logging
import re
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer

from samzapy.api.errors import InDoubt, LogError
from samzapy.kafka.errors import PASSING, log_error

T = TypeVar("T")
Settings = Mapping[str, Any]

REQUEST_TIMEOUT_S = 10.0
RETRY_S = 0.1

# librdkafka's own lines (a refused connection, a disconnect) are repeated for ever while a broker is away; the errors that matter are raised
LIBRARY_LOG = logging.getLogger("samzapy.kafka.librdkafka")
LIBRARY_LOG.setLevel(logging.CRITICAL)
RAISED_TOO = re.compile(r"(FATAL|TXNERR) \[")  # a client's fatal error: every later call raises it (tests/contract/test_fatal_errors.py)


class _Coded(logging.Filter):
    """What librdkafka itself says in our log carries a code, as each of our own errors does. What the next call raises is not said twice: who is
    fenced in order, by a takeover, has one line about it."""

    def filter(self, record: logging.LogRecord) -> bool:
        if RAISED_TOO.match(record.getMessage()) and not LIBRARY_LOG.isEnabledFor(logging.DEBUG):
            return False
        record.msg = f"{LogError.code}: {record.msg}"
        return True


LIBRARY_LOG.addFilter(_Coded())

def quiet(settings: Settings, **more: Any) -> dict[str, Any]:
    """Settings with the library's chatter kept off stderr."""
    return {**settings, **more, "logger": LIBRARY_LOG}


class Looked:
    """Partitions that a producer's client did not know, because it knew the topic before it grew: each is looked for once."""

    def __init__(self) -> None:
        self._for: set[tuple[str, int]] = set()

    def again(self, error: KafkaException, client: Producer, topic: str, partition: int) -> bool:
        """Whether the record is to be sent once more."""
        if error.args[0].code() != KafkaError._UNKNOWN_PARTITION or (topic, partition) in self._for:
            return False
        self._for.add((topic, partition))
        with contextlib.suppress(KafkaException):
            client.list_topics(topic, timeout=REQUEST_TIMEOUT_S)
        return True


def asked(doing: str, call: Callable[[], T]) -> T:
    """A call whose KafkaException becomes an error of ours; tried again over what passes."""
    deadline = time.monotonic() + REQUEST_TIMEOUT_S
    while True:
        try:
            return call()
        except KafkaException as error:
            if error.args[0].code() not in PASSING or time.monotonic() >= deadline:
                raise log_error(error.args[0], doing) from None
        time.sleep(RETRY_S)


def served(call: Callable[..., Any], *arguments: Any) -> Any:
    """A call that serves the client's events, among which there may be a fatal error: whatever shape that has, it is a KafkaException here.

    Measured (tests/contract/test_fatal_errors.py): where callbacks run in the same call, a fatal error comes as SystemError in half of the
    cases, and was seen as a bare KafkaError, which is no exception and passes every `except` that names a class.
    """
    try:
        return call(*arguments)
    except KafkaException:
        raise
    except SystemError as error:
        raise KafkaException(KafkaError(KafkaError._FATAL, f"the client failed: {error.__cause__ or error}", True)) from error
    except:
        found = sys.exc_info()[1]
        if isinstance(found, KafkaError):
            raise KafkaException(found) from None
        raise


class _Closed:
    """What a producer has in its client's place when it is closed."""

    def __getattr__(self, name: str) -> Any:
        raise InDoubt("the producer is closed.", "Make a new one.")

    def produce(self, *arguments: Any, **more: Any) -> None:
        raise InDoubt("the producer is closed.", "Make a new one.")


CLOSED: Any = _Closed()


def check_properties(group: str, properties: Mapping[str, Any]) -> str | None:
    """What librdkafka says against these properties, or None. No connection is opened: the client has no servers.

    `group`: `kafka`, `kafka.producer` or `kafka.consumer`.
    """
    settings = {k: v for k, v in properties.items() if k != "bootstrap.servers"}
    try:
        if group == "kafka.consumer":
            Consumer(quiet({**settings, "group.id": "check"})).close()
        else:
            Producer(quiet({**settings, "enable.idempotence": True}))  # as every producer of ours is: `retries: 0` would contradict it
    except KafkaException as error:
        return str(error.args[0].str())
    except (TypeError, ValueError) as error:
        return str(error)
    return None
