"""Whether a local store is kept or rebuilt, and from where its changelog is read: T3 of PROTOCOL (container/generations.py carries it out).

A local store is a cache of the changelog, so throwing it away is safe while that is complete; keeping one that is not what it seems never is. Each
generation that was found is held against the rules of `RULES`, in order; the first that fails is why it is not kept. Of those that pass,
the one with the highest position wins. A rule that needs time gets the time as an argument. Where neither would be right, start_refusals.py
has the words.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from samzapy.model.checkpoint import Checkpoint, StoreMark
from samzapy.model.stamp import StoreIdentity, StoreStamp
from samzapy.plan.start_refusals import Refuse, lost_end, replaced, traced
from samzapy.ports import Claim


@dataclass(frozen=True, slots=True)
class ChangelogFacts:
    """The changelog partition as it is now. `barrier` is the offset of this start's own barrier record."""

    topic: str
    partition: int
    topic_id: str
    start: int
    barrier: int
    delete_retention_ms: int


@dataclass(frozen=True, slots=True)
class Keep:
    """Keep this generation; read the changelog from its position on."""

    generation: str
    position: int
    reason: str
    warning: str = ""


@dataclass(frozen=True, slots=True)
class Rebuild:
    """Make a new generation; read the changelog from its start."""

    position: int
    reason: str


Decision = Keep | Rebuild | Refuse


@dataclass(frozen=True, slots=True)
class _Case:
    stamp: StoreStamp
    identity: StoreIdentity
    checkpoint: Checkpoint
    mark: StoreMark | None
    log: ChangelogFacts
    now_ms: int
    has_deletions_after: bool


def _missed_nothing(case: _Case) -> bool:
    return case.mark is not None and case.stamp.position >= case.mark.position


def _missed_no_deletion(case: _Case) -> bool:
    return (_missed_nothing(case) and not case.has_deletions_after) or _recent(case)


def _recent(case: _Case) -> bool:
    return 0 <= case.now_ms - case.stamp.as_of_ms < case.log.delete_retention_ms // 2


def _belongs(case: _Case) -> bool:
    return case.stamp.identity == case.identity


# (what must hold, what is said when it does not)
RULES: tuple[tuple[Callable[[_Case], bool], str], ...] = (
    (_belongs, "it belongs to another job, task or store, has other serdes, or its `ttl` was switched on or off"),
    (lambda c: c.stamp.topic_id == c.log.topic_id, "its changelog topic was replaced"),
    (lambda c: _missed_nothing(c) or c.stamp.position >= c.log.start, "the changelog no longer has the records that it would read next"),
    (lambda c: c.stamp.position <= c.log.barrier, "it is ahead of the changelog"),
    (lambda c: c.stamp.sequence <= c.checkpoint.sequence, "it is ahead of the checkpoint"),
    (_missed_no_deletion, "it is too old: tombstones that it has not read may have been removed from the changelog"),
)


def decide(
    claims: Sequence[Claim],
    identity: StoreIdentity,
    checkpoint: Checkpoint | None,
    log: ChangelogFacts,
    now_ms: int,
    is_ordered: bool = False,
    has_deletions_after: bool = False,
) -> Decision:
    """What to do about one store of one task, given its generations on this host.

    Args:
        is_ordered: a `checkpoint set` that this start carries out says of every input where to go on, also without a checkpoint.
        has_deletions_after: it wrote deletions after what the checkpoint names.
    """
    mark = checkpoint.stores.get(identity.store) if checkpoint else None
    if checkpoint is None and not is_ordered:
        refusal = traced(claims, identity, log.partition, f"{log.topic}[{log.partition}]", log.topic_id, log.start)
        if refusal is not None:
            return refusal
    if checkpoint is None or mark is None:
        return Rebuild(log.start, "first start" if checkpoint is None else "the checkpoint does not know this store yet")
    refused = lost(log, mark)
    if refused is not None:
        return refused
    good, reasons = _sift(claims, lambda stamp: _Case(stamp, identity, checkpoint, mark, log, now_ms, has_deletions_after))
    if good:
        best = max(good, key=lambda claim: claim.stamp.position if claim.stamp else -1)
        assert best.stamp is not None
        complete = best.stamp.position >= mark.position
        if log.start > mark.changelog_start and not complete:
            return _truncated(log, mark)
        warning = (
            f"{log.topic}[{log.partition}] was truncated at its start; the local store is complete and is kept"
            if log.start > mark.changelog_start
            else ""
        )
        return Keep(
            best.generation,
            max(best.stamp.position, log.start),
            "has all that the checkpoint names" if complete else "recent enough to catch up",
            warning,
        )
    if log.start > mark.changelog_start:
        return _truncated(log, mark)
    return Rebuild(log.start, "; ".join(reasons) if reasons else "no local store on this host")


def _sift(claims: Sequence[Claim], case_of: Callable[[StoreStamp], _Case]) -> tuple[list[Claim], list[str]]:
    good: list[Claim] = []
    reasons: list[str] = []
    for claim in claims:
        reason = _why_not(claim, case_of)
        if reason:
            reasons.append(f"local store {claim.generation} not kept: {reason}")
        else:
            good.append(claim)
    return good, reasons


def _why_not(claim: Claim, case_of: Callable[[StoreStamp], _Case]) -> str:
    if claim.locked:
        return "another process has it open"
    if claim.problem:
        return claim.problem
    if claim.stamp is None:
        return "nothing was ever committed to it"
    case = case_of(claim.stamp)
    return next((text for holds, text in RULES if not holds(case)), "")


def deletions_stay_s(stamp: StoreStamp | None, mark: StoreMark | None, log: ChangelogFacts, now_ms: int, has_deletions_after: bool) -> float:
    """For how many seconds from now on a restore reads every deletion: compaction may remove them `delete.retention.ms` after the key's older records,
    which the store may have. Infinite: nothing is left to be read.

    Args:
        stamp: of the local store that is kept; None: all is read.
    """
    if stamp is not None and mark is not None and stamp.position >= mark.position and not has_deletions_after:
        return math.inf
    return (log.delete_retention_ms - (0 if stamp is None else now_ms - stamp.as_of_ms)) / 1000


def not_whole(log: ChangelogFacts, mark: StoreMark) -> Refuse | None:
    """Why the state that the checkpoint names cannot be told from the changelog alone; None: it can. Compaction does not move the start."""
    return lost(log, mark) or (_truncated(log, mark) if log.start > mark.changelog_start else None)


def lost(log: ChangelogFacts, mark: StoreMark) -> Refuse | None:
    """What no local store makes up for: the checkpoint names another topic, or an end that the changelog does not reach."""
    other = replaced(log.topic, log.partition, log.topic_id, mark)
    if other is None and mark.position > log.barrier:
        return lost_end(f"{log.topic}[{log.partition}]", log.barrier, mark)
    return other


def _truncated(log: ChangelogFacts, mark: StoreMark) -> Refuse:
    return Refuse(
        f"changelog {log.topic}[{log.partition}] starts at {log.start}, the checkpoint says {mark.changelog_start}: "
        "it was truncated, and a full restore would silently miss keys.",
        "Bring back a host with the local store, or run `samzapy reset JOB.yaml` to begin with empty state.",
    )
