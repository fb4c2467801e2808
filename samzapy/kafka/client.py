"""What all clients share: settings, and what Kafka's errors mean to us."""

from __future__ import annotations

import contextlib
import logging
import re
import sys
import time
from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer

from samzapy.api.errors import (
    ClusterUnreachable,
    Fenced,
    InDoubt,
    LogError,
    NoLeader,
    NotAuthorized,
    RecordRejected,
    SamzapyError,
    TimestampRefused,
    TopicMissing,
    TransactionAborted,
)
from samzapy.kafka.open_files import used_up
from samzapy.plan.transactions import too_long
from samzapy.ports import START_ITS_BROKER

T = TypeVar("T")
Settings = Mapping[str, Any]

REQUEST_TIMEOUT_S = 10.0
RETRY_S = 0.1
LOG = logging.getLogger("samzapy.kafka")

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

UNREACHABLE = frozenset(
    {
        KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN, KafkaError._TIMED_OUT, KafkaError._TIMED_OUT_QUEUE, KafkaError._RESOLVE,
        KafkaError.REQUEST_TIMED_OUT, KafkaError.NETWORK_EXCEPTION, KafkaError.COORDINATOR_NOT_AVAILABLE, KafkaError.NOT_COORDINATOR,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS, KafkaError.LEADER_NOT_AVAILABLE, KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError._WAIT_COORD, KafkaError.BROKER_NOT_AVAILABLE, KafkaError._DESTROY_BROKER,
    }
)  # fmt: skip
# a partition that is just made, or moves; a broker's address that changed while it was asked
PASSING = frozenset({KafkaError.LEADER_NOT_AVAILABLE, KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError._DESTROY_BROKER})
MISSING = frozenset({KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION})
FORBIDDEN = frozenset(
    {
        KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.GROUP_AUTHORIZATION_FAILED, KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, KafkaError.SASL_AUTHENTICATION_FAILED, KafkaError._AUTHENTICATION,
    }
)  # fmt: skip
FENCED = frozenset(
    {KafkaError._FENCED, KafkaError.INVALID_PRODUCER_EPOCH, KafkaError.INVALID_PRODUCER_ID_MAPPING, KafkaError.PRODUCER_FENCED}
)
TOO_OLD = frozenset({KafkaError._UNSUPPORTED_FEATURE, KafkaError.UNSUPPORTED_VERSION})
OLD_BROKERS = "The brokers are too old, or `api.version.request` or `broker.version.fallback` in `kafka:` say so: update them, or remove these keys."
# what a broker says against a record itself; the same record would be refused again
REJECTED = frozenset(
    {
        KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.RECORD_LIST_TOO_LARGE, KafkaError.INVALID_MSG_SIZE, KafkaError.INVALID_RECORD,
        KafkaError.INVALID_TIMESTAMP, KafkaError.POLICY_VIOLATION, KafkaError.UNSUPPORTED_FOR_MESSAGE_FORMAT,
    }
)  # fmt: skip
PRODUCE_TOPIC = re.compile(r"\bProduceRequest for (\S+) \[\d+\] ")
ALLOW = "`samzapy validate JOB.yaml --connect` names the missing permissions; `samzapy topics JOB.yaml --acls` lists all that the job needs."
FORBIDDEN_NAMES = frozenset(KafkaError(code).name() for code in FORBIDDEN)
REJECTED_NAMES = frozenset(KafkaError(code).name() for code in REJECTED)
OF_TIME = KafkaError(KafkaError.INVALID_TIMESTAMP).name()
REJECTED_REMEDY = "Check the topic's settings (max.message.bytes, message.timestamp.*, cleanup.policy) and the record."


def quiet(settings: Settings, **more: Any) -> dict[str, Any]:
    """Settings with the library's chatter kept off stderr."""
    return {**settings, **more, "logger": LIBRARY_LOG}


