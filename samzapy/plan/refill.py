"""Stores that begin empty although their inputs were read before: which records a task reads again, for those stores alone.

A store with a changelog begins empty where the checkpoint does not name it: it is new or has another name, was dropped, or had no changelog
before. If an input that fills it was read already, going on at the input's next offset would leave the store without those records for
good. So that input is read again from where a first start would begin, up to its next offset. All that its records do has been committed
once; only their puts into those stores are kept. How far that has come is in the checkpoint (`InputMark.refill`), so a crash repeats nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from samzapy.model.checkpoint import InputMark


def refill_at_start(
    before: InputMark | None, topic_id: str, begin: int, next_offset: int, empty: Collection[str], stores: Collection[str]
) -> dict[str, int]:
    """What the next checkpoint says of an input partition, by store: from which offset on its records are missing there.

    Args:
        before: what the newest checkpoint says of the partition; None: nothing, it is read for the first time.
        topic_id: Kafka's id of the topic now.
        begin: where a first start would begin to read.
        next_offset: where the task goes on with all that the records do.
        empty: the stores that it fills and that begin empty now.
        stores: all stores that have a changelog.
    """
    if before is None:
        return {}
    going_on = before.refill if before.topic_id == topic_id else {}
    found = {store: max(at, begin) for store, at in going_on.items() if store in stores}
    found |= dict.fromkeys(empty, begin)
    return {store: at for store, at in sorted(found.items()) if at < next_offset}


def refill_at_commit(refill: Mapping[str, int], here: int, next_offset: int) -> dict[str, int]:
    """The same at a commit: the partition was read to `here`."""
    return {store: max(at, here) for store, at in refill.items() if max(at, here) < next_offset}
