"""What writes to the log: in transactions, or outside of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

Delivered = Callable[[int], None]
# (topic, value, key, partition or −1, timestamp in ms or 0, headers or None)
Outgoing = tuple[str, bytes | None, bytes | None, int, int, Sequence[tuple[str, bytes | None]] | None]


class TransactionalProducer(Protocol):
    """One producer with a transactional.id. Order of calls: init, then (begin, send…, flush, commit | abort) for ever.

    Any other order raises InDoubt (a second `init`: LogError) and does nothing, so that no record sent outside a transaction is lost silently.

    Attributes:
        waited_s: how long sends have waited so far because the queue was full, in seconds.
    """

    waited_s: float

    def init(self) -> None:
        """Fence every earlier producer of this id and have its open transaction decided; both are done when this returns.

        Raises:
            ConfigurationError: commit.timeout is longer than the brokers allow. ClusterUnreachable, NotAuthorized, LogError.
        """

    def begin(self) -> None: ...

    def send(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None,
        partition: int = -1,
        timestamp_ms: int = 0,
        headers: Sequence[tuple[str, bytes | None]] | None = None,
        delivered: Delivered | None = None,
    ) -> None:
        """Queue a record; partition −1: by the key's murmur2 hash; timestamp 0: now. Waits while the queue is full.

        `delivered` is called with the record's offset, at the latest before `flush` returns. Any error poisons the transaction.
        """

    def send_all(self, records: Sequence[Outgoing]) -> None:
        """`send` for each, in order: the records of a task's hooks come in batches."""

    def flush(self) -> None:
        """Wait until the broker has everything.

        Raises:
            TransactionAborted: abort it (RecordRejected: because of a record, with its topic). Fenced. InDoubt.
        """

    def commit(self) -> bool:
        """Commit; True: clean. False: committed, but suspicious (slow, retried, reconnected): the next `begin` needs a new producer.

        Raises:
            TransactionAborted: it can be aborted, none of it becomes visible (RecordRejected: because of a record, with its topic). Fenced.
            InDoubt: it is not known whether it was committed.
        """

    def abort(self) -> bool:
        """Abort; False: the next `begin` needs a new producer (with Kafka always).

        Raises:
            Fenced. InDoubt.
        """

    def close(self) -> None:
        """Close without deciding anything; an open transaction is decided by the next init of its id, or by its timeout."""


class PlainProducer(Protocol):
    """An idempotent producer outside transactions, for the outputs of at_least_once. After `close` every call but `close` raises InDoubt.

    Attributes:
        waited_s: how long sends have waited so far because the queue was full, in seconds.
    """

    waited_s: float

    def send(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None,
        partition: int = -1,
        timestamp_ms: int = 0,
        headers: Sequence[tuple[str, bytes | None]] | None = None,
    ) -> None: ...

    def send_all(self, records: Sequence[Outgoing]) -> None:
        """`send` for each, in order."""

    def poll(self) -> None:
        """Serve delivery reports, without waiting."""

    def flush(self) -> None:
        """Wait until all is acknowledged.

        Raises:
            LogError: a record was not delivered; named. RecordRejected: because of the record itself.
        """

    def close(self) -> None: ...
