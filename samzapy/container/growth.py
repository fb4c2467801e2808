"""Whether an input of a job with state has grown: looked at before a commit, so that little is committed that may be in the wrong task.

When a topic gets more partitions, producers send keys to other partitions from then on, and so to tasks that do not have their state. A commit whose
records were all read before a look that found nothing is right. There is at most one look a second: at the default commit interval, one before
every commit. While the broker does not answer, commits go on, and what was committed meanwhile is named when growth is found.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping

from samzapy.api.errors import LogError, StateMismatch
from samzapy.model.offsets import TopicPartition
from samzapy.plan.first_run import STATE_IS_LOST
from samzapy.ports import Admin, Clock, Log

LOG = logging.getLogger("samzapy.container")
LOOK_S = 1.0
ANSWER_S = 1.0  # a commit waits no longer for an answer
NO_ANSWER_S = 5.0  # until the next look after one that brought no answer


class Growth:
    """Looks at the partition counts of a container's inputs.

    Args:
        planned: by input, how many partitions it had when the run was planned; only the inputs whose keys have state; none: nothing is looked at.
    """

    def __init__(self, planned: Mapping[str, int], number: int, log: Log, clock: Clock) -> None:
        self._planned = planned
        self._number = number
        self._log = log
        self._clock = clock
        self._admin: Admin | None = None
        self._found: StateMismatch | None = None
        self._next_look = 0.0
        self._is_silent = False
        self._sure: dict[TopicPartition, int] = {}  # what was read before these offsets was read before it grew
        self._sure_ms: int | None = None

    def check(self, read: Mapping[TopicPartition, int], committed: Mapping[TopicPartition, int], must_look: bool = False) -> None:
        """Before a commit. `must_look`: also if the last look was less than a second ago.

        Args:
            read, committed: next offsets of the container's partitions: as the commit would have them, and as the last one left them.

        Raises:
            StateMismatch: an input has grown; from then on at every call.
        """
        if not self._planned:
            return
        if self._found is not None:
            raise self._found
        self._sure = {place: self._sure.get(place, at) for place, at in committed.items()}
        if read == committed:
            return  # nothing was read that could be in the wrong task
        now = self._clock.monotonic()
        if now < self._next_look and not must_look:
            return
        asked_ms = self._clock.now_ms()
        counts = self._counts()
        self._next_look = self._clock.monotonic() + (NO_ANSWER_S if self._is_silent else LOOK_S)
        grown = {topic: count for topic, count in counts.items() if count > self._planned[topic]}
        if grown:
            self._found = self._mismatch(grown, committed)
            raise self._found
        if not self._is_silent:
            self._sure, self._sure_ms = dict(read), asked_ms

    def _counts(self) -> Mapping[str, int]:
        try:
            self._admin = self._admin or self._log.admin()
            counts = self._admin.partition_counts(self._planned, ANSWER_S)
        except LogError as error:  # whoever needs the broker ends for it, this does not
            if not self._is_silent:
                LOG.warning("container %d: whether its inputs have grown is not known, it is asked again: %s", self._number, error)
            self._is_silent = True
            return {}
        self._is_silent = False
        return counts

    def _mismatch(self, grown: Mapping[str, int], committed: Mapping[TopicPartition, int]) -> StateMismatch:
        told = ", ".join(f"input {topic} grew from {self._planned[topic]} to {count} partitions" for topic, count in sorted(grown.items()))
        doubtful = [
            f"{place} offsets {self._sure[place]} to {end - 1}"
            for place, end in sorted(committed.items())
            if place.topic in self._planned and end > self._sure[place]
        ]
        since = "this container began" if self._sure_ms is None else _told(self._sure_ms)
        until = _told(self._clock.now_ms())
        if doubtful:
            what = (
                f"Container {self._number} committed records that it read between {since} and {until} before this was noticed: "
                f"{', '.join(doubtful)}. They may have been counted in the wrong task, and outputs may be wrong with them."
            )
        else:
            what = (
                f"Container {self._number} has committed nothing that it read after {since}, when nothing had grown; "
                f"what it read until {until} is not committed."
            )
        return StateMismatch(
            f"{told} while the job ran: keys go to other partitions now, and their records to tasks that do not have their state. {what}", STATE_IS_LOST
        )

    def close(self) -> None:
        if self._admin is not None:
            self._admin.close()
            self._admin = None


def _told(at_ms: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at_ms / 1000))
