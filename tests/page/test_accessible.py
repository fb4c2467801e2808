"""Every view of jobs well and in trouble: nothing serious that axe finds, no text on another, all within the window, all by keyboard."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.page.browser import OVERLAPS, Watched, chromium
from tests.page.scenes import SCENES, VIEWS
from tests.page.staged import OPERATE, Served

pytestmark = pytest.mark.prove


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as running:
        yield running


def serious(page: Any) -> list[str]:
    """What axe says of what is shown now."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="pip install axe-playwright-python")
    found = axe.Axe().run(page, options={"resultTypes": ["violations"]}).response["violations"]
    return [f"{v['id']}: {v['nodes'][0]['target']} {v['nodes'][0]['failureSummary']}" for v in found if v["impact"] in ("serious", "critical")]


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("scene", SCENES)
def test_axe_finds_nothing_serious_in_any_view(browser: Any, scene: str, theme: str) -> None:
    stage = SCENES[scene]().play()
    stage.ran("run-0", 30)
    stage.feed(*(b'{"page": "/home", "n": %d}' % n for n in range(10)))
    try:
        with Served(stage) as served:
            for width in (1280, 360):
                watched = Watched(browser, width, theme)
                page = watched.open(served.url, OPERATE)
                for view in VIEWS:
                    watched.go(view)
                    page.wait_for_timeout(700)
                    stage.step(1.0)
                    page.wait_for_timeout(1100)
                    assert [] == serious(page), (view, width)
                    assert [] == page.evaluate(OVERLAPS), (view, width)
                    assert page.evaluate("document.documentElement.scrollWidth") <= width, (view, width)
                assert [] == watched.wrong
                watched.context.close()
    finally:
        stage.close()
