"""A record that is sent back keeps its timestamp, unless its topic refuses that or would remove the record for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from samzapy.api.errors import ConfigurationError
from samzapy.model.dead_letter import DeadLetter, Origin
from samzapy.ops.dead_letters import DeadLetters
from samzapy.ops.replay_time import DAY_MS, HOUR_MS, why_not_own
from tests.unit.container.bench import JOB, Bench
from tests.unit.ops.test_dead_letters import Fragile, quiet, records

NOW_MS = 1_700_000_000_000
BEFORE, AFTER, KEPT = "message.timestamp.before.max.ms", "message.timestamp.after.max.ms", "retention.ms"


@pytest.mark.parametrize(
    ("timestamp_ms", "config", "told"),
    [
        (1000, {}, ""),
        (1000, {BEFORE: str(2**63 - 1), KEPT: "-1"}, ""),
        (NOW_MS - 6 * DAY_MS, {KEPT: str(7 * DAY_MS)}, ""),
        (NOW_MS - 8 * DAY_MS, {KEPT: str(7 * DAY_MS)}, "8.00 days old, and the topic removes those that are older than 7.00 days (retention.ms=604800000)"),
        (NOW_MS - 7 * DAY_MS + HOUR_MS // 2, {KEPT: str(7 * DAY_MS)}, KEPT),
        (NOW_MS - 8 * DAY_MS, {KEPT: str(7 * DAY_MS), "cleanup.policy": "compact"}, ""),
        (NOW_MS - 8 * DAY_MS, {KEPT: str(7 * DAY_MS), "cleanup.policy": "compact,delete"}, KEPT),
        (NOW_MS - 2 * HOUR_MS, {BEFORE: str(HOUR_MS)}, BEFORE),
        (NOW_MS - HOUR_MS // 2, {BEFORE: str(HOUR_MS)}, ""),
        (NOW_MS + 2 * HOUR_MS, {AFTER: str(HOUR_MS)}, "days ahead, and the topic takes none that are further ahead than 0.04 days"),
        (NOW_MS + HOUR_MS // 2, {AFTER: str(HOUR_MS)}, ""),
        (NOW_MS - 8 * DAY_MS, {KEPT: "1000", BEFORE: "1000", "message.timestamp.type": "LogAppendTime"}, ""),
        (-1, {}, "it has no timestamp"),
        (0, {}, "its timestamp is 0"),
        (-1, {"message.timestamp.type": "LogAppendTime"}, ""),
    ],
)
def test_a_topic_refuses_a_time_or_removes_what_has_it(timestamp_ms: int, config: dict[str, str], told: str) -> None:
    why = why_not_own(timestamp_ms, NOW_MS, config)
    assert told in why
    assert bool(told) == bool(why)


def bench_with(tmp_path: Path, *timestamps_ms: int) -> Bench:
    """A job with a dead letter of each of these times."""
    bench = Bench(tmp_path, Fragile, on_error="dead_letter")
    for timestamp_ms in timestamps_ms:
        bench.log.plain_producer("feed").send("in", (1).to_bytes(8, "big"), b"boom", 0, timestamp_ms)
    bench.drain(bench.start())
    return bench


def letters_of(bench: Bench, may_have_new_time: bool = False) -> DeadLetters:
    return DeadLetters(JOB, ["in"], bench.log, bench.clock, may_have_new_time=may_have_new_time)


def times(bench: Bench) -> list[int]:
    return [m.timestamp()[1] for m in records(bench)]


def test_a_record_goes_back_with_its_own_timestamp(tmp_path: Path) -> None:
    bench = bench_with(tmp_path, 1000, 5)
    letters = letters_of(bench)
    assert {} == letters.with_new_time(letters.read().entries)
    assert 2 == len(letters.replay(None, quiet))
    assert [1000, 5, 1000, 5] == times(bench)


def test_a_record_whose_time_is_not_kept_is_refused_until_it_may_have_a_new_one(tmp_path: Path) -> None:
    bench = bench_with(tmp_path, NOW_MS - 8 * DAY_MS, NOW_MS - DAY_MS)
    bench.cluster.configure("in", {"retention.ms": str(7 * DAY_MS)})
    letters = letters_of(bench)
    (why,) = letters.passed_by(letters.read())
    assert "in[0]@0: its time is 8.00 days old" in str(why)
    with pytest.raises(ConfigurationError, match=r"retention\.ms=604800000") as refused:
        letters.replay([Origin("in", 0, 0)], quiet)
    assert "--new-time --execute" in refused.value.remedy
    assert [Origin("in", 0, 1)] == [e.letter.origin for e in letters.replay(None, quiet)]

    renewed = letters_of(bench, may_have_new_time=True)
    found = renewed.read()
    assert {"in does not keep their own": [Origin("in", 0, 0)]} == renewed.with_new_time([e for e in found.entries if e.is_waiting])
    assert [Origin("in", 0, 0)] == [e.letter.origin for e in renewed.replay(None, quiet)]
    assert [NOW_MS - DAY_MS, NOW_MS] == times(bench)[2:]


def test_a_record_without_a_timestamp_gets_the_present_one_only_if_it_may(tmp_path: Path) -> None:
    bench = Bench(tmp_path, Fragile, on_error="dead_letter")
    bench.drain(bench.start())
    letter = DeadLetter(
        origin=Origin("in", 0, 7), key=b"k", value=b"v", headers=(), task="Partition 0", error="E: x", stack="", attempts=1, timestamp_ms=-1, time_ms=5
    )
    bench.log.plain_producer("feed").send(JOB.dead_letter_topic, b"v", b"k", 0, 5, letter.to_headers())
    with pytest.raises(ConfigurationError, match=r"in\[0\]@7: it has no timestamp") as refused:
        letters_of(bench).replay([letter.origin], quiet)
    assert refused.value.remedy.startswith("Send it back with the current time: `samzapy dlq replay JOB.yaml 0.0 --new-time --execute`")
    renewed = letters_of(bench, may_have_new_time=True)
    assert {"they have none that can be sent": [letter.origin]} == renewed.with_new_time(renewed.read().entries)
    assert [letter.origin] == [e.letter.origin for e in renewed.replay(None, quiet)]
    assert [NOW_MS] == times(bench)


def test_that_the_topic_gives_the_time_itself_is_told(tmp_path: Path) -> None:
    bench = bench_with(tmp_path, 1000)
    bench.cluster.configure("in", {"message.timestamp.type": "LogAppendTime", "retention.ms": str(7 * DAY_MS)})
    letters = letters_of(bench)
    told = letters.with_new_time(letters.read().entries)
    assert {"in gives each record the time at which it arrives": [Origin("in", 0, 0)]} == told
    letters.replay(None, quiet)
    assert NOW_MS == times(bench)[1]
