"""The programs of streams that are measured, written as a user would write them. Their topics come from the environment: they differ by run."""

from __future__ import annotations

import os
from typing import Any

from samzapy.streams import App, Panes, Stream, tumbling

GIVEN, OUTPUT = "BENCH_INPUT", "BENCH_OUTPUT"


def time(record: dict[str, Any]) -> int:
    at: int = record["ts"]
    return at


def page(record: dict[str, Any]) -> str:
    found: str = record["page"]
    return found


def _views(app: App, key: Any) -> Stream[Any, dict[str, Any]]:
    return app.stream(os.environ.get(GIVEN, "given"), key=key, value=dict, time=time, watermark_delay="1s", max_ahead=None)


def _send(panes: Panes[str, Any, int]) -> None:
    shown = panes.map(lambda pane, key: {"page": key, "start": pane.start, "count": pane.value}, value=dict)
    shown.to(os.environ.get(OUTPUT, "counts"))


by_page = App()  # the records of a page are in all partitions
_send(_views(by_page, bytes).key_by(page, "by-page", key=str).window(tumbling("10s")).count("views"))

keyed = App()  # the key of a record is its page already
_send(_views(keyed, str).window(tumbling("10s")).count("views"))
