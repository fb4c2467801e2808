"""What Kafka's errors mean to us: which of them is fenced, in doubt, aborted, a refused record, a missing permission, or a broker that is not there."""

from __future__ import annotations

import re
import time
from collections.abc import Collection

from confluent_kafka import KafkaError

from samzapy.api.errors import (
    REFUSED,
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
    shortened,
)
from samzapy.kafka.open_files import used_up
from samzapy.plan.transaction_timeout import too_long
from samzapy.ports import START_ITS_BROKER

# a leader that was just elected and does not know the end yet, or one whose disk failed and that is about to be replaced
NEW_LEADER = frozenset(
    {KafkaError.OFFSET_NOT_AVAILABLE, KafkaError.FENCED_LEADER_EPOCH, KafkaError.UNKNOWN_LEADER_EPOCH, KafkaError.KAFKA_STORAGE_ERROR}
)
UNREACHABLE = NEW_LEADER | frozenset(
    {
        KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN, KafkaError._TIMED_OUT, KafkaError._TIMED_OUT_QUEUE, KafkaError._RESOLVE,
        KafkaError.REQUEST_TIMED_OUT, KafkaError.NETWORK_EXCEPTION, KafkaError.COORDINATOR_NOT_AVAILABLE, KafkaError.NOT_COORDINATOR,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS, KafkaError.LEADER_NOT_AVAILABLE, KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError._WAIT_COORD, KafkaError.BROKER_NOT_AVAILABLE, KafkaError._DESTROY_BROKER,
    }
)  # fmt: skip
# a partition that is just made, or moves; a broker's address that changed while it was asked
PASSING = NEW_LEADER | frozenset({KafkaError.LEADER_NOT_AVAILABLE, KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError._DESTROY_BROKER})
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
BROKERS_RUN = "Check that the brokers run."
REJECTED_REMEDY = "Check the topic's settings (max.message.bytes, message.timestamp.*, cleanup.policy) and the record."


def log_error(error: KafkaError, doing: str) -> LogError:
    """The error of ours for one of Kafka's, outside transactions."""
    text = f"{doing}: {error.str()} ({error.name()})."
    code = error.code()
    if code in FORBIDDEN:
        return NotAuthorized(text, ALLOW)
    if code == KafkaError.LEADER_NOT_AVAILABLE:
        return NoLeader(text, START_ITS_BROKER)
    if code in MISSING:
        return TopicMissing(text, "`samzapy topics JOB.yaml` shows which of the job's topics are missing, and whether a run makes them.")
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


def record_error(error: KafkaError, topic: str, partition: int, key: bytes | None, timed: Collection[str], timeout_s: float) -> LogError:
    """The error of ours for a record of a transaction that was not taken, or not delivered. `timed`: as in `rejection`."""
    if error.code() == KafkaError._MSG_TIMED_OUT:
        return ClusterUnreachable(f"{topic}[{partition}]: its broker did not accept a record within {timeout_s:.0f} s.", BROKERS_RUN)
    return transaction_error(error, f"a record for {topic}, key {shortened(key)}", topic, timed)


def flush_too_late(doing: str, timeout_s: float, login: LogError | None) -> InDoubt:
    """A flush took longer than a transaction may. `login`: the refusal of this client's, if it was refused."""
    if login is not None:
        return InDoubt(login.message, login.remedy)
    return InDoubt(_not_accepted(doing, timeout_s), "")


def end_error(error: KafkaError, doing: str, timed: Collection[str], timeout_s: float, is_known: bool) -> LogError:
    """The error of ours for a commit or abort that failed. `is_known`: something else made the transaction fail before. If not, and the client lacks
    records, they waited in vain for their brokers: no record is at fault, and none is to be looked for. Measured: tests/recovery/test_a_broker_is_down.py."""
    if error.code() == KafkaError._INCONSISTENT and not is_known:
        return ClusterUnreachable(_not_accepted(doing, timeout_s), BROKERS_RUN)
    return transaction_error(error, doing, timed=timed)


def _not_accepted(doing: str, timeout_s: float) -> str:
    return f"{doing}: the brokers did not accept all records within {timeout_s:.0f} s."


def undelivered(error: LogError, rejected: LogError | None, forbidden: str) -> LogError:
    """What ends a transaction, of which a record was not delivered. An end that nobody asked for yet cannot be in doubt: the transaction is aborted.

    Args:
        error: of that record, as `transaction_error` has it.
        rejected: what the library's log says of a record that was refused; `forbidden`: of a missing permission. Of later records it says less.
    """
    if isinstance(error, (Fenced, NotAuthorized, ClusterUnreachable, *REFUSED)):
        return error
    if rejected is not None:
        return rejected
    if forbidden:  # no record is at fault
        return NotAuthorized(forbidden, ALLOW)
    return TransactionAborted(error.message, error.remedy)


def topic_in(text: str) -> str:
    """The topic that the library names where it says why a transaction failed; "" if it names none. Every refused record of the contract tests
    is named so (test_that_a_record_itself_was_refused_is_told_whatever_is_done_next)."""
    found = PRODUCE_TOPIC.search(text)
    return found[1] if found is not None else ""


def init_error(error: KafkaError, doing: str, timeout_ms: int) -> SamzapyError:
    """The error of ours for one met while a transactional producer is made, or between two tries of a call: the container starts over where
    only this producer is of no use any more. What would refuse every other producer too is fatal to the client as well, and told first. What could be
    tried again was, for as long as was to be waited.

    `timeout_ms`: the producer's transaction timeout.
    """
    code, text = error.code(), f"{doing}: {error.str()} ({error.name()})."
    if error.retriable() or code == KafkaError._TIMED_OUT:
        return ClusterUnreachable(f"{doing}: {error.str()}.", used_up() or BROKERS_RUN)
    if code == KafkaError.INVALID_TRANSACTION_TIMEOUT:
        return too_long(timeout_ms)
    if code in TOO_OLD:
        return LogError(text, OLD_BROKERS)
    if code in FORBIDDEN:
        return NotAuthorized(text, ALLOW)
    if code in FENCED or error.fatal():
        return Fenced(text, "")
    return log_error(error, doing)
