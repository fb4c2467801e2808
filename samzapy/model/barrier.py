"""The barrier record: the reserved key under which an owner marks, in a log that it is about to read, where its reading ends.

A reader that has come to the offset at which the broker took its barrier (it reads that record, or one after it) has read all that was
committed before. The key is one per partition, so that compaction leaves at most the newest barrier. Who wrote it is decided by job, task, store and
epoch; the nonce only tells people which barriers were written in one transaction, and is compared with nothing. Every reader skips barriers, so they
also add partitions to a transaction (container/early_partitions.py); these have no nonce.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

from samzapy.model.bounded_json import read_object, to_bytes

BARRIER_KEY = b"\x00samzapy/barrier"  # 16 bytes; user keys equal to it are refused at put, get and delete
assert len(BARRIER_KEY) == 16
MAX_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Barrier:
    """Who is about to read: job, id, task, store ("" in a checkpoint partition), epoch, incarnation, and the nonce of its transaction."""

    job: str
    id: str
    task: str
    store: str
    epoch: int
    incarnation: str
    nonce: str

    def to_bytes(self) -> bytes:
        return to_bytes({"v": 1, **asdict(self)})


def barrier_from_bytes(data: bytes | None) -> Barrier:
    """The barrier that `data` holds.

    Raises:
        ValueError: not a barrier of a known version.
    """
    try:
        raw = read_object(data, MAX_BYTES)
    except ValueError as error:
        raise ValueError(f"a barrier that cannot be read: {error}") from None
    if raw.get("v") != 1:
        raise ValueError("a barrier of an unknown version")
    strings = {k: raw.get(k) for k in ("job", "id", "task", "store", "incarnation", "nonce")}
    epoch = raw.get("epoch")
    if type(epoch) is not int or not all(isinstance(v, str) for v in strings.values()):
        raise ValueError("a barrier with fields of wrong types")
    return Barrier(epoch=epoch, **{k: str(v) for k, v in strings.items()})
