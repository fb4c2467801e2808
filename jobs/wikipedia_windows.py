"""Ten-second statistics of all channels of Wikipedia, as a program of two stages.

    wikipedia-raw ──▶ parse ══▶ wikipedia-windows-1-one-place ──▶ windows of ten seconds ──▶ wikipedia-ten-seconds

wikipedia-raw has many partitions; the statistics are of all of them, so the edits go to one place first. A window waits for all partitions.
"""

from __future__ import annotations

from typing import Any

from jobs.wikipedia import RAW, parse_edit
from samzapy.streams import App, agg, tumbling

STATS = "wikipedia-ten-seconds"



def time(line: dict[str, Any]) -> int:
    at: int = line["time"]
    return at


def diff_bytes(edit: dict[str, Any]) -> int:
    difference: int = edit["diff_bytes"]
    return difference


def title(edit: dict[str, Any]) -> str:
    return str(edit["title"])


def flags(edit: dict[str, Any]) -> list[str]:
    return list(edit["flags"])


app = App()
lines = app.stream(RAW, value=dict, time=time, watermark_delay="5s")
edits = lines.filter_map(parse_edit, value=dict, label="parse")
panes = (
    edits.key_by(lambda edit: "all", "one-place", key=str, partitions=1)
    .window(tumbling("10s"))
    .aggregate(
        "ten-seconds",
        edits=agg.count(),
        bytes_added=agg.sum(diff_bytes),
        unique_titles=agg.distinct(title),
        flags=agg.value_counts(flags),
    )
)
panes.to(STATS, partitions=1)
