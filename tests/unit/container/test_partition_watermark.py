"""How far event time has come, decided from records, the clock and the broker's answers; and that each way of getting it wrong is noticed."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import samzapy
from samzapy.container.partition_watermark import ADVANCE, PartitionWatermark, TimeRules
from samzapy.container.settled_clock import SettledClock
from samzapy.container.task_watermark import StageTime
from samzapy.model.event_time import END, NEVER, PartitionMark
from samzapy.model.offsets import TopicPartition

NOW_MS = 1_700_000_000_000
HOUR = 3_600_000


class SetClock:
    """The clocks of a stage's host. `ahead_ms`: how far the wall clock was set ahead."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self.ahead_ms = 0

    def monotonic(self) -> float:
        return self._stage.now_s

    def now_ms(self) -> int:
        return NOW_MS + int(self._stage.now_s * 1000) + self.ahead_ms

    def sleep(self, seconds: float) -> None:
        raise AssertionError("nobody waits here")

    def wait(self, event: threading.Event, seconds: float) -> None:
        raise AssertionError("nobody waits here")


class Stage:
    """A stage of some partitions, of a broker that this test is: clocks, ends, and what was processed."""

    def __init__(self, partitions: int, rules: TimeRules) -> None:
        self.rules = rules
        self.now_s = 0.0
        self.clock = SetClock(self)
        self.wall = SettledClock(self.clock)
        self.records: list[list[int]] = [[] for _ in range(partitions)]
        self.at = [0] * partitions
        self.marks = [PartitionMark()] * partitions
        self.reached = NEVER
        self.late: list[int] = []
        self.restart()

    def restart(self) -> None:
        """As after a commit and a crash: only what the checkpoint keeps is there."""
        if hasattr(self, "stage"):
            self.marks, self.reached = [partition.mark for partition in self.partitions], self.stage.kept
        self.stage = StageTime("s", self.reached)
        self.partitions = [
            PartitionWatermark(TopicPartition("in", number), self.rules, mark, self.wall.now_ms, self.stage.before_return)
            for number, mark in enumerate(self.marks)
        ]
        self.stage.partitions.extend(self.partitions)

    def send(self, partition: int, *times: int) -> None:
        self.records[partition].extend(times)

    def pass_time(self, seconds: float) -> None:
        """Second by second, as the container looks."""
        until = self.now_s + seconds
        while self.now_s < until:
            self.now_s = min(until, self.now_s + 1.0)
            self.look()

    def look(self, answers: bool = True) -> None:
        for partition, records, at in zip(self.partitions, self.records, self.at, strict=True):
            partition.clock_is(self.wall.now_ms(), self.now_s)
            partition.stands(at, len(records) > at, self.now_s)
        for partition, records in zip(self.partitions, self.records, strict=True):
            if answers and partition.wants_answer(self.now_s):
                partition.answered(len(records), self.now_s)
        self.stage.follow(self.now_s)

    def read(self, partition: int, count: int = 1) -> None:
        """Process records of a partition."""
        for time in self.records[partition][self.at[partition] : self.at[partition] + count]:
            if time < self.stage.watermark:
                self.late.append(time)
            if time > self.partitions[partition].quiet:
                self.partitions[partition].advance(time)
            self.at[partition] += 1


def test_the_watermark_is_the_minimum_less_what_may_be_out_of_order() -> None:
    s = Stage(2, TimeRules(delay_ms=5))
    s.send(0, 100, 90, 200)
    s.send(1, 150)
    s.read(0, 3)
    assert s.stage.watermark == NEVER  # nothing is known of the other
    s.read(1)
    assert s.stage.watermark == 145
    assert s.late == []


def a_restart_with_a_backlog_on_an_idle_partition() -> None:
    s = Stage(2, TimeRules(idle_ms=5000))
    s.send(0, 100)
    s.send(1, 100)
    s.read(0)
    s.read(1)
    s.pass_time(10)
    s.send(0, 200)
    s.look()  # both were idle, so the broker is asked about the other
    s.read(0)
    assert s.stage.watermark == 200, "partition 1 is idle"
    s.pass_time(1)
    s.send(0, 300)
    s.send(1, *range(201, 300))
    s.restart()  # while nobody reads, both get records; partition 0 is polled first
    s.read(0)
    assert s.stage.watermark == 200
    s.look()
    s.read(1, 99)
    assert s.late == []
    assert s.stage.watermark == 299


