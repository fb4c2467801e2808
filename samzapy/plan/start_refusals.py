"""Why a task's start is refused: committed state or checkpoints were lost, or records would be counted twice. The steps are those of PROTOCOL.

    before T1, and T3   the changelog is not the one in the checkpoint (`replaced`), or does not reach to it (`lost_end`)
    T4                  the changelog has a change that no checkpoint names (`unnamed`), or keeps deletions for less time than it takes to read it
                        (`read_too_slowly`)
    T5                  no checkpoint, and this is no first start: records were deleted (`emptied`), or something shows earlier commits
                        (`traced`, already when a store is opened in T3; `orphaned`, when all are restored)

A changelog that was truncated is refused by local_store.py; other state than the job file asks for, by state_compatibility.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from samzapy.model.checkpoint import StoreMark
from samzapy.model.job_model import TaskModel
from samzapy.model.ownership import Startpoint
from samzapy.model.stamp import StoreIdentity
from samzapy.plan.duration import duration
from samzapy.ports import Claim

MAX_KEY = 60  # bytes of a key that are told


@dataclass(frozen=True, slots=True)
class Refuse:
    """The start is refused: why, and what to do."""

    reason: str
    remedy: str


# -- the changelog and the checkpoint do not fit each other ----------------------------------------------------------------------------


def replaced(topic: str, partition: int, topic_id: str, mark: StoreMark) -> Refuse | None:
    """The topic of that name ("": there is none) is not the one that the checkpoint names."""
    if mark.topic_id == topic_id:
        return None
    if mark.topic != topic:
        return Refuse(
            f"changelog {topic}[{partition}] is not the changelog in the checkpoint, which is {mark.topic}.",
            "Change the store's `changelog` back, or run `samzapy reset JOB.yaml` to begin with empty state.",
        )
    what = "was deleted and created again after the checkpoint: its content is not this job's state"
    return Refuse(
        f"changelog {topic}[{partition}] {what if topic_id else 'was deleted since the checkpoint, and with it committed state'}.",
        "Run `samzapy reset JOB.yaml` to begin with empty state, or bring the old topic back.",
    )


def lost_end(changelog: str, end: int, mark: StoreMark) -> Refuse:
    """The changelog does not reach to what the checkpoint says."""
    return Refuse(
        f"changelog {changelog} ends at {end}, the checkpoint says {mark.position}: its end was lost, and committed state "
        "with it (an unclean leader election, or a topic restored from an older copy).",
        "Bring back the replica or the copy that has it, or run `samzapy reset JOB.yaml` to begin with empty state.",
    )


def read_too_slowly(changelog: str, delete_retention_ms: int) -> Refuse:
    """A restore takes so long that deletions may have been removed before they were read."""
    kept = duration(delete_retention_ms / 1000)
    return Refuse(
        f"reading changelog {changelog} takes longer than it keeps deletions (`delete.retention.ms`: {kept}): keys that were deleted could come back.",
        f"With Kafka's own tools, set `delete.retention.ms` of {changelog.rpartition('[')[0]} to more than twice the time that a restore takes (a day is the "
        "default); then start the job again.",
    )


def unnamed(
    task: str, changelog: str, offset: int, checkpoints: str, position: int, key: bytes | None = None, *, only_deletions: bool
) -> Refuse:
    """A changelog has a change that no checkpoint names. Both are in one transaction: one without the other is a loss, whichever way it came about.

    Args:
        offset: that of the change, and `key` its key.
        checkpoints: the task's checkpoint partition, whose newest covers offsets below `position`.
        only_deletions: all changes from there on delete their key. It looks so where the order of a `checkpoint set --reset-state` is lost.
    """
    if only_deletions:
        return _emptied_by_order(task, changelog, offset, checkpoints, position)
    of = "" if key is None else f" of key {ascii(key[:MAX_KEY])[1:]}"
    return Refuse(
        f"{task}: {changelog} holds a change{of} at offset {offset}, the newest checkpoint in {checkpoints} covers offsets below {position}: "
        "later checkpoints were lost (an unclean leader election, or a topic restored from an older copy), and reading the inputs "
        "again would count twice; or another application writes to the changelog.",
        "Bring back the replica or the copy that has them. If another application wrote the record: revoke its permission. Then set every "
        "input, with --keep-state, to the offset that `samzapy checkpoint show JOB.yaml` shows (see `samzapy checkpoint set --help`): the "
        "record stays in the store until the task writes its key again. Or run `samzapy reset JOB.yaml` to begin with empty state.",
    )


def _emptied_by_order(task: str, changelog: str, offset: int, checkpoints: str, position: int) -> Refuse:
    """To keep that state would mean to go on with an empty store."""
    return Refuse(
        f"{task}: the newest checkpoint in {checkpoints} covers {changelog} only below offset {position}; from offset {offset} on, the changelog holds nothing "
        "but deletions. A `checkpoint set --reset-state` deleted these keys, and its order was lost before a start carried it out (`reset` "
        "with --coordinator, or somebody deleted the coordinator topic or its records); or later checkpoints were lost (an unclean leader election, or a topic "
        "restored from an older copy).",
        "Give the order again, with --reset-state: `samzapy checkpoint set JOB.yaml --to-earliest --reset-state --execute`, for example, builds the state "
        "again from the inputs. With --keep-state the keys would stay deleted.",
    )


# -- there is no checkpoint, and this is no first start --------------------------------------------------------------------------------


def emptied(
    group: str, partition: int | None, checkpoints: str, start: int, order: Startpoint | None, lost: Sequence[str]
) -> Refuse | None:
    """Asked before its stores are opened. Nothing of samzapy moves a log start, nor does compaction.

    Args:
        group: the job's consumer group.
        partition: as of `set_offsets`.
        checkpoints: its checkpoint partition, and `start` the log start of that.
        order: the `checkpoint set` of all its inputs that this start would carry out. If records were deleted after it was ordered, one of them may have
            been the checkpoint that carried it out.
        lost: its changelog partitions from which records were deleted.
    """
    known = order.checkpoints_from if order is not None else 0
    if start <= known:
        return None
    return _no_first_start(group, partition, f"{checkpoints} holds no checkpoint and starts at offset {start}", lost)


def traced(claims: Sequence[Claim], identity: StoreIdentity, partition: int | None, changelog: str, topic_id: str, start: int) -> Refuse | None:
    """Asked when one of its stores is opened. A first start that did not get to its first checkpoint leaves records, but the log start at 0,
    and a local store of sequence 0.

    Args:
        claims: the store's generations on this host.
        partition: as of `set_offsets`.
        changelog: its changelog partition, and `start` the log start of that.
    """
    mine = (c for c in claims if c.stamp is not None and (c.stamp.identity, c.stamp.topic_id) == (identity, topic_id))
    committed = next((c for c in mine if c.stamp is not None and c.stamp.sequence > 0), None)
    group = f"{identity.job}-{identity.id}"
    if start > 0:
        return emptied_changelog(group, partition, f"{changelog} starts at offset {start}")
    if committed is None:
        return None
    return _no_first_start(group, partition, f"there is no checkpoint, but local store {committed.generation} holds committed state of this task", ())


def emptied_changelog(group: str, partition: int | None, what: str) -> Refuse:
    """There is no checkpoint, and a changelog has lost its start. `what`: which, and where it starts."""
    return _no_first_start(group, partition, f"there is no checkpoint, but changelog {what}: records before it were deleted", ())


def orphaned(
    task: str, group: str, partition: int | None, checkpoints: str, has_checkpoint: bool, store: str, changelog: str, records: int
) -> Refuse:
    """Asked when its stores are restored: a changelog's state must belong to a checkpoint that names it, else it would be counted again, or is old.

    Args:
        group: the job's consumer group.
        partition: as of `set_offsets`.
        checkpoints: its checkpoint partition.
        records: what was read of the changelog of a store that its checkpoint does not name, or of any store if it has none.
    """
    if not has_checkpoint:
        return Refuse(
            f"{task}: there is no checkpoint in {checkpoints}, but {changelog} holds "
            f"{records} records of state: processing the inputs again would count twice.",
            set_offsets(group, partition),
        )
    return Refuse(
        f"{task}: store {store!r} is new to the checkpoint, but {changelog} holds {records} records: they are of another job's "
        "store, or of one that was dropped by a command that did not finish.",
        f"To start store {store!r} empty, take it out of the job file, or its operator out of the program (an `app.table` may stay), "
        f"run `samzapy state drop JOB.yaml {store} --execute`, and put it back; "
        "or give it another `changelog`.",
    )


def set_offsets(group: str, partition: int | None) -> str:
    """What to do about a task that lost its checkpoint, and no others.

    Args:
        group: the job's consumer group.
        partition: that of all its inputs; None: it reads several of a topic.
    """
    which, whose = (f" --partition {partition}", "it had not read yet") if partition is not None else ("", "were not read yet, those of other tasks too")
    return (
        "Set where the inputs of this task continue. If you know the offsets, set each with `samzapy checkpoint set JOB.yaml`, --topic, --partition, "
        f"--to-offset and --keep-state: Kafka's own tools show how far it had read (CURRENT-OFFSET of consumer group {group}). "
        f"`samzapy checkpoint set JOB.yaml{which} --to-latest --keep-state` skips the records that {whose}. --keep-state keeps what the changelogs "
        "still hold. Or run `samzapy reset JOB.yaml` to begin with empty state."
    )


def one_partition(task: TaskModel) -> int | None:
    """The partition that the task reads of each of its inputs; None: there are several."""
    numbers = {partition.partition for partition in task.inputs}
    return numbers.pop() if len(numbers) == 1 else None


def _no_first_start(group: str, partition: int | None, why: str, lost: Sequence[str]) -> Refuse:
    """What to do about a task without a checkpoint that has committed before.

    Args:
        group: the job's consumer group.
        partition: as of `set_offsets`.
        lost: its changelog partitions from which records were deleted.
    """
    too = f" Records of {', '.join(lost)} were deleted too, and state with them." if lost else ""
    return Refuse(
        f"{why}: the checkpoints of this task were deleted (by retention, or by a command). Reading the inputs from their start would process old records "
        f"again, and count them twice.{too}",
        set_offsets(group, partition),
    )
