"""What a task may not do with a store, as errors. `store` names it: "store 'counts' of Partition 3"."""

from __future__ import annotations

from samzapy.api import errors
from samzapy.api.errors import RecordTooLarge, StoreClosed, TaskError, shortened
from samzapy.model.barrier import BARRIER_KEY

RECORD_OVERHEAD_BYTES = 128  # a record batch's header and a record's framing (61 + at most 31 bytes), with a margin


def closed(store: str, why: str) -> StoreClosed:
    return StoreClosed(f"{store}: {why}.", "Use a store only in its task's hooks, before they return.")


def too_large(store: str, key: object, size: int, limit: int) -> RecordTooLarge:
    """`size`: bytes of key and value; `limit`: of a record of the changelog topic."""
    return RecordTooLarge(
        f"{store}: key {shortened(key)} with its value takes {size + RECORD_OVERHEAD_BYTES} bytes as a record, its topic's limit is {limit}.",
        "Store less under one key, or raise `max.message.bytes` of the changelog topic.",
    )


def other_thread(store: str, called: str) -> TaskError:
    return TaskError(*errors.other_thread(f"{store}: {called}"))


def no_key(store: str) -> TaskError:
    return TaskError(f"{store}: None is not a key.", "Skip records without a key, or choose a key for them.")


def no_prefixes(store: str, serde: str) -> TaskError:
    return TaskError(f"{store}: keys of serde {serde} have no prefixes.", "Use `range` or `all`, or string keys.")


def reserved(store: str) -> TaskError:
    return TaskError(f"{store}: the key {BARRIER_KEY!r} is samzapy's own.", "Use another key.")
