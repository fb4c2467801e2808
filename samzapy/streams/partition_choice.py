"""Which partition of an internal topic a record goes to.

After `key_by` and `repartition` the key decides: murmur2 of its bytes, as with Kafka's producers in Java (kafka/producer.py sets it). Otherwise each
partition in turn, the number that a function gives, or all of them. Where the key does not decide, the records of one key may be in several tasks,
and no state by key can be made of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import cycle

from samzapy.streams.graph import Node, Reader, Repartition
from samzapy.streams.places import refused
from samzapy.streams.walk import roots_of

ROUND_ROBIN, DIRECT, BROADCAST = "round_robin", "direct", "broadcast"


def partition_argument(node: Repartition, called: str) -> str:
    """The partition in the call that sends a record, as source; "" where the key decides. `called`: the call of the operator's function."""
    return {ROUND_ROBIN: f", partition=in_turn{node.number}()", DIRECT: f", partition={called}", BROADCAST: ", partition=x"}.get(node.how, "")


def partition_names(writers: Mapping[str, Repartition], partitions: Mapping[str, int]) -> dict[str, Callable[[], int] | range]:
    """The names that such calls need. `writers`: what writes each internal topic; `partitions`: how many each has."""
    in_turn = {f"in_turn{node.number}": cycle(range(partitions[topic])).__next__ for topic, node in writers.items() if node.how == ROUND_ROBIN}
    each = {f"each{node.number}": range(partitions[topic]) for topic, node in writers.items() if node.how == BROADCAST}
    return {**in_turn, **each}


def refuse_scattered(node: Node, what: str, where: str) -> None:
    """Refuse state by key behind a topic in which the records of a key lie in several partitions."""
    for root in roots_of(node):
        if isinstance(root, Reader) and root.writer.how in (ROUND_ROBIN, DIRECT):
            hint = f"Put .key_by(…) before it, or let the key choose: repartition({root.name!r}) without by=…."
            raise refused(f"{what}: behind repartition({root.name!r}, by=…) the records of one key may be in several tasks", hint, where)
