"""What the rules of hint_rules.py are told of a running job. What is not known has its default, and a rule that lacks it is silent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from samzapy.model.offsets import TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFacts:
    """One task. Rates are records a second; None: not known.

    Attributes:
        copy_lag: by how many changes its warm copy that is furthest behind is behind; `copy_host`: where that is.
        hottest: the share of one key among its last records, as far as they were looked at.
        strangers: the partition in which another application's open transaction hides the records that it waits for.
        unread_deletions: inputs of which it may have missed deletions when it started: topic, sentence, remedy.
        windows: by window, what came to it in the last minute, and how many records of that were too late.
        watermarks: by stage, where these are known.
        rebuilt_s: how long its stores took to be read from their changelogs after a death, in the last ten minutes.
    """

    name: str
    container: int | None = None
    lag: int | None = None
    rate: float | None = None
    arriving: float | None = None
    us: float | None = None
    reason: str = ""
    strangers: TopicPartition | None = None
    hottest: float = 0.0
    copy_lag: int = 0
    copy_host: str = ""
    rebuilt_s: float = 0.0
    unread_deletions: Sequence[Mapping[str, str]] = ()
    windows: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    watermarks: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerFacts:
    """One container.

    Attributes:
        loop: shares of its loop's time; empty: not known.
        deaths: in the last ten minutes; `dying_s`: since the first of them; `is_dying`: they come so fast that one more is expected.
        why: of the last one, in words, without what memory may have to do with it; `signal`, `lacks_memory`, `said`: as in ProcessEnd.
        silent_s: how long its loop has been in one hook; `at`: the line; `record`: which, in words.
        is_searching: it looks for the record that ended its process, in small batches.
        decide_s: how long the brokers took to decide its commits, 95 of 100 of them less.
        held_s: for how long its code kept the interpreter just now, so that it could not be heard; `held_at`: the line.
        memory_mib: what it takes; `grows_mib`: by how much that grew a minute, without a pause, over the last ten.
    """

    number: int
    host: str = ""
    tasks: int = 1
    loop: Mapping[str, float] = field(default_factory=dict)
    deaths: int = 0
    dying_s: float = 0.0
    is_dying: bool = True
    why: str = ""
    signal: str = ""
    lacks_memory: bool = False
    said: str = ""
    silent_s: float = 0.0
    at: str = ""
    record: str = ""
    is_searching: bool = False
    decide_s: float | None = None
    held_s: float = 0.0
    held_at: str = ""
    memory_mib: float = 0.0
    grows_mib: float = 0.0

    @property
    def busy(self) -> float | None:
        return self.loop["process"] + self.loop["commit"] if self.loop else None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFacts:
    """A job. `lag_rate`: by how many records a second it falls behind. `set_aside_s`, `skipped_s`: records a second that fail and
    are set aside, or skipped. `hang_s`: `commit.timeout`, after which a container is ended whose hook does not return."""

    tasks: Sequence[TaskFacts]
    containers: Sequence[ContainerFacts]
    lag: int | None = None
    lag_rate: float = 0.0
    behind_s: float | None = None
    set_aside_s: float = 0.0
    skipped_s: float = 0.0
    hang_s: float = 60.0
    is_paused: bool = False
