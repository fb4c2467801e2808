"""A record of a program that Kafka refuses, beside internal topics: each commit writes marks into these, which are no progress of the search for it."""

from __future__ import annotations

from typing import Any

import pytest

from samzapy.streams import App, tumbling
from samzapy.testing import Harness

NOW_MS = 1_700_000_000_000
DAY_MS = 86_400_000


def program() -> App:
    """The first output takes the record's own time; two internal topics."""
    app = App()
    given = app.stream("given", key=str, value=dict, time=lambda record: int(record["at"]), watermark_delay="0s", max_ahead=None)
    given.to("copies")
    given.key_by(lambda _: "all", "sums", key=str).window(tumbling("10s")).count("sums-of-all").to("counts")
    given.key_by(lambda _: "all", "records", key=str, combine=False).window(tumbling("10s"), allowed_lateness="1d").count("records-of-all").to("late-counts")
    return app


@pytest.mark.timeout(60)
@pytest.mark.parametrize("times", [(0, DAY_MS), (DAY_MS, 0), (0, DAY_MS, 1, DAY_MS + 1)])
@pytest.mark.parametrize("then", ["dead_letter", "skip"])
@pytest.mark.parametrize("is_bounded", [True, False])
def test_it_is_set_aside_and_the_run_ends(times: tuple[int, ...], then: str, is_bounded: bool) -> None:
    more: dict[str, Any] = {"on_error": {"then": then}}
    with Harness(program(), now=NOW_MS, **more) as h:
        for offset, at in enumerate(times):
            h.send("given", {"at": NOW_MS + at, "n": offset}, key="k", timestamp=NOW_MS)
        if is_bounded:
            h.end()
        else:
            h.run()
        good = [offset for offset, at in enumerate(times) if at < DAY_MS]
        assert good == [value["n"] for _, value in h.output("copies")]
        if then == "dead_letter":
            assert [offset for offset in range(len(times)) if offset not in good] == [letter.offset for letter in h.dead_letters()]
        if is_bounded:
            assert [len(good)] == [value["value"] for _, value in h.output("counts")]
