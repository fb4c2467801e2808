"""The program of edits by page against a direct pass over the same lines, whatever crashes in between."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest

from jobs.wikipedia import RAW, direct_pass, page_of, parse_edit, raw_record
from jobs.wikipedia_feed import lines
from jobs.wikipedia_pages import HUMANS, PAGES
from samzapy.testing import Harness

JOB = Path(__file__).parents[2] / "config" / "wikipedia-pages.yaml"


def directly(feed: list[bytes]) -> dict[str, dict[str, Any]]:
    """What each page had, by a plain loop."""
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for record in map(raw_record, feed):
        edit = parse_edit(record)
        if edit is not None:
            found[str(page_of(record["raw"]))].append(edit)
    return {
        page: {
            "edits": len(edits), "bytes_added": sum(e["diff_bytes"] for e in edits), "users": len({e["user"] for e in edits}),
            "flags": dict(Counter(flag for e in edits for flag in e["flags"])), "largest": max(abs(e["diff_bytes"]) for e in edits),
            "last_user": edits[-1]["user"],
        }
        for page, edits in found.items()
    }  # fmt: skip


@pytest.mark.parametrize("crashes", [False, True])
def test_the_pages_are_those_of_a_direct_pass(crashes: bool) -> None:
    feed = [line for line in lines() if line.strip()][:600]
    with Harness(JOB, tasks=3) as h:
        for number, record in enumerate(map(raw_record, feed)):
            h.send(RAW, record, key=page_of(record["raw"]), timestamp=1 + number)
            if crashes and number % 150 == 99:
                h.run(commit=number % 300 == 99)
                h.crash(keep_state=number < 300)
        h.run()
        expected, _ = direct_pass(feed)
        newest = dict(h.output(PAGES))
        assert directly(feed) == newest
        assert (expected.edits, expected.bytes_added) == tuple(sum(page[what] for page in newest.values()) for what in ("edits", "bytes_added"))
        assert expected.edits - expected.flags["bot"] == len(h.output(HUMANS))
