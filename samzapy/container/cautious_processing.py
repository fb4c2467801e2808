"""Processing with caution, after a death without a reason: records are reported before they are processed, suspects in small pieces.

What is said reaches the coordinator before the records are processed, so that it is known there when they end this process. The hot loop
does nothing for it: a batch is cut before it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from samzapy.api.errors import TaskError
from samzapy.container.failure import PASS_BY
from samzapy.model.caution import Caution, Condemned, Piece, Suspects, piece_of
from samzapy.model.offsets import TopicPartition
from samzapy.plan.deadly_record_search import next_limit
from samzapy.plan.refused_record_search import Culprit
from samzapy.ports import Message


@dataclass(frozen=True, slots=True)
class Portion:
    """Records of a batch, from `begin` to `end`; `is_suspect`: they are to be alone in their transaction."""

    begin: int
    end: int
    is_suspect: bool


def culprits_of(caution: Caution, place: TopicPartition, begin: int) -> list[Culprit]:
    """The condemned records of a partition from `begin` on, in the form of the search for poison records."""
    return [
        Culprit(c.record, _ended(c), c.deaths)
        for c in caution.condemned
        if (c.record.topic, c.record.partition) == place and c.record.offset >= begin
    ]


def _ended(condemned: Condemned) -> TaskError:
    at = f", at {condemned.place}" if condemned.place else ""
    return TaskError(f"it ended its container's process each time, the last time: {condemned.why}{at}.", PASS_BY.format(failed="task"))


class Careful:
    """Cuts batches, and reports the records that are about to be processed.

    Args:
        tell: returns when the coordinator has heard it, or cannot be reached.
        until: of the watch, in monotonic seconds.
    """

    def __init__(self, caution: Caution, tell: Callable[[Piece | None], None], until: float) -> None:
        self._tell = tell
        self._until = until
        self._suspects: list[Suspects] = list(caution.suspects)
        self._is_watched = caution.watch_s > 0

    def is_needed(self, now: float) -> bool:
        self._is_watched = self._is_watched and now < self._until
        return self._is_watched or bool(self._suspects)

    def cut(self, batch: Sequence[Message]) -> Iterator[Portion]:
        """The batch in pieces: of suspects at most as many as may be together, of other records any number."""
        begin, size = 0, 0
        current: Suspects | None = None
        for index, message in enumerate(batch):
            among = self._among(message)
            if among is not current or (among is not None and size >= next_limit(among)):
                if index > begin:
                    yield Portion(begin, index, current is not None)
                begin, size, current = index, 0, among
            size += 1
        yield Portion(begin, len(batch), current is not None)
        self._forget_what_is_done(batch)

    def begin(self, batch: Sequence[Message], cut: Portion) -> None:
        """Report the records that are about to be processed."""
        if self._is_watched or cut.is_suspect:
            self._tell(piece_of((m.topic(), m.partition(), m.offset()) for m in batch[cut.begin : cut.end]))

    def end(self, cut: Portion) -> None:
        """Report that the piece is processed, or given up: it is not a suspect if this process ends now."""
        if self._is_watched or cut.is_suspect:
            self._tell(None)

    def _among(self, message: Message) -> Suspects | None:
        topic, partition, offset = message.topic(), message.partition(), message.offset()
        return next((s for s in self._suspects if any(span.has(topic, partition, offset) for span in s.piece.spans)), None)

    def _forget_what_is_done(self, batch: Sequence[Message]) -> None:
        at = {(m.topic(), m.partition()): m.offset() for m in batch}
        done = {
            s for one in self._suspects for s in one.piece.spans if at.get((s.topic, s.partition), -1) >= s.end
        }  # a batch that was cut to its end has been processed; an aborted one is read again, and is announced all the same
        self._suspects = [s for s in self._suspects if not done.issuperset(s.piece.spans)]