def log_error(error: KafkaError, doing: str) -> LogError:
    """The error of ours for one of Kafka's, outside transactions."""
    text = f"{doing}: {error.str()} ({error.name()})."
    code = error.code()
    if code in FORBIDDEN:
        return NotAuthorized(text, ALLOW)
    if code == KafkaError.LEADER_NOT_AVAILABLE:
        return NoLeader(text, START_ITS_BROKER)
    if code in MISSING:
        return TopicMissing(text, "Create the topic.")
    if code in UNREACHABLE:
        return ClusterUnreachable(text, used_up() or "Check `kafka.bootstrap.servers` and that the brokers run.")
    return LogError(text, "See the brokers' logs.")


def delivery_error(error: KafkaError, doing: str, topic: str = "", timed: Collection[str] = ()) -> LogError:
    """The error of ours for a record for `topic` that was not delivered, outside transactions. `timed`: as in `rejection`."""
    if error.code() in REJECTED:
        return rejection(f"{doing}: {error.str()} ({error.name()}).", error.name(), topic, timed)
    return log_error(error, doing)


def rejection(text: str, name: str, topic: str, timed: Collection[str]) -> TransactionAborted:
    """The error of ours for a refused record of `topic`. `name`: Kafka's, of the refusal. `timed`: topics of records whose timestamp the task gave;
    the others have theirs from this host's clock, which none of the records is to blame for."""
    if name != OF_TIME:
        return RecordRejected(text, REJECTED_REMEDY, topic)
    if topic in timed or (timed and not topic):
        return RecordRejected(
            text, "Check the timestamp that the task gives it, the topic's message.timestamp.* settings, and the clocks of this host and the brokers.", topic
        )
    now = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime())
    return TimestampRefused(
        text,
        f"No record is at fault: this host's clock gave the time, and is probably wrong; it says {now} UTC. "
        "Compare it with the brokers' clocks (`date -u`); if both are right, check the topic's message.timestamp.* settings.",
    )


def transaction_error(error: KafkaError, doing: str, topic: str = "", timed: Collection[str] = ()) -> LogError:
    """The error of ours for one that a transactional call raised. What is not known to be harmless is in doubt. `topic`: a record's. `timed`: as in
    `rejection`."""
    text = f"{doing}: {error.str()} ({error.name()})."
    if error.code() in FENCED:
        return Fenced(text, "")
    if error.code() in FORBIDDEN:
        return NotAuthorized(text, ALLOW)
    if error.code() in REJECTED:  # of the client's own, before anything was sent, or of the broker's, after which it wants an abort
        return rejection(text, error.name(), topic or topic_in(error.str()), timed)
    if error.txn_requires_abort():
        return TransactionAborted(text, "")
    if error.fatal():
        return Fenced(text, "")
    return InDoubt(text, "")


def topic_in(text: str) -> str:
    """The topic that the library names where it says why a transaction failed; "" if it names none. Every refused record of the contract tests
    is named so (test_that_a_record_itself_was_refused_is_told_whatever_is_done_next)."""
    found = PRODUCE_TOPIC.search(text)
    return found[1] if found is not None else ""


def init_error(error: KafkaError, doing: str, timeout_ms: int) -> SamzapyError:
    """The error of ours for one met while a transactional producer is made, or between two tries of a call: the container starts over where
    only this producer is of no use any more. What would refuse every other producer too is fatal to the client as well, and told first.

    `timeout_ms`: the producer's transaction timeout.
    """
    code, text = error.code(), f"{doing}: {error.str()} ({error.name()})."
    if code == KafkaError.INVALID_TRANSACTION_TIMEOUT:
        return too_long(timeout_ms)
    if code in TOO_OLD:
        return LogError(text, OLD_BROKERS)
    if code in FORBIDDEN:
        return NotAuthorized(text, ALLOW)
    if code in FENCED or error.fatal():
        return Fenced(text, "")
    return log_error(error, doing)


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
