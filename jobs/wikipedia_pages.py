"""Edits of Wikipedia by page, as a program of streams: what each page has had so far, and the edits that bots did not make.

    wikipedia-raw ──▶ parse ──┬──▶ totals by page ──▶ wikipedia-pages
                              └──▶ not a bot's? ──▶ wikipedia-human-edits

wikipedia-raw is keyed by page (jobs/wikipedia.py writes it so), so each page is one task's.
"""

from __future__ import annotations

from jobs.wikipedia import RAW, parse_edit
from samzapy.streams import App, agg

PAGES = "wikipedia-pages"
HUMANS = "wikipedia-human-edits"

app = App()
edits = app.stream(RAW, key=str, value=dict).filter_map(parse_edit, label="parse")

totals = edits.filter(lambda edit, key: key is not None, label="of a page").aggregate(
    "pages",
    edits=agg.count(),
    bytes_added=agg.sum(lambda edit: edit["diff_bytes"]),
    users=agg.distinct(lambda edit: edit["user"]),
    flags=agg.value_counts(lambda edit: edit["flags"]),
    largest=agg.max(lambda edit: abs(edit["diff_bytes"])),
    last_user=agg.last(lambda edit: edit["user"]),
)
totals.to(PAGES, partitions=4)

edits.filter(lambda edit: "bot" not in edit["flags"], label="not a bot's").to(HUMANS, value=dict, partitions=4)
