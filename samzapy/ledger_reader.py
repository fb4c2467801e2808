"""Reading the coordinator topic to its end as it is now: what it says is what holds."""

from __future__ import annotations

from samzapy.api.errors import StateRefused
from samzapy.log_reader import read_to_end
from samzapy.model.offsets import TopicPartition
from samzapy.model.ownership import LEASE_KEY, LeaseRecord, Ledger, UnreadableRecord
from samzapy.ports import Clock, Consumer


def read_ledger(consumer: Consumer, topic: str, clock: Clock) -> Ledger:
    """The coordinator topic, folded up to the read_committed end that is fetched when this is called.

    Of each key the newest record counts: what it replaced may be anything.

    Raises:
        StateRefused: the newest record of a key cannot be read. ClusterUnreachable: no progress for 30 s. TopicMissing.
    """
    newest: dict[bytes, tuple[int, bytes | None]] = {}
    for batch in read_to_end(consumer, TopicPartition(topic, 0), clock):
        for message in batch:
            key = message.key()
            if key is not None:
                newest[key] = message.offset(), message.value()
    ledger = Ledger()
    for key, (offset, value) in newest.items():
        _apply(ledger, topic, key, offset, value)
    return ledger


def read_lease(consumer: Consumer, topic: str, clock: Clock) -> LeaseRecord | None:
    """The newest lease alone. What else the topic holds may be unreadable: `samzapy reset`, the way out of that, asks only who is alive.

    Raises:
        StateRefused: the lease cannot be read. ClusterUnreachable, TopicMissing: as `read_ledger`.
    """
    ledger, newest, at = Ledger(), None, 0
    for batch in read_to_end(consumer, TopicPartition(topic, 0), clock):
        for message in batch:
            if message.key() == LEASE_KEY:
                newest, at = message.value(), message.offset()
    _apply(ledger, topic, LEASE_KEY, at, newest)
    return ledger.lease


def _apply(ledger: Ledger, topic: str, key: bytes, offset: int, value: bytes | None) -> None:
    try:
        ledger.apply(key, value)
    except UnreadableRecord as error:
        raise StateRefused(
            f"{topic} at {offset}: {error}; another samzapy version or another application wrote it.",
            "Use the version that wrote it; or stop every run of the job and delete that topic alone with `samzapy reset JOB.yaml --coordinator --execute`: "
            "state, checkpoints and inputs are kept; only repeat a `checkpoint set` that no start has carried out yet.",
        ) from None
