"""Checks the job's topics while it runs: one that was deleted, or deleted and made again, ends the job with an error that names it, and so does an
internal topic whose records get other times. Other settings, under which state would be lost in time, end nothing: they are told.

A topic that no broker shows once may only be unknown to the broker that was asked; two looks in a row decide. Another id decides at once.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Collection, Mapping, Sequence

from samzapy.api.errors import NoLeader, SamzapyError, StateMismatch, StateRefused
from samzapy.model.job_model import TaskModel
from samzapy.model.offsets import TopicPartition
from samzapy.plan.grown_topics import grown_while_running
from samzapy.plan.internal_topics import is_between, other_times, wrong_policy
from samzapy.plan.lost_topics import MADE_AGAIN, lost_while_running
from samzapy.ports import Admin, Clock, Log, TopicSpec

GONE_LOOKS = 2


class TopicWatch:
    """Called every few seconds, on the coordinator's thread.

    Args:
        ids: the topics' ids as they were when the run began, by name.
        partitions: of the inputs, by name.
        internal: the job's own topics, as they must be.
        keyed: the topics whose keys decide which task's state a record meets.
    """

    def __init__(
        self, log: Log, clock: Clock, ids: Mapping[str, str], partitions: Mapping[str, int], internal: Sequence[TopicSpec] = (),
        keyed: Collection[str] = (),
    ) -> None:
        self._log = log
        self._clock = clock
        self._ids = ids
        self._internal = internal
        self._stays = {spec.name: spec.partitions for spec in internal if is_between(spec) and spec.name in keyed}
        self._partitions = [TopicPartition(t, p) for t, count in sorted(partitions.items()) for p in range(count)]
        self._admin: Admin | None = None
        self._missing: dict[str, int] = {}
        self._ends: dict[TopicPartition, int] = {}
        self._ends_ms = 0

    def check(self) -> str:
        """Check all of them. Returns what `run` would refuse by now of the internal topics' settings, with the commands that correct it; "" if nothing.

        Raises:
            StateRefused: one is gone, or another, or gives its records other times; named. StateMismatch: a topic between two stages has grown.
            ClusterUnreachable, LogError: they could not be looked at.
        """
        try:
            self._admin = self._admin or self._log.admin()
            now = self._admin.topics(self._ids)
        except SamzapyError:
            self.close()
            raise
        other = sorted(t for t, facts in now.items() if facts.topic_id != self._ids[t])
        self._missing = {t: self._missing.get(t, 0) + 1 for t in self._ids if t not in now}
        gone = sorted(t for t, looks in self._missing.items() if looks >= GONE_LOOKS)
        if other:
            raise lost_while_running(other, MADE_AGAIN)
        if gone:
            raise lost_while_running(gone, "deleted")
        if grown := {t: (count, now[t].partitions) for t, count in self._stays.items() if t in now and now[t].partitions > count}:
            raise grown_while_running(grown, self._stays, _doubt({p: end for p, end in self._ends.items() if p.topic in grown}, self._ends_ms))
        for spec in self._internal:
            if spec.name in now and (why := other_times(spec, now[spec.name])):
                raise StateRefused(
                    f"{why}. The job stops, and commits nothing more.",
                    f"With Kafka's own tools, set message.timestamp.type=CreateTime for {spec.name}. Windows may be wrong if records for them were sent "
                    "there meanwhile; `samzapy reset JOB.yaml` begins with empty state.",
                )
        return "; ".join(f"{s.name} {wrong}" for s in self._internal if s.name in now and (wrong := wrong_policy(s, now[s.name])))

    def grown(self, look: Callable[[], Mapping[str, TaskModel]]) -> Mapping[str, TaskModel]:
        """The tasks that `look` finds. Where the job cannot go on with them, what is doubtful is said: keys go to other partitions from the
        moment on at which a topic grows, so all that was written after the last look at which it had not.

        Raises:
            StateMismatch: as `look`, also where only some of the inputs have grown, with the time and the offsets from which on the state may be wrong.
        """
        before, before_ms = dict(self._ends), self._ends_ms
        now_ms = self._clock.now_ms()
        try:
            found = look()
            if self._admin is not None:
                with contextlib.suppress(NoLeader):  # the older ends are true of more
                    self._ends, self._ends_ms = self._admin.high_watermarks(self._partitions), now_ms
        except StateMismatch as error:
            if error.is_state_whole:  # behind an internal topic whose keys have state, `check` notices first
                raise
            raise StateMismatch(f"{error.message} {_doubt(before, before_ms)}", error.remedy) from error
        return found

    def close(self) -> None:
        if self._admin is not None:
            self._admin.close()
            self._admin = None


def _doubt(ends: Mapping[TopicPartition, int], at_ms: int) -> str:
    """Says from which offsets on the state may be wrong."""
    if not ends:
        return "Records that were written after the topic grew, and that the job committed before it noticed that, may be counted in the wrong task."
    when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at_ms / 1000))
    partitions = ", ".join(f"{partition} from offset {end}" for partition, end in sorted(ends.items()))
    return (
        f"At {when} it had not grown yet. Later records ({partitions}) that the job committed before it noticed the growth may be counted in the wrong "
        "task. Containers look for growth before they commit, at most once a second."
    )
