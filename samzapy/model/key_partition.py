"""Which partition a key belongs to: by murmur2, as Kafka's default partitioner in Java does it, so the same one as with every other client.

Of an ordinary record the client itself computes it, as CLIENTS_PARTITIONER tells it to.
"""

from __future__ import annotations

CLIENTS_PARTITIONER = "murmur2_random"  # librdkafka's word for it; a record without a key goes anywhere
MASK = 0xFFFFFFFF
M = 0x5BD1E995
SEED = 0x9747B28C


def murmur2(data: bytes) -> int:
    """The hash with its sign bit cleared.

    Source: the algorithm of Austin Appleby's MurmurHash2 (32 bit), with the seed that Apache Kafka's clients use.
    """
    length = len(data)
    h = (SEED ^ length) & MASK
    whole = length & ~3
    for i in range(0, whole, 4):
        k = int.from_bytes(data[i : i + 4], "little") * M & MASK
        k = (k ^ k >> 24) * M & MASK
        h = (h * M & MASK) ^ k
    tail = data[whole:]
    if tail:
        h = (h ^ int.from_bytes(tail, "little")) * M & MASK
    h = (h ^ h >> 13) * M & MASK
    return (h ^ h >> 15) & 0x7FFFFFFF


def partition_of_key(key: bytes, partitions: int) -> int:
    """The partition, from 0, of a key in a topic of so many."""
    return murmur2(key) % partitions
