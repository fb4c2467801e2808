"""The task of the recovery tests: what it commits is a hash chain over its input, so any record lost, doubled or moved shows in all after it.

Copied as it is into a job's folder (`tests.recovery.job`), because containers import the task from there; so it needs nothing but samzapy
and the standard library. The chain's head and the running number are read from the store for every record and never kept in `self`: a state
that was restored wrong, or not rolled back, changes the very next output. Two stores, because a commit must keep them together.
"""

from __future__ import annotations

import hashlib
from typing import Any

from samzapy import OutgoingMessageEnvelope, StreamTask, SystemStream

CHAIN, COUNTS = "chain", "counts"
GENESIS = "0" * 64


def link(head: str, offset: int, key: bytes | None, value: bytes | None) -> str:
    """The head after a record: each part with its length, so that no two different records read alike; None is not empty."""
    digest = hashlib.sha256(bytes.fromhex(head) + offset.to_bytes(8, "big"))
    for part in (key, value):
        digest.update(b"-" if part is None else b"+" + len(part).to_bytes(4, "big") + part)
    return digest.hexdigest()


def count_key(key: bytes | None) -> bytes:
    """Under which a record's key is counted: no key and an empty key are counted too, and apart."""
    return b"none" if key is None else b"key/" + key


class ChainTask(StreamTask):
    """One output record per input record, to the partition of the same number: {number, offset, head, count}, under the input's key."""

    def init(self, context: Any) -> None:
        self.out = SystemStream("kafka", context.params["out"])
        self.chain = context.get_store(CHAIN)
        self.counts = context.get_store(COUNTS)

    def process(self, envelope: Any, collector: Any, coordinator: Any) -> None:
        place = str(envelope.partition)
        before = self.chain.get(place) or {"number": 0, "head": GENESIS}
        after = {"number": before["number"] + 1, "head": link(before["head"], envelope.offset, envelope.key, envelope.message)}
        counted = count_key(envelope.key)
        count = (self.counts.get(counted) or 0) + 1
        self.chain.put(place, after)
        self.counts.put(counted, count)
        message = {**after, "offset": envelope.offset, "count": count}
        collector.send(OutgoingMessageEnvelope(self.out, message, envelope.key, partition=envelope.partition))
