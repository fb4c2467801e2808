"""Where an input begins: where `checkpoint set` says, else where the checkpoint does, else as a first start; where the topic no longer has that offset; and
from where it is read, which may be before.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from samzapy.api.errors import OffsetOutOfRange, SamzapyError, StateRefused
from samzapy.container.spec import InputSpec, StoreSpec
from samzapy.model.checkpoint import Checkpoint, InputMark
from samzapy.model.commands_told import choose_offset
from samzapy.model.offsets import Bounds, TopicPartition
from samzapy.model.ownership import Startpoint

FAIL = "fail"  # of `on_out_of_range`
LOG = logging.getLogger("samzapy.inputs")
OLD_ENTRIES = (
    "The table {table!r} may have entries that the missing records have changed or deleted. To fill it again from what the topic has now, stop the job, run "
    "`samzapy state drop JOB.yaml {table} --execute`, and start the job"
)


def known_marks(checkpoint: Checkpoint | None, order: Startpoint | None) -> dict[str, InputMark]:
    """What is known of a task's inputs, those that it had before included, by str(TopicPartition). An order comes before the checkpoint; but under
    state that stands, time does not go back."""
    before = {**checkpoint.left, **checkpoint.inputs} if checkpoint is not None else {}
    if order is None:
        return before
    times = {place: mark.time for place, mark in before.items()}
    return {**before, **{place: InputMark(order.topic_ids[place], at, times.get(place)) for place, at in order.offsets.items()}}


def begin_offset(mark: InputMark | None, bounds: Bounds, spec: InputSpec, partition: TopicPartition, *, has_grown: bool, is_empty: bool) -> int:
    """Where an input begins: where its mark says (`known_marks`), or as a first start without one. `is_empty`: its table has no entries.

    Raises:
        OffsetOutOfRange, StateRefused: as `checked_offset`.
    """
    return first_offset(bounds, spec, has_grown) if mark is None else checked_offset(bounds, spec, partition, mark, is_empty)


def was_added(partition: TopicPartition, first_count: int | None) -> bool:
    """Whether a partition was added after the job first saw its topic, with `first_count` partitions: then all its records are new to the job."""
    return first_count is not None and partition.partition >= first_count


def is_read_each_time(spec: InputSpec, stores: Iterable[StoreSpec]) -> bool:
    """Whether each start reads an input from its start: a bootstrap input that feeds what no changelog keeps."""
    stores = list(stores)
    return spec.bootstrap and (not stores or any(store.changelog is None for store in stores))


def read_from(mark: InputMark, start: int | None) -> int:
    """From where an input is read: its committed offset, or before it, where it fills a store that began empty from where that store has none of it.
    `start`: of the topic, if each start reads the input from there (`is_read_each_time`)."""
    return min([mark.next_offset, *mark.refill.values()]) if start is None else start


def first_offset(bounds: Bounds, spec: InputSpec, has_grown: bool = False) -> int:
    """Where a first start reads from, as an offset: it is committed before `init()`, so that a crash later starts from the same one.

    A partition that was added while the job knew the topic is read from its start: none of its records is older than the job.
    """
    return bounds.end if spec.start == "latest" and not has_grown else bounds.start


def checked_offset(bounds: Bounds, spec: InputSpec, partition: TopicPartition, mark: InputMark, is_empty: bool = False) -> int:
    """The checkpoint's next offset, or the one that the input's policy chooses if the topic no longer has it. `is_empty`: its table has no entries; then
    it is filled as for the first time, whatever the policy.

    Raises:
        OffsetOutOfRange, StateRefused: as `refused_mark` says.
    """
    what = _what_is_lost(bounds, spec, mark)
    if not what:
        return mark.next_offset
    if (refused := refused_mark(bounds, spec, partition, mark, is_empty)) is not None:
        raise refused
    table = _table(spec)
    if table and (is_empty or mark.topic_id != spec.topic_id):
        offset = first_offset(bounds, spec)
        LOG.info("input %s: %s; the table %r is filled again from %d", partition, what, table, offset)
        return offset
    offset = bounds.start if spec.on_out_of_range == "earliest" else bounds.end
    old = f". {OLD_ENTRIES.format(table=table)}" if table else ""
    LOG.warning("input %s: %s; continuing at %d (on_out_of_range: %s)%s", partition, what, offset, spec.on_out_of_range, old)
    return offset


def refused_mark(bounds: Bounds, spec: InputSpec, partition: TopicPartition, mark: InputMark, is_empty: bool = False) -> SamzapyError | None:
    """Why a start does not go on from an input's mark. An OffsetOutOfRange: the topic was replaced or does not reach to the offset, and the policy is
    `fail`. A StateRefused: the same of an internal topic; or the topic of a table, which has entries of the old one, was replaced. None: it goes on.
    `is_empty`: as for `checked_offset`."""
    what = _what_is_lost(bounds, spec, mark)
    if not what:
        return None
    if spec.between is not None:
        return StateRefused(
            f"internal topic {partition}: {what}. Records on their way to the following stage are lost.",
            "Bring the topic back with its records, or run `samzapy reset JOB.yaml` to begin with empty state.",
        )
    table, is_another = _table(spec), mark.topic_id != spec.topic_id
    if table and is_empty:
        return None
    if table and is_another:
        return StateRefused(
            f"input {partition}: {what}. The table {table!r} has entries of the old topic, which would stay in it.",
            "Give the table another name in the program (`store=…`): it is filled again. To delete the old entries permanently, run "
            f"`samzapy state drop JOB.yaml {table}`, which shows what it would do; then add `--execute`.",
        )
    return None if may_go_on(spec) else out_of_range(partition, what, table, is_another)


def _what_is_lost(bounds: Bounds, spec: InputSpec, mark: InputMark) -> str:
    return "the topic was deleted and created again after the checkpoint" if mark.topic_id != spec.topic_id else why_out_of_range(mark, bounds)


def _table(spec: InputSpec) -> str:
    """The table that an input fills and whose entries are kept from run to run; "": none."""
    return spec.table if spec.table in spec.fills else ""


def why_out_of_range(mark: InputMark, bounds: Bounds) -> str:
    """Why a topic does not have the checkpoint's next offset; "": it has."""
    if mark.next_offset < bounds.start:
        return f"the checkpoint's next offset {mark.next_offset} is before the topic's start {bounds.start}: records were removed unread"
    return f"the checkpoint's next offset {mark.next_offset} is after the topic's end {bounds.end}" if mark.next_offset > bounds.end else ""


