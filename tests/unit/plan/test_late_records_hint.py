"""The hint for partitions whose records almost all come too late."""

from __future__ import annotations

from typing import Any

from samzapy.plan.finding import Finding
from samzapy.plan.hint_rules import diagnose
from samzapy.plan.job_facts import JobFacts, TaskFacts
from samzapy.plan.late_records_hint import LOOKS, WindowCounts


def tasks(*counts: tuple[int, int]) -> list[dict[str, Any]]:
    return [{"name": f"Partition {n}", "operators": {"source": {"out": i}, "clicks": {"in": i, "out": 1, "late": late}}} for n, (i, late) in enumerate(counts)]


def looked(*looks: list[dict[str, Any]]) -> list[Finding]:
    counts = WindowCounts()
    by_task = [counts.look(one) for one in looks][-1]
    return diagnose(JobFacts(tasks=[TaskFacts(name=name, windows=windows) for name, windows in by_task.items()], containers=[]))


def test_a_partition_whose_records_are_almost_all_too_late_is_named_with_what_to_do() -> None:
    first = tasks((1000, 0), (500, 100))
    (finding,) = looked(*[first] * (LOOKS + 1), tasks((2000, 1), (600, 195)))
    assert finding.sentence == "95 % of the records that Partition 1 got for clicks in the last minute were too late, and are not counted."
    assert (finding.code, finding.about, dict(finding.evidence)) == ("too-late", "clicks", {"too_late": 95, "records": 100, "tasks": 1})
    assert "watermark_delay" in finding.remedy
    (finding,) = looked(tasks((0, 0), (0, 0)), tasks((100, 95), (50, 50)))
    assert finding.sentence.endswith("not counted. The same happened to most records of one other task.")


def test_what_is_healthy_or_not_known_raises_no_hint() -> None:
    assert [] == looked(tasks((0, 0)), tasks((1000, 100)))
    assert [] == looked(tasks((0, 0)), tasks((19, 19))), "too few"
    assert [] == looked(tasks((1000, 1000)), tasks((30, 10))), "another process, which counts from 0"
    assert [] == looked(tasks((1000, 1000)), [{"name": "Partition 0"}], *[tasks((1000, 1000))] * LOOKS), (
        "a report without operators is no new process"
    )
    assert [] == looked([{"name": "Partition 0"}], [{"name": "Partition 0", "operators": None}])


def test_a_backlog_that_was_read_before_the_first_look_counts() -> None:
    (finding,) = looked(tasks((1000, 990)))
    assert dict(finding.evidence) == {"too_late": 990, "records": 1000, "tasks": 1}
    assert 1 == len(looked(*[tasks((1000, 990))] * LOOKS)), "long enough to be told"
    assert 1 == len(looked(tasks((5000, 0)), tasks((30, 30)))), "another process, whose first records were too late"


def test_it_is_of_the_last_minute_alone() -> None:
    before = [tasks((n * 100, n * 100)) for n in range(3)]
    after = [tasks((200 + n * 100, 200)) for n in range(1, LOOKS + 1)]
    assert [] == looked(*before, *after)
    assert 1 == len(looked(*before))
