"""What a harness shows of topics: records that tell how they differ from what a test expected, and dead letters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from samzapy.api.errors import SamzapyError
from samzapy.model.dead_letter import DeadLetter
from samzapy.testing.harness_job import HarnessJob
from samzapy.wiring.serdes import KEY, VALUE

MAX_LINES = 20


class Records(list[tuple[Any, Any]]):
    """A list with the (key, value) of each record of a topic, in order. If `assert` on it fails under pytest, the message says record by record what differs."""

    def __init__(self, topic: str) -> None:
        super().__init__()
        self.topic = topic

    def difference(self, expected: Sequence[Any]) -> list[str]:
        """What differs from the expected records, as lines of text: at most 20 differences."""
        missing, extra = _without(expected, self), _without(self, expected)
        if not missing and not extra:
            at = next(n for n, (mine, other) in enumerate(zip(self, expected, strict=True)) if mine != other)
            lines = [f"the same records in another order, from record {at} on: {self[at]!r} where {expected[at]!r} was expected"]
        else:
            lines = [f"missing  {record!r}" for record in missing] + [f"extra    {record!r}" for record in extra]
        shown = lines[:MAX_LINES] + ([f"… and {len(lines) - MAX_LINES} more"] if len(lines) > MAX_LINES else [])
        return [f"{self.topic}: {len(self)} records, {len(expected)} expected", *shown]


def _without(these: Sequence[Any], others: Sequence[Any]) -> list[Any]:
    """Those of the first that are not among the second, as often as they are missing there."""
    left = Counter(map(repr, others))
    found = []
    for record in these:
        left[repr(record)] -= 1
        if left[repr(record)] < 0:
            found.append(record)
    return found


@dataclass(frozen=True)
class SeenDeadLetter:
    """A dead letter.

    Attributes:
        topic, partition, offset: where it is in the input.
        key, value: decoded by the input's serdes; as bytes if that is not possible.
        error: the error of the task or of the serde, as text.
        attempts: how often the record was processed.
        task: the task's name, "Partition 3".
    """

    topic: str
    partition: int
    offset: int
    key: Any
    value: Any
    error: str
    attempts: int
    task: str


def seen_letter(letter: DeadLetter, job: HarnessJob) -> SeenDeadLetter:
    """A dead letter as a test sees it."""
    spec = next((i for i in job.settings.inputs if i.topic == letter.origin.topic), None)
    key, value = letter.key, letter.value
    if spec is not None:
        key, value = (
            _decoded(key, job.serdes.of(spec.key, spec.topic, KEY).decode),
            _decoded(value, job.serdes.of(spec.value, spec.topic, VALUE).decode),
        )
    origin = letter.origin
    return SeenDeadLetter(origin.topic, origin.partition, origin.offset, key, value, letter.error, letter.attempts, letter.task)


def _decoded(data: bytes | None, decode: Callable[[bytes], Any]) -> Any:
    try:
        return None if data is None else decode(data)
    except SamzapyError:
        return data
