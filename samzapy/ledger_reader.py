"""Reading the coordinator topic to its end as it is now: what it says is what holds."""

from __future__ import annotations

from samzapy.api.errors import StateRefused
from samzapy.log_reader import read_to_end
from samzapy.model.offsets import TopicPartition
from samzapy.model.ownership import LEASE_KEY, LeaseRecord, Ledger, UnreadableRecord
from samzapy.ports import Clock, Consumer


def read_ledger(consumer: Consumer, topic: str, clock: Clock) -> Ledger:
    """The coordinator topic, folded up to the read_committed end that is fetched when this is called.

    Raises:
        StateRefused: a record that cannot be read. ClusterUnreachable: no progress for 30 s. TopicMissing.
    """
    ledger = Ledger()
    for batch in read_to_end(consumer, TopicPartition(topic, 0), clock):
        for message in batch:
            key = message.key()
            if key is None:
                continue
            try:
                ledger.apply(key, message.value())
            except UnreadableRecord as error:
                raise StateRefused(
                    f"{topic} at {message.offset()}: {error}.",
                    "Use the samzapy version that wrote it, or run `samzapy reset` to start over.",
                ) from None
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
    try:
        ledger.apply(LEASE_KEY, newest)
    except UnreadableRecord as error:
        raise StateRefused(
            f"{topic} at {at}: {error}.",
            "Use the samzapy version that wrote it; if no run is alive, delete that topic and run `samzapy reset`.",
        ) from None
    return ledger.lease
