"""Streams of which the records of one key may be in several tasks: no state by key can be made of them."""

from __future__ import annotations

from samzapy.streams.graph import Node, Reader
from samzapy.streams.places import refused
from samzapy.streams.walk import roots_of

ROUND_ROBIN, DIRECT, BROADCAST = "round_robin", "direct", "broadcast"


def refuse_scattered(node: Node, what: str, where: str) -> None:
    """Refuse state by key behind a topic in which the records of a key lie in several partitions."""
    for root in roots_of(node):
        if isinstance(root, Reader) and root.writer.how in (ROUND_ROBIN, DIRECT):
            hint = f"Put .key_by(…) before it, or let the key choose: repartition({root.name!r}) without by=…."
            raise refused(f"{what}: behind repartition({root.name!r}, by=…) the records of one key may be in several tasks", hint, where)
