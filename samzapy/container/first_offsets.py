"""Where an input begins: without a checkpoint, with one, and with one whose offset the topic no longer has."""

from __future__ import annotations

import logging

from samzapy.api.errors import OffsetOutOfRange, StateRefused
from samzapy.container.spec import InputSpec
from samzapy.model.checkpoint import InputMark
from samzapy.model.offsets import Bounds, TopicPartition

FAIL = "fail"  # of `on_out_of_range`
LOG = logging.getLogger("samzapy.inputs")


def first_offset(bounds: Bounds, spec: InputSpec, has_grown: bool = False) -> int:
    """Where a first start reads from, as an offset: it is committed before `init()`, so that a crash later starts from the same one.

    A partition that was added while the job knew the topic is read from its start: none of its records is older than the job.
    """
    return bounds.end if spec.start == "latest" and not has_grown else bounds.start


def checked_offset(bounds: Bounds, spec: InputSpec, partition: TopicPartition, mark: InputMark, is_empty: bool = False) -> int:
    """The checkpoint's next offset, or the one that the input's policy chooses if the topic no longer has it. `is_empty`: its table has no entries.

    Raises:
        OffsetOutOfRange: the topic was replaced or does not reach to the offset, and the policy is `fail`. StateRefused: the same of an internal topic;
        or the topic of a table, which has entries of the old one, was replaced.
    """
    if mark.topic_id != spec.topic_id:
        what = "the topic was deleted and created again after the checkpoint"
    elif not bounds.start <= mark.next_offset:
        what = f"the checkpoint's next offset {mark.next_offset} is before the topic's start {bounds.start}: records were removed unread"
    elif mark.next_offset > bounds.end:
        what = f"the checkpoint's next offset {mark.next_offset} is after the topic's end {bounds.end}"
    else:
        return mark.next_offset
    if spec.between is not None:
        raise StateRefused(
            f"internal topic {partition}: {what}. Records on their way to the following stage are lost.",
            "Bring the topic back with its records, or run `samzapy reset JOB.yaml` to start over.",
        )
    if spec.table in spec.fills and mark.topic_id != spec.topic_id:
        return _of_table(bounds, spec, partition, what, is_empty)
    if not may_go_on(spec):
        raise OffsetOutOfRange(
            f"input {partition}: {what}.",
            f"Set `on_out_of_range: earliest` or `latest` for {spec.topic} to skip the missing records, "
            "or choose an offset: `samzapy checkpoint set JOB.yaml --to-earliest` (or `--to-datetime`, `--to-offset`).",
        )
    offset = bounds.start if spec.on_out_of_range == "earliest" else bounds.end
    LOG.warning("input %s: %s; continuing at %d (on_out_of_range: %s)", partition, what, offset, spec.on_out_of_range)
    return offset


def may_go_on(spec: InputSpec | None) -> bool:
    """Whether the policy of the input chooses another offset than one that the topic does not have. None: a task that joins was refused by its checkpoint."""
    return spec is not None and spec.on_out_of_range != FAIL


def _of_table(bounds: Bounds, spec: InputSpec, partition: TopicPartition, what: str, is_empty: bool) -> int:
    """Where a table's topic that was made again is read from: as for the first time, into a table that is empty."""
    if not is_empty:
        raise StateRefused(
            f"input {partition}: {what}. The table {spec.table!r} has entries of the old topic, which would stay in it.",
            "Give the table another name in the program (`store=…`), under which it is filled again, and, to delete the old entries permanently, "
            f"`samzapy state drop JOB.yaml {spec.table}`, which shows what it would do; run it again with `--execute`.",
        )
    offset = first_offset(bounds, spec)
    LOG.info("input %s: %s; the table %r is filled again from %d", partition, what, spec.table, offset)
    return offset


def condemned_before(offset: int, spec: InputSpec, mark: InputMark | None) -> tuple[int, ...]:
    """The condemned records that a mark names and that are not read for the first time from this offset on."""
    return () if mark is None or mark.topic_id != spec.topic_id else tuple(at for at in mark.condemned if at < offset)