def all_were_idle_and_both_get_a_backlog() -> None:
    s = Stage(2, TimeRules(idle_ms=5000))
    s.send(0, 100)
    s.send(1, 120)
    s.read(0)
    s.read(1)
    s.pass_time(20)
    assert s.stage.watermark == 120, "all idle: the highest"
    s.send(0, 500)
    s.send(1, *range(121, 500))
    s.read(0)
    s.look()
    s.read(1, 379)
    assert s.late == []


def silence_without_an_answer_proves_nothing() -> None:
    s = Stage(2, TimeRules(idle_ms=5000))
    s.send(0, 100)
    s.send(1, 100)
    s.read(0)
    s.read(1)
    s.send(1, 110)  # in the client, or at the broker: not handed out, because partition 0 keeps the container busy
    for time in range(200, 300):
        s.send(0, time)
        s.read(0)
        s.now_s += 1.0
        for partition, at in zip(s.partitions, s.at, strict=True):
            partition.stands(at, False, s.now_s)  # the client does not know yet
        if s.partitions[1].wants_answer(s.now_s):
            s.partitions[1].answered(len(s.records[1]), s.now_s)
    s.read(1)
    assert s.late == []


def an_answer_before_the_silence_was_long_enough() -> None:
    s = Stage(2, TimeRules(idle_ms=5000))
    s.send(0, 100, 200)
    s.send(1, 100)
    s.read(0, 2)
    s.read(1)
    for _ in range(4):
        s.now_s += 1.0
        s.look(answers=False)
        s.partitions[1].answered(1, s.now_s)
    assert s.stage.watermark == 100
    s.pass_time(3)
    assert s.stage.watermark == 200


def two_wrong_clocks_do_not_confirm_each_other() -> None:
    s = Stage(1, TimeRules())
    far = NOW_MS + 100 * 365 * 24 * HOUR
    s.send(0, NOW_MS - HOUR, far, far, NOW_MS - HOUR + 1, far, NOW_MS - HOUR + 2)
    s.read(0, 6)
    assert s.stage.watermark == NOW_MS - HOUR + 2
    assert s.late == []


def a_first_record_with_a_wrong_clock() -> None:
    s = Stage(1, TimeRules())
    s.send(0, NOW_MS + 24 * HOUR, NOW_MS - HOUR)
    s.read(0, 2)
    assert s.stage.watermark == NOW_MS - HOUR
    assert s.late == []


def a_leap_that_all_agree_with_counts_and_not_beyond_the_clock() -> None:
    s = Stage(1, TimeRules())
    start = NOW_MS - 1000 * HOUR
    s.send(0, start, *(start + 100 * HOUR + n for n in range(100)))
    s.read(0, 100)
    assert s.stage.watermark == start
    s.read(0)
    assert start + 100 * HOUR <= s.stage.watermark <= start + 100 * HOUR + 99
    s.send(0, *[NOW_MS + 1000 * HOUR] * 200)
    s.read(0, 200)
    assert s.stage.watermark == NOW_MS + HOUR


def time_never_goes_back_over_a_restart() -> None:
    s = Stage(2, TimeRules(idle_ms=5000))
    s.send(0, 100, 300)
    s.read(0, 2)
    s.pass_time(6)
    s.pass_time(6)
    assert s.stage.watermark == 300
    s.restart()
    assert s.stage.watermark == 300
    s.send(1, 50)
    s.read(1)
    assert s.stage.watermark == 300
    assert s.late == [50]


SCENARIOS = (
    a_restart_with_a_backlog_on_an_idle_partition,
    all_were_idle_and_both_get_a_backlog,
    silence_without_an_answer_proves_nothing,
    an_answer_before_the_silence_was_long_enough,
    two_wrong_clocks_do_not_confirm_each_other,
    a_first_record_with_a_wrong_clock,
    a_leap_that_all_agree_with_counts_and_not_beyond_the_clock,
    time_never_goes_back_over_a_restart,
)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda s: s.__name__)
def test_time(scenario: Callable[[], None]) -> None:
    scenario()


def _maximum(stage: StageTime) -> int:
    stage._reached = max(stage._reached, max(partition.watermark for partition in stage.partitions))
    return stage._reached


def _trusting(partition: PartitionWatermark, *arguments: Any) -> None:
    init(partition, *arguments)
    partition.proved = partition.idle


def _by_silence(partition: PartitionWatermark, position: int, has_more: bool, now_s: float) -> None:
    stands(partition, position, has_more, now_s)
    if partition.rules.idle_ms is not None and now_s - partition.at_s >= partition.rules.idle_ms / 1000:
        partition.idle = partition.proved = True
        partition._set_limits()


def _at_once(partition: PartitionWatermark, end: int, asked_s: float) -> None:
    if end <= partition.position:
        partition.idle = partition.proved = True
        partition._set_limits()


