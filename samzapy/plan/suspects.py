"""Which record ends containers: what follows from a death of which nobody could say the reason.

The first such death makes the next container say what it is about to process; the second gives suspects: the records that it was at. They
are processed in transactions of one 32nd, and so on, until a record is alone. One that ended its container twice, being alone, is
condemned. A death costs a lease and a start, a transaction some milliseconds, hence the 32nd: 500 suspects need two more deaths until the
record is alone.

A death that brings the search nearer to a record does not count against `containers.max_restarts`: each makes a set of suspects smaller, or is
one of two. Others count. So does a death at a record that is condemned already: giving it up must have ended the container, and after two of
these the job ends, since nothing else can be done with the record.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from samzapy.model.caution import Caution, Condemned, Piece, Suspects

SHRINK_BY = 32
DEATHS_ALONE = 2
DEATHS_GIVEN_UP = 2
MAX_SUSPECTS = 16
MAX_CONDEMNED = 1000


@dataclass(frozen=True, slots=True)
class Found:
    """What is known after a death.

    Attributes:
        is_nearer: the death made the suspects fewer.
        condemned: the record that was found by it, now or before.
        at: what the container was processing; None: not known.
    """

    caution: Caution
    is_nearer: bool = False
    condemned: Condemned | None = None
    at: Piece | None = None


def next_limit(suspects: Suspects) -> int:
    """How many of them are processed at a time."""
    return max(1, suspects.piece.count // SHRINK_BY)


def after_death(known: Caution, at: Piece | None, why: str, container: int, watch_s: float) -> Found:
    """What follows from the end of a container that could not say why.

    Args:
        at: the records that it had said it would process, and had not said that it had.
        why: how it ended.
        watch_s: how long the next ones are to be watched, in seconds.
    """
    known = replace(known, watch_s=watch_s)
    if at is None:
        return Found(known)
    again = next((c for c in known.condemned if c.record == at.alone), None)
    if again is not None:
        again = replace(again, deaths=again.deaths + 1, why=why, container=container, place="")
        return Found(replace(known, condemned=tuple(again if c.record == at.alone else c for c in known.condemned)), False, again, at)
    before = next((s for s in known.suspects if s.piece.covers(at)), None)
    others = tuple(s for s in known.suspects if s is not before)
    alone = 0 if at.alone is None else 1 if before is None or before.piece.alone is None else before.alone + 1
    if at.alone is not None and alone >= DEATHS_ALONE:
        condemned = Condemned(at.alone, alone, why, container)
        both = (*known.condemned, condemned)[-MAX_CONDEMNED:]
        return Found(replace(known, suspects=others, condemned=both), True, condemned, at)
    is_nearer = not known.suspects if before is None else at.count < before.piece.count or alone > before.alone
    return Found(replace(known, suspects=(*others, Suspects(at, alone))[-MAX_SUSPECTS:]), is_nearer, None, at)


def hopeless(known: Caution) -> Condemned | None:
    """A record that ends its container although it is not processed any more, but given up."""
    return next((c for c in known.condemned if c.deaths >= DEATHS_ALONE + DEATHS_GIVEN_UP), None)


def with_place(known: Caution, container: int, place: str) -> Caution:
    """A container has found where its predecessor's code was when it ended."""
    return replace(
        known,
        condemned=tuple(replace(c, place=place) if c.container == container and not c.place else c for c in known.condemned),
    )