def out_of_range(partition: TopicPartition, what: str, table: str = "", is_another: bool = False) -> OffsetOutOfRange:
    """What is told where the policy is `fail`. `table`: which the input fills, and whose entries are kept from run to run. `is_another`: it is another
    topic, in all its partitions."""
    if table:
        return OffsetOutOfRange(
            f"input {partition}: {what}.",
            f"{OLD_ENTRIES.format(table=table)}. Or set `on_out_of_range: earliest` for {partition.topic} to continue with the entries as they are.",
        )
    choose = choose_offset(partition.topic, None if is_another else partition.partition)
    missing = "go on with the new topic" if is_another else "skip the missing records"
    return OffsetOutOfRange(
        f"input {partition}: {what}.", f"Set `on_out_of_range: earliest` or `latest` for {partition.topic} to {missing}, or choose an offset: {choose}"
    )


def may_go_on(spec: InputSpec | None) -> bool:
    """Whether the policy of the input chooses another offset than one that the topic does not have. None: a task that joins was refused by its checkpoint."""
    return spec is not None and spec.on_out_of_range != FAIL


def condemned_before(offset: int, spec: InputSpec, mark: InputMark | None) -> tuple[int, ...]:
    """The condemned records that a mark names and that are not read for the first time from this offset on."""
    return () if mark is None or mark.topic_id != spec.topic_id else tuple(at for at in mark.condemned if at < offset)
