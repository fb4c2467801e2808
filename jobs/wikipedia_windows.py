"""Ten-second statistics of all channels of Wikipedia, as a program of two stages.

    wikipedia-raw ──▶ parse ══▶ wikipedia-windows-1-one-place ──▶ windows of ten seconds ──▶ wikipedia-ten-seconds

wikipedia-raw has many partitions; the statistics are of all of them, so the edits go to one place first. A window waits for all partitions.
"""

from __future__ import annotations

from jobs.wikipedia import RAW, parse_edit
from samzapy.streams import App, agg, tumbling

STATS = "wikipedia-ten-seconds"

app = App()
lines = app.stream(RAW, value=dict, time=lambda line: line["time"], watermark_delay="5s")
edits = lines.filter_map(parse_edit, value=dict, label="parse")
panes = (
    edits.key_by(lambda edit: "all", "one-place", key=str, partitions=1)
    .window(tumbling("10s"))
    .aggregate(
        "ten-seconds",
        edits=agg.count(),
        bytes_added=agg.sum(lambda edit: edit["diff_bytes"]),
        unique_titles=agg.distinct(lambda edit: edit["title"]),
        flags=agg.value_counts(lambda edit: edit["flags"]),
    )
)
panes.to(STATS, partitions=1)
