"""How soon the page says that a container died, or that the driver is gone: from the SIGKILL until the words are in the page, in a real browser, on a
real job."""

from __future__ import annotations

import os
import re
import secrets
import signal
import time
from pathlib import Path

import pytest

from tests.figures import Tell
from tests.integration.job import Job
from tests.page.browser import Watched, chromium

pytestmark = [pytest.mark.kafka, pytest.mark.prove]
WITHIN_S, KILLS = 3.0, 4
# When the header first said each state, by the clock of this machine.
WATCH = """() => {
  window.said = {};
  const look = () => {
    const word = document.querySelector('header [aria-live]')?.innerText.trim();
    if (word && !(word in window.said)) window.said[word] = Date.now() / 1000;
  };
  new MutationObserver(look).observe(document.body, { subtree: true, childList: true, characterData: true });
}"""


def test_three_seconds_after_the_drivers_death_nothing_is_shown_as_if_it_were_now(kafka: str, tmp_path: Path, tell: Tell) -> None:
    took = []
    with chromium() as browser:
        for n in range(3):
            (tmp_path / str(n)).mkdir()
            job = Job(kafka, tmp_path / str(n), f"death-{secrets.token_hex(4)}")
            with job.running("--local") as run:
                run.until_running()
                url, _, token = job.of("ui", "--no-open", "--view").stdout.strip().partition("/#token=")
                page = Watched(browser).open(url, token)
                page.wait_for_selector("header .live:text-is('live')")
                page.evaluate(WATCH.replace("header [aria-live]", ".stale"))
                page.wait_for_timeout(300 * n)  # at any time between two frames
                killed = time.time()
                run.process.send_signal(signal.SIGKILL)
                page.wait_for_function("() => Object.keys(window.said).some((words) => words.startsWith('stale since'))", timeout=30_000)
                took.append(page.evaluate("Math.min(...Object.values(window.said))") - killed)
                assert page.title().startswith("stale since")
                assert "" == page.inner_text("header .live")
    tell(f"from the driver's SIGKILL until the page said stale: {', '.join(f'{s:.2f}' for s in took)} s")
    assert max(took) <= WITHIN_S


def test_three_seconds_after_its_death_the_page_says_so(kafka: str, tmp_path: Path, tell: Tell) -> None:
    job = Job(kafka, tmp_path, f"death-{secrets.token_hex(4)}")
    job.feed([f"one two {n}" for n in range(2000)])
    took = []
    with job.running("--local") as run, chromium() as browser:
        run.until(lambda s: s["state"] == "RUNNING" and all(t["processed"] for t in s["tasks"]))
        url, _, token = job.of("ui", "--no-open", "--view").stdout.strip().partition("/#token=")
        watched = Watched(browser)
        page = watched.open(url, token)
        for _ in range(KILLS):
            page.wait_for_selector("header [aria-live]:has-text('RUNNING')")
            page.evaluate(WATCH)
            victim = run.until_running()["containers"][1]["pid"]
            killed = time.time()
            os.kill(victim, signal.SIGKILL)
            page.wait_for_function("() => 'DEGRADED' in window.said", timeout=30_000)
            took.append(page.evaluate("window.said.DEGRADED") - killed)
            run.until(lambda s, victim=victim: s["state"] == "RUNNING" and s["containers"][1]["pid"] not in (None, victim))  # type: ignore[misc]
        page.wait_for_selector("header [aria-live]:has-text('RUNNING')")
        watched.go("Timeline")
        page.wait_for_selector(".events li:has-text('restored from')")
        shown = page.locator(".events li").all_inner_texts()
        status = run.until_running()
        for words in (r"Container 1 died: .*killed by SIGKILL", "The job is DEGRADED"):
            assert KILLS == sum(bool(re.search(words, text)) for text in shown), (words, shown)
        for task in (task for task in status["tasks"] if task["container"] == 1):
            restore = task["stores"]["counts"]["restore"]
            words = (f"{task['name']}:", f"{restore['records']:,} records", restore["source"], restore["reason"])
            assert any(all(word in text for word in words) for text in shown), (words, shown)
        assert [] == watched.wrong
    tell(f"from SIGKILL until the page said DEGRADED: {', '.join(f'{s:.2f}' for s in took)} s")
    assert max(took) <= WITHIN_S
