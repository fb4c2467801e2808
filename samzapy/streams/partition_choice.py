"""Which partition of an internal topic a record goes to.

After `key_by` and `repartition` the key decides: murmur2 of its bytes, as with Kafka's producers in Java (kafka/producer.py sets it). Otherwise each
partition in turn, the number that a function gives, one of a few that belong to the key, or all of them. Where the key alone does not decide, the
records of one key may be in several tasks, and no state by key can be made of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from itertools import count, cycle
from typing import Any

from samzapy.model.key_partition import partition_of_key
from samzapy.streams.graph import Node, Reader, Repartition
from samzapy.streams.places import refused
from samzapy.streams.walk import roots_of

ROUND_ROBIN, DIRECT, BROADCAST, PARTIAL_KEY = "round_robin", "direct", "broadcast", "partial_key"
KEYS_KNOWN = 10_000  # whose partitions are remembered


def partition_argument(node: Repartition, called: str) -> str:
    """The partition in the call that sends a record, as source; "" where the key decides. `called`: the call of the operator's function."""
    return {ROUND_ROBIN: f", partition=in_turn{node.number}()", DIRECT: f", partition={called}", BROADCAST: ", partition=x",
            PARTIAL_KEY: f", partition=among{node.number}(k)"}.get(node.how, "")  # fmt: skip


def partition_names(
    writers: Mapping[str, Repartition], partitions: Mapping[str, int], encoder: Callable[[str], Callable[[Any], bytes]]
) -> dict[str, Callable[..., int] | range]:
    """The names that such calls need. `writers`: what writes each internal topic; `partitions`: how many each has; `encoder`: of a key's serde."""
    in_turn = {f"in_turn{node.number}": cycle(range(partitions[topic])).__next__ for topic, node in writers.items() if node.how == ROUND_ROBIN}
    each = {f"each{node.number}": range(partitions[topic]) for topic, node in writers.items() if node.how == BROADCAST}
    among = {
        f"among{node.number}": least_loaded(encoder(node.key.serde), partitions[topic], node.choices)
        for topic, node in writers.items() if node.how == PARTIAL_KEY
    }  # fmt: skip
    return {**in_turn, **each, **among}


def least_loaded(encode: Callable[[Any], bytes], partitions: int, choices: int) -> Callable[[Any], int]:
    """What chooses the partition of a key among the few that belong to it: the one to which this task has sent least."""
    sent = [0] * partitions
    of_bytes = lru_cache(KEYS_KNOWN)(lambda data: partitions_of(data, partitions, choices))

    def choose(key: Any) -> int:
        found = min(of_bytes(encode(key)), key=sent.__getitem__)
        sent[found] += 1
        return found

    return choose


def partitions_of(key: bytes, partitions: int, choices: int) -> tuple[int, ...]:
    """The partitions that belong to a key, the same in every task and run. The first is where the key alone would go."""
    found: list[int] = []
    hashed = (partition_of_key(key if n == 0 else b"%d/%b" % (n, key), partitions) for n in count())
    while len(found) < min(choices, partitions):
        at = next(hashed)
        if at not in found:
            found.append(at)
    return tuple(found)


def refuse_scattered(node: Node, what: str, where: str) -> None:
    """Refuse state by key after a topic in which the records of a key lie in several partitions."""
    for root in roots_of(node):
        if isinstance(root, Reader) and root.writer.how in (ROUND_ROBIN, DIRECT, PARTIAL_KEY):
            option = f"choices={root.writer.choices}" if root.writer.how == PARTIAL_KEY else "by=…"
            hint = f"Put .key_by(…) before it, or let the key choose: repartition({root.name!r}) without {option}."
            raise refused(f"{what}: after repartition({root.name!r}, {option}) the records of one key may be in several tasks", hint, where)
