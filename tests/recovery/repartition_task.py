"""The task of the second job of a chaos run: it gives each record of its input another key, so each output partition is fed by many tasks.

Copied as it is into a job's folder, like `chain_task`: so it needs nothing but samzapy and the standard library. Per group (the new key) the
store holds the head of a hash chain over the records that this task gave to the group, so a record lost, doubled or moved shows in all after it.
"""

from __future__ import annotations

import hashlib
import zlib
from typing import Any

from samzapy import OutgoingMessageEnvelope, StreamTask, SystemStream

GROUPS = "groups"
GENESIS = "0" * 64


def group_key(value: bytes | None, groups: int) -> bytes:
    """The new key of a record: of its value alone, so it has nothing to do with the old one."""
    return b"group-%d" % (zlib.crc32(value or b"") % groups)


def grouped(head: str, source: int, offset: int, value: bytes | None) -> str:
    """The head of a group's chain after a record."""
    digest = hashlib.sha256(bytes.fromhex(head) + source.to_bytes(4, "big") + offset.to_bytes(8, "big"))
    digest.update(b"-" if value is None else b"+" + value)
    return digest.hexdigest()


class RepartitionTask(StreamTask):
    """One output record per input record, under its group's key: {from, offset, number, head}, `number` counting this task's of the group."""

    def init(self, context: Any) -> None:
        self.out = SystemStream("kafka", context.params["out"])
        self.count = int(context.params["groups"])
        self.groups = context.get_store(GROUPS)

    def process(self, envelope: Any, collector: Any, coordinator: Any) -> None:
        key = group_key(envelope.message, self.count)
        before = self.groups.get(key) or {"number": 0, "head": GENESIS}
        head = grouped(before["head"], envelope.partition, envelope.offset, envelope.message)
        after = {"number": before["number"] + 1, "head": head}
        self.groups.put(key, after)
        collector.send(OutgoingMessageEnvelope(self.out, {**after, "from": envelope.partition, "offset": envelope.offset}, key))