def _unbounded(partition: PartitionWatermark, time: int, now_ms: int) -> None:
    if time > partition.newest:
        partition.newest = partition._seen_at = time


init, stands = PartitionWatermark.__init__, PartitionWatermark.stands
BUGS: dict[str, tuple[type, str, Any]] = {
    "maximum in place of minimum": (StageTime, "watermark", property(_maximum)),
    "idleness trusted after a restart": (PartitionWatermark, "__init__", _trusting),
    "idleness trusted after all were idle": (PartitionWatermark, "doubt", lambda partition: None),
    "idle by silence": (PartitionWatermark, "stands", _by_silence),
    "idle at the first answer": (PartitionWatermark, "answered", _at_once),
    "a leap counts at once": (PartitionWatermark, "_is_leap", lambda partition, time, now_ms: False),
    "beyond the clock": (PartitionWatermark, "_move", _unbounded),
    "the stage's watermark is not kept": (StageTime, "kept", property(lambda stage: NEVER)),
}


@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_is_noticed(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    owner, name, wrong = BUGS[bug]
    monkeypatch.setattr(owner, name, wrong)
    noticed = []
    for scenario in SCENARIOS:
        try:
            scenario()
        except AssertionError:
            noticed.append(scenario.__name__)
    assert noticed


def test_a_leap_is_confirmed_by_as_many_further_records_as_the_pages_say() -> None:
    pages = [Path(samzapy.__file__).with_name(name).read_text() for name in ("GLOSSARY.md", "STREAMS.md", "RELIABILITY.md")]
    further = {int(number) for page in pages for number in re.findall(r"(?:once|confirm it:|when) (\d+)(?: further)? records", page)}
    assert len(further) == 1
    needed = further.pop()
    s, far = Stage(1, TimeRules(max_ahead_ms=HOUR)), NOW_MS - 100 * HOUR
    s.send(0, far, *[far + 10 * HOUR] * (1 + needed))
    s.read(0, 2 + needed - 1)
    assert s.stage.watermark == far
    s.read(0)
    assert s.stage.watermark == far + 10 * HOUR


def test_a_partition_that_never_had_a_record_is_idle_at_the_second_answer() -> None:
    s = Stage(2, TimeRules(idle_ms=3_600_000))
    s.send(0, 100)
    s.read(0)
    s.look()
    assert s.stage.watermark == NEVER
    s.pass_time(1)
    assert s.stage.watermark == 100


def test_idle_never() -> None:
    s = Stage(2, TimeRules(idle_ms=None))
    s.send(0, 100)
    s.read(0)
    s.pass_time(100)
    assert s.stage.watermark == NEVER
    assert s.stage.waits_for(s.now_s) == "in[1], silent for 99 s, never counts as idle"


def test_of_a_partition_that_never_had_a_record_it_is_said_that_it_is_not_waited_for_long() -> None:
    s = Stage(2, TimeRules(idle_ms=300_000))
    s.send(0, 100)
    s.read(0)
    s.now_s = 1.0
    s.look(answers=False)
    assert s.stage.waits_for(s.now_s) == "in[1], which never had a record: ignored once its broker has confirmed that twice"


def test_how_long_a_partition_is_silent_is_not_said_before_it_was_read_and_is_said_in_hours() -> None:
    s = Stage(2, TimeRules(idle_ms=None))
    assert s.stage.waits_for(48_837.0) == "in[0], not read yet since the start"
    s.send(0, 100)
    s.read(0)
    s.pass_time(48_837)
    assert s.stage.waits_for(s.now_s) == "in[1], silent for 13 h 33 min, never counts as idle"


def test_a_quiet_stage_goes_on_with_the_clock_if_it_is_told_to() -> None:
    s = Stage(1, TimeRules(idle_ms=5000, when_idle=ADVANCE))
    s.send(0, 1000)
    s.read(0)
    s.pass_time(6)
    assert s.stage.watermark == 1000
    s.pass_time(10)
    assert s.stage.watermark == 11_000  # at its pace, not to it
    held = Stage(1, TimeRules(idle_ms=5000))
    held.send(0, 1000)
    held.read(0)
    held.pass_time(30)
    assert held.stage.watermark == 1000
    assert held.stage.waits_for(held.now_s) == "any input: none has had a record for 29 s; with `when_idle: advance` time would go on"


def test_the_end_of_a_bounded_run_is_the_end_of_time_and_is_not_kept() -> None:
    s = Stage(2, TimeRules())
    s.send(0, 100)
    s.send(1, 50)
    s.read(0)
    s.read(1)
    s.partitions[1].ended = True
    assert s.stage.watermark == 100
    s.partitions[0].ended = True
    assert s.stage.watermark == END
    assert s.stage.kept == 100


@given(
    st.lists(st.lists(st.integers(0, 10_000), max_size=30), min_size=1, max_size=4),
    st.integers(0, 500),
    st.randoms(use_true_random=False),
)
@settings(max_examples=150, deadline=None)
def test_what_is_within_the_bound_is_never_late_in_any_order_with_restarts_anywhere(bases: list[list[int]], delay: int, random: Any) -> None:
    s = Stage(len(bases), TimeRules(delay_ms=delay, idle_ms=None))
    for number, base in enumerate(bases):
        newest = 0
        for time in sorted(base):
            newest = max(newest, time)
            s.send(number, newest - random.randint(0, delay))
    before = NEVER
    while any(at < len(records) for at, records in zip(s.at, s.records, strict=True)):
        s.read(random.randrange(len(bases)), random.randint(1, 5))
        if random.random() < 0.2:
            s.restart()
        assert s.stage.watermark >= before
        before = s.stage.watermark
    assert s.late == []
    newest = [max(records, default=NEVER) for records in s.records]
    assert s.stage.watermark == (NEVER if NEVER in newest else min(newest) - delay)


def test_a_quiet_stage_goes_on_as_time_passes_however_the_clock_is_set() -> None:
    s = Stage(1, TimeRules(idle_ms=5000, when_idle=ADVANCE))
    s.send(0, NOW_MS)
    s.read(0)
    s.pass_time(10)
    before = s.stage.watermark
    assert NOW_MS < before <= NOW_MS + 10_000
    s.clock.ahead_ms = 20 * 60_000
    s.pass_time(4)
    s.clock.ahead_ms = 0
    s.pass_time(6)
    assert s.stage.watermark == before + 10_000
    s.clock.ahead_ms = -HOUR
    s.pass_time(10)
    assert s.stage.watermark == before + 20_000


PROCESSING = TimeRules(by_clock=True)


def test_processing_time_does_not_follow_a_clock_that_is_set_ahead_for_a_moment() -> None:
    s = Stage(1, PROCESSING)
    s.pass_time(10)
    s.clock.ahead_ms = HOUR
    s.pass_time(15)
    assert s.stage.watermark == NOW_MS + 25_000
    s.clock.ahead_ms = 0
    s.pass_time(5)
    assert s.stage.watermark == NOW_MS + 30_000


def test_processing_time_follows_a_clock_that_stays_ahead_after_a_minute() -> None:
    s = Stage(1, PROCESSING)
    s.pass_time(10)
    s.clock.ahead_ms = HOUR
    s.pass_time(59)
    assert s.stage.watermark == NOW_MS + 69_000
    s.pass_time(3)
    assert s.stage.watermark == s.clock.now_ms() == NOW_MS + 72_000 + HOUR


def test_a_clock_that_is_a_little_ahead_is_followed_at_once() -> None:
    s = Stage(1, PROCESSING)
    s.pass_time(10)
    s.clock.ahead_ms = 9_000
    s.pass_time(1)
    assert s.stage.watermark == s.clock.now_ms()


def test_processing_time_ahead_of_the_clock_goes_on_at_half_the_pace_until_it_has_caught_up() -> None:
    s = Stage(1, PROCESSING)
    s.partitions[0].newest = NOW_MS + HOUR  # of a host whose clock was ahead, or of this one, before it was set back
    s.look()
    s.pass_time(100)
    assert s.stage.watermark == NOW_MS + HOUR + 50_000
    assert "1 h 0 min" not in s.stage.waits_for(s.now_s)
    assert s.stage.waits_for(s.now_s) == "the clock: time is 59 min ahead of it, and goes on at half the pace until it has caught up"
    s.restart()
    s.pass_time(3600)
    assert s.stage.watermark == NOW_MS + HOUR + 50_000 + 1_799_500  # a second without a look is lost at a start
    s.pass_time(3600)
    assert s.stage.watermark == s.clock.now_ms()
    assert "" == s.stage.waits_for(s.now_s)


def test_a_partition_looked_at_a_thousand_times_a_second_loses_no_part_of_a_millisecond() -> None:
    partition = PartitionWatermark(TopicPartition("in", 0), PROCESSING, PartitionMark(newest=NOW_MS + HOUR), lambda: NOW_MS)
    for step in range(10_001):
        partition.clock_is(NOW_MS + step // 3, step / 3000)
    assert abs(partition.newest - (NOW_MS + HOUR + 1666)) <= 2
