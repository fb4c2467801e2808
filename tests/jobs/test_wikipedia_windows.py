"""The statistics of ten seconds against a direct pass over the same lines, over different numbers of partitions and with crashes."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from jobs.wikipedia import RAW, parse_edit, raw_record
from jobs.wikipedia_feed import feed_file, lines
from jobs.wikipedia_windows import STATS
from samzapy.testing import Harness

JOB = Path(__file__).parents[2] / "config" / "wikipedia-windows.yaml"
SIZE = 10_000
FLAGS = {"minor": 316, "bot": 171, "new": 45, "talk": 30, "unpatrolled": 26, "special": 0}
FIRST = [(14, 983, 14, 4), (11, 83, 11, 6), (12, -1805, 12, 1), (9, -2025, 9, 4)]  # edits, bytes, titles, minor


def directly(records: list[dict[str, Any]]) -> dict[int, dict[str, Any]]:
    """What each window has, by its start, by a plain loop."""
    found: dict[int, list[dict[str, Any]]] = {}
    for record in records:
        edit = parse_edit(record)
        if edit is not None and "time" in record:
            found.setdefault(record["time"] // SIZE * SIZE, []).append(edit)
    return {
        start: {
            "edits": len(edits), "bytes_added": sum(e["diff_bytes"] for e in edits), "unique_titles": len({e["title"] for e in edits}),
            "flags": dict(Counter(flag for e in edits for flag in e["flags"])),
        }
        for start, edits in found.items()
    }  # fmt: skip


@pytest.mark.parametrize(("tasks", "crashes"), [(1, False), (4, True), (7, False)])
def test_the_windows_are_those_of_a_direct_pass(tasks: int, crashes: bool) -> None:
    """J5."""
    records = sorted((raw_record(line) for line in lines() if line.strip()), key=lambda record: record.get("time", 0))
    with Harness(JOB, tasks=tasks) as h:
        for number, record in enumerate(records):
            h.send(RAW, record, partition=number % tasks)
            if crashes and number % 300 == 150:
                h.run(commit=number > 500)
                h.crash(keep_state=number < 500)
        h.run()
        while_running = len(h.output(STATS))
        h.end()
        panes = [pane for _, pane in h.output(STATS)]
        assert {"on_time"} == {pane["pane"] for pane in panes}
        expected = directly(records)
        assert expected == {pane["start"]: {name: pane[name] for name in ("edits", "bytes_added", "unique_titles", "flags")} for pane in panes}
        assert len(expected) == len(panes) > while_running > len(panes) // 2
        assert sorted(expected) == [pane["start"] for pane in panes]
        if feed_file() is not None and len(records) == 1000:
            is_hello_samzas(panes)


def is_hello_samzas(panes: list[dict[str, Any]]) -> None:
    """The 1,000 lines of hello-samza."""
    assert (67, 930, 116_751, 925) == (len(panes), *(sum(pane[name] for pane in panes) for name in ("edits", "bytes_added", "unique_titles")))
    assert FLAGS == {name: sum(pane["flags"].get(name, 0) for pane in panes) for name in FLAGS}
    first = [(p["edits"], p["bytes_added"], p["unique_titles"], p["flags"].get("minor", 0)) for p in panes[:4]]
    assert (1_398_926_300_000, FIRST) == (panes[0]["start"], first)
    last = panes[-1]
    assert (1_398_926_960_000, 10, 293, 10) == (last["start"], last["edits"], last["bytes_added"], last["unique_titles"])
