"""That a task waits for a transaction which somebody left open, and what is said of it. The container compares the end up to the oldest open
transaction with the task's position (container/inputs.py) and with the barrier of a restore (container/restore_end.py)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from samzapy.model.offsets import TopicPartition


@dataclass(frozen=True, slots=True)
class OpenTransaction:
    """Why a task waits: an open transaction hides the records after it.

    Attributes:
        offset: where it is open.
        is_jobs_own: in a topic between two stages of a program, into which the job alone writes.
        barrier: of a restore, that comes after it; None: the task runs.
    """

    partition: TopicPartition
    offset: int
    is_jobs_own: bool = False
    barrier: int | None = None

    def __str__(self) -> str:
        then = "; the task waits for the records after it" if self.barrier is None else f", and this start has to read to offset {self.barrier}"
        if self.is_jobs_own:
            whose = "It is of a container of this job that has ended or has not committed yet, or of another application that writes to this topic"
            return f"{self.partition}: a transaction is open at offset {self.offset}{then}. {whose}"
        return f"{self.partition}: another application's transaction is open at offset {self.offset}{then}"


def reason_json(reason: str | OpenTransaction) -> dict[str, Any]:
    """Why a task waits, for its report; with the partition to look at for whose a transaction is that the job knows nothing of."""
    if isinstance(reason, str) or reason.is_jobs_own:
        return {"reason": str(reason)}
    return {"reason": str(reason), "strangers": [reason.partition.topic, reason.partition.partition]}
