"""What a restarted container is told about records that may have ended the process before it.

A record can end a process so that nobody is left to say which one it was: it crashes native code, or holds the interpreter's lock beyond the
lease. So a container that is started after such a death says, before it processes records, which ones (a `Piece`); if it dies, they are
suspects, and the next container processes them in smaller pieces.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from samzapy.model.bounded_json import NOT_UNDERSTOOD
from samzapy.model.dead_letter import Origin
from samzapy.model.offsets import last_offset_before, next_offset

MAX_SPANS = 10_000


@dataclass(frozen=True, slots=True)
class Span:
    """Records of one partition, with offsets in [begin, end)."""

    topic: str
    partition: int
    begin: int
    end: int

    def __str__(self) -> str:
        last = last_offset_before(self.end)
        return f"{self.topic}[{self.partition}]@{self.begin}" + (f"..{last}" if last > self.begin else "")

    def has(self, topic: str, partition: int, offset: int) -> bool:
        return self.begin <= offset < self.end and self.partition == partition and self.topic == topic


@dataclass(frozen=True, slots=True)
class Piece:
    """The records that are processed between two reports to the coordinator. Prints as `in[0]@10..509`."""

    spans: tuple[Span, ...]
    count: int

    def __str__(self) -> str:
        shown = ", ".join(str(s) for s in self.spans[:5])
        return shown if len(self.spans) <= 5 else f"{shown} and {len(self.spans) - 5} more"

    @property
    def alone(self) -> Origin | None:
        """The record, if there is only one."""
        return Origin(self.spans[0].topic, self.spans[0].partition, self.spans[0].begin) if self.count == 1 else None

    def covers(self, other: Piece) -> bool:
        """Whether all of the other's records are in this piece."""
        return all(any(s.has(o.topic, o.partition, o.begin) and o.end <= s.end for s in self.spans) for o in other.spans)

    def to_json(self) -> dict[str, object]:
        return {"spans": [[s.topic, s.partition, s.begin, s.end] for s in self.spans], "count": self.count}


def piece_of(records: Iterable[tuple[str, int, int]]) -> Piece:
    """The piece of these records, each as (topic, partition, offset)."""
    found: dict[tuple[str, int], tuple[int, int]] = {}
    count = 0
    for topic, partition, offset in records:
        begin, end = found.get((topic, partition), (offset, offset))
        found[topic, partition] = (min(begin, offset), max(end, next_offset(offset)))
        count += 1
    return Piece(tuple(Span(*place, *bounds) for place, bounds in found.items()), count)


def piece_from_json(raw: object) -> Piece | None:
    """As `to_json` wrote it; None if there is none, or it is not valid."""
    try:
        spans = tuple(Span(str(t), int(p), int(b), int(e)) for t, p, b, e in raw["spans"])  # type: ignore[index]
        count = int(raw["count"])  # type: ignore[index]
    except NOT_UNDERSTOOD:
        return None
    return Piece(spans, count) if 0 < len(spans) <= MAX_SPANS and count > 0 else None


@dataclass(frozen=True, slots=True)
class Suspects:
    """One of these records may have ended a container.

    Attributes:
        alone: how many processes ended while it was the only one under way.
        proofs: how many of these ended by their own doing, not by what somebody else may have done to them.
        waits_for: the container whose last death is a proof if the next one finds where its code was; -1: none.
    """

    piece: Piece
    alone: int = 0
    proofs: int = 0
    waits_for: int = -1


@dataclass(frozen=True, slots=True)
class Condemned:
    """A record that ended its container this many times while it alone was processed: it is not processed again, `on_error` applies to it.

    Attributes:
        why: how the container ended the last time.
        container: its number.
        place: where in the code it was; "" while that is not known.
    """

    record: Origin
    deaths: int
    why: str
    container: int
    place: str = ""


@dataclass(frozen=True, slots=True)
class Caution:
    """The records that a container processes with caution.

    Attributes:
        watch_s: for so many seconds after its start it says what it is about to process; 0: it need not.
        deaths: how often the container ended without a reason lately: within the time that `watch_s` says.
        suspects: to be processed in smaller pieces.
        condemned: not to be processed.
        why: how it ended the last time, if it said so itself.
    """

    watch_s: float = 0.0
    suspects: tuple[Suspects, ...] = ()
    condemned: tuple[Condemned, ...] = ()
    deaths: int = 0
    why: str = ""

    def to_json(self) -> dict[str, object]:
        return {
            "watch_s": self.watch_s,
            "deaths": self.deaths,
            "why": self.why,
            "suspects": [{**s.piece.to_json(), "alone": s.alone, "proofs": s.proofs, "waits_for": s.waits_for} for s in self.suspects],
            "condemned": [[*c.record, c.deaths, c.why, c.container, c.place] for c in self.condemned],
        }


def caution_from_json(raw: Mapping[str, Any] | None) -> Caution:
    """As `to_json` wrote it."""
    if not raw:
        return Caution()
    suspects = [
        (piece_from_json(s), int(s.get("alone", 0)), int(s.get("proofs", 0)), int(s.get("waits_for", -1))) for s in raw.get("suspects", ())
    ]
    condemned = [
        Condemned(Origin(str(t), int(p), int(o)), int(deaths), str(why), int(container), str(place))
        for t, p, o, deaths, why, container, place in raw.get("condemned", ())
    ]
    known = tuple(Suspects(piece, *counts) for piece, *counts in suspects if piece is not None)
    return Caution(float(raw.get("watch_s", 0.0)), known, tuple(condemned), int(raw.get("deaths", 0)), str(raw.get("why", "")))
