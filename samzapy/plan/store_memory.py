"""How much of a container's memory its stores get, for read caches and for changes that RocksDB does not have yet."""

from __future__ import annotations

SHARE = 0.25  # of containers.memory, for all stores together; as much again goes to RocksDB's block cache and write buffers


def of_all_stores(container_bytes: int) -> int:
    """Bytes that the stores of a container have together; `container_bytes`: `containers.memory`."""
    return int(container_bytes * SHARE)


def of_each_store(all_bytes: int, stores: int) -> int:
    """Bytes that each of so many stores gets."""
    return all_bytes // max(1, stores)
