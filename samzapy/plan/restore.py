"""Which local store to keep, and what to read of the changelog: the decision of T3 (container/generations.py carries it out).

A local store is a cache of the changelog, so throwing it away is always safe; keeping one that is not what it seems never is. Each
generation that was found is held against the rules of `RULES`, in order; the first that fails is why it is not kept. Of those that pass,
the one with the highest position wins. A rule that needs time gets the time as an argument.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from samzapy.model.checkpoint import Checkpoint, StoreMark
from samzapy.model.ownership import Startpoint
from samzapy.model.stamp import StoreIdentity, StoreStamp
from samzapy.ports import Claim

MAX_KEY = 60  # bytes of a key that are told


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


@dataclass(frozen=True, slots=True)
class Refuse:
    """Neither would be right: stop, and say what to do."""

    reason: str
    remedy: str


Decision = Keep | Rebuild | Refuse


@dataclass(frozen=True, slots=True)
class _Case:
    stamp: StoreStamp
    identity: StoreIdentity
    checkpoint: Checkpoint
    mark: StoreMark | None
    log: ChangelogFacts
    now_ms: int


def _missed_nothing(case: _Case) -> bool:
    return case.mark is not None and case.stamp.position >= case.mark.position


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
    (lambda c: _missed_nothing(c) or _recent(c), "it is too old: tombstones that it has not read may have been removed from the changelog"),
)


def decide(
    claims: Sequence[Claim],
    identity: StoreIdentity,
    checkpoint: Checkpoint | None,
    log: ChangelogFacts,
    now_ms: int,
    is_ordered: bool = False,
) -> Decision:
    """What to do about one store of one task, given its generations on this host.

    Args:
        is_ordered: a `checkpoint set` that this start carries out says of every input where to go on, also without a checkpoint.
    """
    mark = checkpoint.stores.get(identity.store) if checkpoint else None
    if checkpoint is None and not is_ordered:
        traces = _traces(claims, identity, log)
        if traces:
            return no_first_start(f"{identity.job}-{identity.id}", f"there is no checkpoint, but {traces}", ())
    if checkpoint is None or mark is None:
        return Rebuild(log.start, "first start" if checkpoint is None else "the checkpoint does not know this store yet")
    lost = _lost(log, mark)
    if lost is not None:
        return lost
    good, reasons = _sift(claims, identity, checkpoint, mark, log, now_ms)
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


def _traces(claims: Sequence[Claim], identity: StoreIdentity, log: ChangelogFacts) -> str:
    """What shows of a store without a checkpoint that its task has committed before; "" if nothing does.

    A first start that did not get to its first checkpoint leaves records, but the log start at 0, and a local store of sequence 0.
    """
    if log.start > 0:
        return f"changelog {log.topic}[{log.partition}] starts at offset {log.start}: records before it were deleted"
    mine = (c for c in claims if c.stamp is not None and (c.stamp.identity, c.stamp.topic_id) == (identity, log.topic_id))
    committed = next((c for c in mine if c.stamp is not None and c.stamp.sequence > 0), None)
    return f"local store {committed.generation} holds committed state of this task" if committed is not None else ""


def no_first_start(group: str, why: str, lost: Sequence[str]) -> Refuse:
    """A task without a checkpoint that has committed before.

    Args:
        group: the job's consumer group.
        lost: its changelog partitions from which records were deleted.
    """
    too = f" Records of {', '.join(lost)} were deleted too, and state with them." if lost else ""
    return Refuse(
        f"{why}: its checkpoints were deleted (by retention, or by a command), and reading the inputs from their start would process old "
        f"records again, and count twice.{too}",
        "Set where every input continues: `samzapy checkpoint set JOB.yaml --to-latest --keep-state` (or `--to-datetime`, `--to-offset`). Kafka's "
        f"own tools show the offsets that were committed last, of consumer group {group}; --keep-state keeps what the changelogs still hold. Or run "
        "`samzapy reset JOB.yaml` to delete the state and start over.",
    )


def emptied(group: str, checkpoints: str, start: int, order: Startpoint | None, lost: Sequence[str]) -> Refuse | None:
    """Why a task without a checkpoint is not at its first start; None: it may be. Nothing of samzapy moves a log start, nor does compaction.

    Args:
        group: the job's consumer group.
        checkpoints: its checkpoint partition, and `start` the log start of that.
        order: the `checkpoint set` of all its inputs that this start would carry out. If records were deleted after it was ordered, one of them may have
            been the checkpoint that carried it out.
        lost: its changelog partitions from which records were deleted.
    """
    known = order.checkpoints_from if order is not None else 0
    if start <= known:
        return None
    return no_first_start(group, f"{checkpoints} holds no checkpoint and starts at offset {start}", lost)


def _sift(
    claims: Sequence[Claim], identity: StoreIdentity, checkpoint: Checkpoint, mark: StoreMark, log: ChangelogFacts, now_ms: int
) -> tuple[list[Claim], list[str]]:
    good: list[Claim] = []
    reasons: list[str] = []
    for claim in claims:
        reason = _why_not(claim, identity, checkpoint, mark, log, now_ms)
        if reason:
            reasons.append(f"local store {claim.generation} not kept: {reason}")
        else:
            good.append(claim)
    return good, reasons


def _why_not(claim: Claim, identity: StoreIdentity, checkpoint: Checkpoint, mark: StoreMark, log: ChangelogFacts, now_ms: int) -> str:
    if claim.locked:
        return "another process has it open"
    if claim.problem:
        return claim.problem
    if claim.stamp is None:
        return "nothing was ever committed to it"
    case = _Case(claim.stamp, identity, checkpoint, mark, log, now_ms)
    return next((text for holds, text in RULES if not holds(case)), "")


def not_whole(log: ChangelogFacts, mark: StoreMark) -> Refuse | None:
    """Why the state that the checkpoint names cannot be told from the changelog alone; None: it can. Compaction does not move the start."""
    return _lost(log, mark) or (_truncated(log, mark) if log.start > mark.changelog_start else None)


def _lost(log: ChangelogFacts, mark: StoreMark) -> Refuse | None:
    """What no local store makes up for: the checkpoint names another topic, or an end that the changelog does not reach."""
    other = replaced(log.topic, log.partition, log.topic_id, mark)
    if other is None and mark.position > log.barrier:
        return lost_end(f"{log.topic}[{log.partition}]", log.barrier, mark)
    return other


def replaced(topic: str, partition: int, topic_id: str, mark: StoreMark) -> Refuse | None:
    """The topic of that name ("": there is none) is not the one that the checkpoint names."""
    if mark.topic_id == topic_id:
        return None
    if mark.topic != topic:
        return Refuse(
            f"changelog {topic}[{partition}] is not the changelog in the checkpoint, which is {mark.topic}.",
            "Change the store's `changelog` back, or run `samzapy reset JOB.yaml` to start over.",
        )
    what = "was deleted and created again after the checkpoint: its content is not this job's state"
    return Refuse(
        f"changelog {topic}[{partition}] {what if topic_id else 'was deleted since the checkpoint, and with it committed state'}.",
        "Run `samzapy reset JOB.yaml` to start over, or bring the old topic back.",
    )


def unnamed(task: str, changelog: str, offset: int, checkpoints: str, position: int, key: bytes | None = None) -> Refuse:
    """A change and the checkpoint that names it are in one transaction: one without the other is a loss, whichever way it came about."""
    of = "" if key is None else f" of key {ascii(key[:MAX_KEY])[1:]}"
    return Refuse(
        f"{task}: {changelog} holds a change{of} at offset {offset}, the newest checkpoint in {checkpoints} covers offsets below {position}: "
        "later checkpoints were lost (an unclean leader election, or a topic restored from an older copy), and reading the inputs "
        "again would count twice; or another application writes to the changelog.",
        "Bring back the replica or the copy that has them. If another application wrote the record: revoke its permission. Then set every "
        "input, with --keep-state, to the offset that `samzapy checkpoint show JOB.yaml` shows (see `samzapy checkpoint set --help`): the "
        "record stays in the store until the task writes its key again. Or run `samzapy reset JOB.yaml` to start over.",
    )


def emptied_by_order(task: str, changelog: str, offset: int, checkpoints: str, position: int) -> Refuse:
    """As `unnamed`, where all that comes after the checkpoint is deletions: so it looks where the order of a `checkpoint set --reset-state` is lost, whose
    deletions are in the changelog. To keep that state would mean to go on with an empty store."""
    return Refuse(
        f"{task}: {changelog} holds nothing but deletions, from offset {offset} on, after what the newest checkpoint in {checkpoints} covers (offsets below "
        f"{position}). A `checkpoint set --reset-state` deleted these keys, and its order was lost before a start carried it out (`reset` "
        "with --coordinator, or somebody deleted the coordinator topic or its records); or later checkpoints were lost (an unclean leader election, or a topic "
        "restored from an older copy).",
        "Give the order again, with --reset-state: `samzapy checkpoint set JOB.yaml --to-earliest --reset-state --execute`, for example, builds the state "
        "again from the inputs. With --keep-state the keys would stay deleted.",
    )


def lost_end(changelog: str, end: int, mark: StoreMark) -> Refuse:
    """The changelog does not reach to what the checkpoint says."""
    return Refuse(
        f"changelog {changelog} ends at {end}, the checkpoint says {mark.position}: its end was lost, and committed state "
        "with it (an unclean leader election, or a topic restored from an older copy).",
        "Bring back the replica or the copy that has it, or run `samzapy reset JOB.yaml` to start over.",
    )


def _truncated(log: ChangelogFacts, mark: StoreMark) -> Refuse:
    return Refuse(
        f"changelog {log.topic}[{log.partition}] starts at {log.start}, the checkpoint says {mark.changelog_start}: "
        "it was truncated, and a full restore would silently miss keys.",
        "Bring back a host with the local store, or run `samzapy reset JOB.yaml` to start over.",
    )
