"""A browser for the walks over the page: chromium by playwright. Where it is missing they are skipped, with the lines that install it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

INSTALL = "pip install playwright; apt-get install chromium (or SAMZAPY_TEST_BROWSER=/path/to/chromium)"
NAMES = ("chromium", "chromium-browser", "google-chrome")
OVERLAPS = """() => {
  const boxes = [];
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const node = walk.currentNode, holder = node.parentElement;
    if (!node.textContent.trim() || !holder.checkVisibility() || holder.closest('.hidden, title, option, dialog, .u-legend, .lanes, noscript')) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    for (const r of range.getClientRects()) if (r.width > 1 && r.height > 1) boxes.push([node, r]);
  }
  const found = [];
  const header = document.querySelector('header.top');
  for (let i = 0; i < boxes.length; i++) for (let k = i + 1; k < boxes.length; k++) {
    const [a, x] = boxes[i], [b, y] = boxes[k];
    if (a === b || header.contains(a) !== header.contains(b)) continue;
    const wide = Math.min(x.right, y.right) - Math.max(x.left, y.left), high = Math.min(x.bottom, y.bottom) - Math.max(x.top, y.top);
    if (wide > 2 && high > 4) found.push(`${a.textContent.trim()} / ${b.textContent.trim()}`);
  }
  return found;
}"""


def browser_path() -> str | None:
    """The browser to use."""
    return os.environ.get("SAMZAPY_TEST_BROWSER") or next(filter(None, map(shutil.which, NAMES)), None)


@contextmanager
def chromium() -> Iterator[Any]:
    """A running browser; the test is skipped where there is none."""
    path = browser_path()
    api = pytest.importorskip("playwright.sync_api", reason=INSTALL)
    if path is None:
        pytest.skip(f"no chromium: {INSTALL}")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()


class Watched:
    """A page of which all is noted that it asks for, and all that goes wrong in it."""

    def __init__(self, browser: Any, width: int = 1280, theme: str = "light") -> None:
        self.context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=theme)
        self.page = self.context.new_page()
        self.asked: list[str] = []
        self.wrong: list[str] = []
        self.page.on("request", lambda request: self.asked.append(f"{request.method} {request.url} {request.headers.get('referer', '')}"))
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.page.on("console", lambda message: self.wrong.append(message.text) if message.type == "error" else None)

    def open(self, url: str, token: str) -> Any:
        self.page.goto(f"{url}/#token={token}")
        self.page.wait_for_selector(".tiles")
        return self.page

    def go(self, view: str) -> None:
        """To a view, by the link that people use."""
        self.page.click(f"nav a:has-text('{view}')")
        self.page.wait_for_selector(f"nav a[aria-current]:has-text('{view}')")
