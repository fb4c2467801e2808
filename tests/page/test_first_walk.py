"""The one walk over the page that every run of the tests takes; the others are among the long proofs (test_walks.py)."""

from __future__ import annotations

import re

from tests.page.browser import Watched, chromium
from tests.page.staged import OPERATE, Served, Stage


def test_the_newcomer_sees_the_job_looks_inside_and_the_token_stays_where_it_belongs() -> None:
    stage = Stage(looks_inside=True)
    stage.beat(lag=40)
    with chromium() as browser, Served(stage) as served:
        watched = Watched(browser)
        page = watched.open(served.url, OPERATE)
        for words in ("visits", "visit-counts", "VisitCounter", "counts"):
            page.wait_for_selector(f".graph text.title:has-text('{words}')")
        assert "token" not in page.url
        assert "" == page.evaluate("document.cookie")
        watched.go("Inside")
        page.click("tbody tr:first-child button")
        page.wait_for_selector("details[open] pre.stack")
        assert OPERATE not in " ".join(watched.asked), "neither in an address nor in a referrer"
        assert {served.url} == {re.match(r"\w+ (http://[^/]+)", line)[1] for line in watched.asked}  # type: ignore[index]
        assert [] == watched.wrong
    stage.close()
