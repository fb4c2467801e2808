"""Checks before a commit whether a topic of the container was made again, or an input of a job with state has grown.

A topic that was deleted and created again has other records at the same offsets: none of them may be committed as the old topic's. When a topic
gets more partitions, producers send keys to other partitions from then on, and so to tasks that do not have their state. A commit whose
records were all read before a look that found nothing is right. There is at most one look a second, of one request: at the default commit
interval, one before every commit. While the broker does not answer, commits go on; if growth is then noticed, the error names what was committed until then.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Mapping
from types import MappingProxyType

from samzapy.api.errors import LogError, StateMismatch, StateRefused
from samzapy.model.offsets import TopicPartition
from samzapy.plan.grown_topics import grown_while_running
from samzapy.plan.lost_topics import MADE_AGAIN, lost_while_running
from samzapy.ports import Admin, Clock, Log, TopicOutline

LOG = logging.getLogger("samzapy.container")
LOOK_S = 1.0
ANSWER_S = 1.0  # a commit waits no longer for an answer
NO_ANSWER_S = 5.0  # until the next look after one that brought no answer


class Growth:
    """Checks the ids and partition counts of a container's topics.

    Args:
        planned: by input, how many partitions it had when the run was planned; only the inputs whose keys have state.
        ids: by topic, Kafka's id: of the inputs and the changelogs.
        internal: topics between two stages.
    """

    def __init__(
        self, planned: Mapping[str, int], ids: Mapping[str, str], number: int, log: Log, clock: Clock, internal: Collection[str] = ()
    ) -> None:
        self._planned = planned
        self._internal = frozenset(internal)
        self._ids = ids
        self._number = number
        self._log = log
        self._clock = clock
        self._admin: Admin | None = None
        self._found: StateMismatch | StateRefused | None = None
        self._next_look = 0.0
        self._is_silent = False
        self._sure: dict[TopicPartition, int] = {}  # what was read before these offsets was read before the change
        self._sure_ms: int | None = None

    def check(self, read: Mapping[TopicPartition, int], committed: Mapping[TopicPartition, int], must_look: bool = False) -> None:
        """Check before a commit. `must_look`: also if the last check was less than a second ago.

        Args:
            read, committed: next offsets of the container's partitions: as the commit would have them, and as the last one left them.

        Raises:
            StateRefused: a topic was made again. StateMismatch: an input has grown. From then on at every call.
        """
        if self._found is not None:
            raise self._found
        self._sure = {partition: self._sure.get(partition, at) for partition, at in committed.items()}
        if read == committed:
            return  # nothing was read of another topic, or that could be in the wrong task
        now = self._clock.monotonic()
        if now < self._next_look and not must_look:
            return
        asked_ms = self._clock.now_ms()
        self.look(committed)
        if not self._is_silent:
            self._sure, self._sure_ms = dict(read), asked_ms

    def look(self, committed: Mapping[TopicPartition, int] = MappingProxyType({})) -> None:
        """Check now; as `check`."""
        outlines = self._outlines()
        self._next_look = self._clock.monotonic() + (NO_ANSWER_S if self._is_silent else LOOK_S)
        self._found = self._judge(outlines, committed)
        if self._found is not None:
            raise self._found

    def _outlines(self) -> Mapping[str, TopicOutline]:
        try:
            self._admin = self._admin or self._log.admin()
            outlines = self._admin.outlines(self._ids, ANSWER_S)
        except LogError as error:  # other requests to the broker end the container for it, this one does not
            if not self._is_silent:
                LOG.warning("container %d: cannot check whether its topics have changed, trying again: %s", self._number, error)
            self._is_silent = True
            return {}
        self._is_silent = False
        return outlines

    def _judge(self, outlines: Mapping[str, TopicOutline], committed: Mapping[TopicPartition, int]) -> StateMismatch | StateRefused | None:
        other = [topic for topic, now in outlines.items() if now.topic_id != self._ids[topic]]
        if other:
            doubtful = self._doubtful(other, committed)
            more = f"{doubtful}. They may be records of the new topic." if doubtful else ""
            return lost_while_running(other, MADE_AGAIN, more)
        grown = {t: outlines[t].partitions for t, count in self._planned.items() if t in outlines and outlines[t].partitions > count}
        return self._mismatch(grown, committed) if grown else None

    def _doubtful(self, topics: Collection[str], committed: Mapping[TopicPartition, int]) -> str:
        """The offsets of these topics that were committed since the last check that found no growth; "" if none were."""
        partitions = [
            f"{partition} offsets {self._sure[partition]} to {end - 1}"
            for partition, end in sorted(committed.items())
            if partition.topic in topics and end > self._sure[partition]
        ]
        if not partitions:
            return ""
        return (
            f"Before container {self._number} noticed this, it committed records that it had read between {self._since()} and {_told(self._clock.now_ms())}: "
            f"{', '.join(partitions)}"
        )

    def _since(self) -> str:
        return "its start" if self._sure_ms is None else _told(self._sure_ms)

    def _mismatch(self, grown: Mapping[str, int], committed: Mapping[TopicPartition, int]) -> StateMismatch:
        doubtful = self._doubtful(self._planned if grown.keys() - self._internal else grown, committed)
        if doubtful:
            what = f"{doubtful}. They may have been counted in the wrong task, so outputs may be wrong, too."
        else:
            what = (
                f"Container {self._number} committed none of the records that it read between {self._since()}, when no topic had grown, and "
                f"{_told(self._clock.now_ms())}."
            )
        return grown_while_running({topic: (self._planned[topic], count) for topic, count in grown.items()}, self._internal, what)

    def close(self) -> None:
        if self._admin is not None:
            self._admin.close()
            self._admin = None


def _told(at_ms: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at_ms / 1000))
