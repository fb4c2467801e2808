"""Bugs of time and of internal topics that the simulation must catch where a program is the job, planted one at a time as those of `mutations`.

The unit tests plant the same and more (test_planted_stages, test_windows, test_combined), each with the scenario that shows it; here nobody points the way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from samzapy.container import task_watermark
from samzapy.container.collector import Collector
from samzapy.container.committer import Committer
from samzapy.container.marked_partition import MarkedPartition
from samzapy.container.marks import Marks
from samzapy.container.task_watermark import TaskTime
from samzapy.model.event_time import NEVER, PartitionMark
from samzapy.streams.combining import Combiner
from samzapy.streams.operators.window_firing import Slices
from tests.unit.streams import test_planted_stages as stages
from tests.unit.streams import test_windows as windows


@contextmanager
def _instead(owner: Any, name: str, replacement: Any) -> Iterator[None]:
    before = vars(owner)[name]
    setattr(owner, name, replacement)
    try:
        yield
    finally:
        setattr(owner, name, before)


@contextmanager
def _time_of_others() -> Iterator[None]:
    """A stage that had not begun by the last commit begins with the time of one that has an input of it too."""
    kept = TaskTime.kept.fget
    assert kept is not None
    begun = property(lambda time: {name: at for name, at in kept(time).items() if at != NEVER})
    not_kept = task_watermark._not_kept  # which takes over that time where it is told of no partitions
    with _instead(TaskTime, "kept", begun), _instead(task_watermark, "_not_kept", lambda name, fed, known, new: not_kept(name, (), known, ())):
        yield


BUGS_OF_TIME: Mapping[str, Callable[[], AbstractContextManager[None]]] = {
    "marks outside the transaction": lambda: _instead(Marks, "_send", stages._outside),
    "maximum over the writers": lambda: _instead(MarkedPartition, "_combine", stages._largest),
    "what marks said is not in the checkpoint": lambda: _instead(MarkedPartition, "mark", property(lambda partition: PartitionMark(marks={}))),
    "records of a following stage outside the transaction": lambda: _instead(Collector, "take", lambda collector, topics: []),
    "purge beyond the committed position": lambda: _instead(Committer, "_apply", stages._ahead),
    "sums are not sent at the cut": lambda: _instead(Combiner, "flush", lambda combiner, send: combiner._waiting.clear()),
    "a stage that has not begun takes over the time of another": _time_of_others,
    "the cursor of windows is lost": lambda: _instead(Slices, "start", windows._starts_anew),
}
