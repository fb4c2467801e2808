"""Which record ends containers: what follows from a death of which nobody could say the reason.

The first such death makes the next container say what it is about to process; the second gives suspects: the records that it was at. They
are processed in transactions of one 32nd, and so on, until a record is alone. A death costs a lease and a start, a transaction some
milliseconds, hence the 32nd: 500 suspects need two more deaths until the record is alone.

A record is condemned by two deaths at which it was alone and which the process brought about itself: it crashed or exited, or it fell silent and
a stack shows the line of a hook. SIGKILL, a lost executor or missing heartbeats without a stack are no proof: the kernel's OOM killer, an operator and a cluster
end processes so, and whoever does that every few seconds hits a slow record each time. Such deaths narrow the search, but condemn nothing. A record
that was alone at too many of them ends the job, which names it: people decide.

A death that brings the search nearer to a record does not count against `containers.max_restarts`: each makes a set of suspects smaller, or is
one of the first two of a record alone, or one of two proofs. Others count. So does a death at a record that is condemned already: giving it up must have
ended the container, and after two of these the job ends, since nothing else can be done with the record.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from samzapy.model.caution import Caution, Condemned, Piece, Suspects
from samzapy.model.process_end import Kind, ProcessEnd

SHRINK_BY = 32
DEATHS_ALONE = 2
DEATHS_GIVEN_UP = 2
MAX_SUSPECTS = 16
MAX_CONDEMNED = 1000
CRASHES = frozenset({"SIGSEGV", "SIGBUS", "SIGFPE", "SIGILL", "SIGABRT", "SIGSYS", "SIGTRAP", "SIGALRM"})


class Proof(Enum):
    """What a death says about the record that was alone under way."""

    OWN_DOING = "the process ended by itself"
    IF_PLACED = "it did, if a stack of it shows the line of a hook"
    NONE = "somebody else may have ended it"


@dataclass(frozen=True, slots=True)
class Found:
    """What is known after a death.

    Attributes:
        is_nearer: the death made the suspects fewer, or is one of those that condemn.
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


def proof_of(end: ProcessEnd) -> Proof:
    """What this end of a process proves. One that had said why it ends itself, and was ended by a signal then, proves nothing."""
    if end.is_watchdogs:
        return Proof.NONE
    if end.kind is Kind.EXITED or (end.kind is Kind.KILLED and end.signal in CRASHES and not end.said):
        return Proof.OWN_DOING
    return Proof.IF_PLACED if end.kind in (Kind.SILENT, Kind.KILLED_OR_CRASHED) else Proof.NONE


def after_death(known: Caution, at: Piece | None, end: ProcessEnd, container: int, watch_s: float) -> Found:
    """What follows from the end of a container that could not say why.

    Args:
        at: the records that it had said it would process, and had not said that it had.
        end: how it ended.
        watch_s: how long the next ones are to be watched, in seconds.
    """
    known, proof = replace(known, watch_s=watch_s), proof_of(end)
    if at is None:
        return Found(known)
    again = next((c for c in known.condemned if c.record == at.alone), None)
    if again is not None:
        if proof is not Proof.OWN_DOING:
            return Found(known, at=at)
        again = replace(again, deaths=again.deaths + 1, why=str(end), container=container, place="")
        return Found(replace(known, condemned=tuple(again if c.record == at.alone else c for c in known.condemned)), False, again, at)
    before = next((s for s in known.suspects if s.piece.covers(at)), None)
    others = tuple(replace(s, waits_for=-1) if s.waits_for == container else s for s in known.suspects if s is not before)
    now = _suspects(at, before, proof, container)
    is_nearer = not known.suspects if before is None else _is_nearer(now, before)
    if at.alone is not None and now.proofs >= DEATHS_ALONE:
        condemned = Condemned(at.alone, now.proofs, str(end), container)
        return Found(_condemn(replace(known, suspects=others), condemned), True, condemned, at)
    return Found(replace(known, suspects=(*others, now)[-MAX_SUSPECTS:]), is_nearer, None, at)


def _suspects(at: Piece, before: Suspects | None, proof: Proof, container: int) -> Suspects:
    if at.alone is None:
        return Suspects(at)
    alone, proofs = (before.alone, before.proofs) if before is not None and before.piece.alone is not None else (0, 0)
    return Suspects(at, alone + 1, proofs + (proof is Proof.OWN_DOING), container if proof is Proof.IF_PLACED else -1)


def _is_nearer(now: Suspects, before: Suspects) -> bool:
    return now.piece.count < before.piece.count or now.proofs > before.proofs or before.alone < now.alone <= DEATHS_ALONE


def _condemn(known: Caution, condemned: Condemned) -> Caution:
    return replace(known, condemned=(*known.condemned, condemned)[-MAX_CONDEMNED:])


def hopeless(known: Caution) -> Condemned | None:
    """A record that ends its container although it is not processed any more, but given up."""
    return next((c for c in known.condemned if c.deaths >= DEATHS_ALONE + DEATHS_GIVEN_UP), None)


def unproved(known: Caution, at: Piece | None) -> Suspects | None:
    """The record that was alone at this death and at the one before, if these do not prove that it was the reason."""
    return next((s for s in known.suspects if at is not None and s.piece == at and s.alone >= DEATHS_ALONE), None)


def with_place(known: Caution, container: int, place: str, why: str = "") -> Caution:
    """A container has found where its predecessor's code was when it ended, for the reason `why`: if only that was missing, the death is a proof."""
    proved = [replace(s, proofs=s.proofs + 1, waits_for=-1) if s.waits_for == container else s for s in known.suspects]
    known = replace(
        known,
        suspects=tuple(s for s in proved if s.proofs < DEATHS_ALONE),
        condemned=tuple(replace(c, place=place) if c.container == container and not c.place else c for c in known.condemned),
    )
    for s in proved:
        if s.proofs >= DEATHS_ALONE and s.piece.alone is not None:
            known = _condemn(known, Condemned(s.piece.alone, s.proofs, why, container, place))
    return known
