"""What the page says of jobs in trouble (tests/page/scenes.py), in a real browser."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.page.browser import Watched, chromium
from tests.page.scenes import SCENES, Scene
from tests.page.staged import OPERATE, Served

pytestmark = pytest.mark.prove


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as running:
        yield running


@contextmanager
def seen(browser: Any, scene: str, width: int = 1280, theme: str = "light") -> Iterator[tuple[Scene, Watched, Any]]:
    """A scene, and its page; nothing may go wrong in that."""
    stage = SCENES[scene]().play()
    with Served(stage) as served:
        watched = Watched(browser, width, theme)
        page = watched.open(served.url, OPERATE)
        yield stage, watched, page
        assert [] == watched.wrong
        watched.context.close()
    stage.close()


# The words of a hint's command that are on two lines, whatever the hint's width.
BROKEN = """() => {
  const hint = document.querySelector('.hint'), found = new Set(), folded = new Set();
  for (let wide = 150; wide <= 340; wide += 4) {
    hint.style.width = `${wide}px`;
    folded.add(wide);
    for (const word of hint.querySelectorAll('code .word')) if (word.getClientRects().length > 1) found.add(word.textContent);
  }
  return { widths: folded.size, words: [...found] };
}"""


def row(page: Any, container: int) -> str:
    """A container's row of the table that is shown."""
    return re.sub(r"\s+", " ", page.locator(f"tr:has(td:first-child:text-is('{container}'))").first.inner_text())


def test_a_hint_does_not_begin_the_jobs_state_anew(browser: Any) -> None:
    with seen(browser, "stuck") as (stage, _, page):
        page.wait_for_selector(".hint:has-text('has not returned')")
        began, hint = ([e["at_ms"] for e in stage.roster.events.since() if e["kind"] == "job" and e["what"] == what][-1] for what in ("state", "hint"))
        assert hint - began > 120_000, "so long that the two are told in different words"
        page.wait_for_selector("header .bar:has-text('for 4 min')")


def test_a_container_that_is_stuck_looks_so_in_every_view(browser: Any) -> None:
    with seen(browser, "stuck") as (_, watched, page):
        page.wait_for_selector("text=where the time goes, of 2 of 3 containers")
        assert re.search(r"RUNNING in one call for \d", row(page, 1))
        assert 1 == page.locator(".state.warn").count()
        watched.go("Tasks")
        box = page.locator(".box:has-text('container 1')")
        assert re.search(r"RUNNING\s+in one call for \d", box.inner_text())
        page.wait_for_function("() => document.querySelectorAll('tbody .state.warn').length === 4", timeout=5000)
        assert re.search(r"its container is in one call for \d", page.locator("tr:has-text('Partition 7')").inner_text())
        watched.go("Inside")
        assert "code of the job on record visits[7]@99121 has run for" in row(page, 1)
        assert "1" == page.locator("label:has-text('container') select").input_value(), "the one that hangs is the one to be asked"
        assert page.inner_text("code:has-text('debug stack')").endswith("--container 1")


def test_a_container_that_restores_says_so_and_its_job_is_not_running(browser: Any) -> None:
    with seen(browser, "restoring") as (_, watched, page):
        page.wait_for_selector(".hint:has-text('4 of 12 tasks are not running: they are restoring their state, about')")
        page.wait_for_selector(".hint div:not(.soft):has-text('The job goes on by itself.')")
        assert "RUNNING restores 4 tasks started again once" in row(page, 1)
        watched.go("Tasks")
        assert "restores 4 tasks" in page.locator(".box:has-text('container 1')").inner_text()
        watched.go("Inside")
        assert "restores 4 tasks" in row(page, 1)
        assert "longer than a second" not in row(page, 1)
        watched.go("Runs")
        page.wait_for_selector("tr:has-text('ann@here') .state:text-is('DEGRADED')")
        assert 0 == page.locator("tbody .state:text-is('RUNNING')").count()


def test_commands_that_only_look_are_told_without_settings_and_are_broken_between_words_only(browser: Any) -> None:
    with seen(browser, "stuck", 360) as (_, _, page):
        page.wait_for_selector(".hint code:has-text('samzapy debug stack conf/visits.yaml --container 1')")
        broken = page.evaluate(BROKEN)
        assert 40 < broken["widths"]
        assert [] == broken["words"]



def test_a_container_that_died_often_says_so_and_what_to_set(browser: Any) -> None:
    with seen(browser, "failing") as (_, _, page):
        page.wait_for_selector(".hint:has-text('Container 2 is probably out of memory: it died 4 times')")
        page.wait_for_selector(".hint:has-text('containers.memory')")
        page.wait_for_selector(".hint:has-text('are set aside as dead letters')")
        assert "started again 4 times" in row(page, 2)


# Where the lanes' span of time begins and ends on the screen, where that of the chart does, and where the death is marked.
PLACES = """() => {
  const lines = Array.from(document.querySelectorAll('.lanes .axis')).map((line) => line.getBoundingClientRect().left);
  const plot = document.querySelector('.plot .u-over').getBoundingClientRect();
  const mark = document.querySelector('.lanes text.died').getBoundingClientRect();
  return { lanes: [Math.min(...lines), Math.max(...lines)], plot: [plot.left, plot.right], died: (mark.left + mark.right) / 2, high: (plot.top + plot.bottom) / 2 };
}"""


def seconds_of_day(text: str) -> int:
    hours, minutes, seconds = map(int, text.split(":"))
    return 3600 * hours + 60 * minutes + seconds


@pytest.mark.parametrize("width", [360, 1280])
def test_a_moment_stands_at_the_same_place_in_lanes_and_chart(browser: Any, width: int) -> None:
    with seen(browser, "restoring", width) as (_, watched, page):
        watched.go("Timeline")
        page.wait_for_selector(".lanes text.died")
        page.wait_for_selector(".axes:has-text('records behind'):has-text('records/s in')")
        assert re.match(r"[\d,]{4,} records behind", page.inner_text(".axes .warn")), "the newest, before anybody points at the chart"
        found = page.evaluate(PLACES)
        assert found["lanes"] == pytest.approx(found["plot"], abs=1.5)
        page.mouse.move(found["died"], found["high"])
        page.wait_for_function("() => document.querySelector('.axes .soft').textContent !== ''")
        page.wait_for_timeout(300)
        died = page.inner_text(".events li:has-text('died:') time")
        away = abs(seconds_of_day(page.inner_text(".axes .soft")) - seconds_of_day(died))
        assert min(away, 86_400 - away) <= 12, "what is above the mark is of that time"


def test_what_chooses_events_stands_at_the_events(browser: Any) -> None:
    with seen(browser, "restoring") as (_, watched, page):
        watched.go("Timeline")
        assert 5 == page.locator("section:has(h2:text-is('Events')) input[type=checkbox]").count() == page.locator("main input[type=checkbox]").count()


# What is cut off or too small to read: tables wider than their place, and text of the picture.
UNSEEN = """() => {
  const found = [];
  for (const place of document.querySelectorAll('.scroll:has(table.cards)'))
    if (place.scrollWidth > place.clientWidth + 1) found.push(place.innerText.slice(0, 60));
  for (const text of document.querySelectorAll('.graph:not(.program) svg text')) {
    const svg = text.ownerSVGElement, scale = svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
    const size = parseFloat(getComputedStyle(text).fontSize) * scale;
    if (size < 11 || text.getBoundingClientRect().right > innerWidth) found.push(`${text.textContent}: ${size.toFixed(1)} px`);
  }
  return found;
}"""


@pytest.mark.parametrize(("scene", "views"), [("restoring", ("Overview", "Tasks", "Inside")), ("failing", ("Overview", "Errors", "Topics", "Runs"))])
def test_on_a_telephone_nothing_is_cut_off_and_no_text_of_the_picture_is_tiny(browser: Any, scene: str, views: tuple[str, ...]) -> None:
    with seen(browser, scene, 360) as (stage, watched, page):
        stage.ran("run-0", 30)
        stage.feed(b'{"page": "/home", "user": "ada"}')
        page.wait_for_selector(".graph text.title")
        for view in views:
            watched.go(view)
            page.wait_for_selector("main table td", timeout=5000)
            assert [] == page.evaluate(UNSEEN), view
        cell = page.locator("td:has(.state)").first
        assert {"restoring": "state", "failing": "outcome"}[scene] == cell.get_attribute("data-name"), "each cell has its column's name"


@pytest.mark.parametrize("width", [700, 1280])
def test_text_of_the_picture_is_as_large_where_it_is_scrolled(browser: Any, width: int) -> None:
    with seen(browser, "well", width) as (_, _, page):
        page.wait_for_selector(".graph text.title")
        assert [] == [told for told in page.evaluate(UNSEEN) if float(told.rsplit(": ", 1)[1].split()[0]) < 11]


def test_a_button_that_does_nothing_now_looks_so(browser: Any) -> None:
    with seen(browser, "failing") as (_, watched, page):
        watched.go("Errors")
        button = page.locator("button:has-text('Send back')")

        def looks() -> tuple[str, str]:
            return tuple(button.evaluate("(button) => [getComputedStyle(button).borderTopStyle, getComputedStyle(button).cursor]"))

        button.wait_for()
        assert ("dashed", "default") == looks()
        page.locator("input[aria-label^='choose']").first.check()
        page.wait_for_selector("button:has-text('Send back 1')")
        assert ("solid", "pointer") == looks()


# Of colours of the theme against the card: the ratio of their luminances.
CONTRAST = """(pairs) => {
  const pen = Object.assign(document.createElement('canvas'), { width: 1, height: 1 }).getContext('2d', { willReadFrequently: true });
  const light = (colour) => {
    pen.clearRect(0, 0, 1, 1);
    pen.fillStyle = colour;
    pen.fillRect(0, 0, 1, 1);
    const [r, g, b] = Array.from(pen.getImageData(0, 0, 1, 1).data, (v) => (v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const style = getComputedStyle(document.documentElement), card = light(style.getPropertyValue('--card'));
  const ratio = (colour) => { const one = light(colour); return (Math.max(one, card) + 0.05) / (Math.min(one, card) + 0.05); };
  const input = document.querySelector('input[type=search]'), loop = document.querySelector('.loop');
  return {
    placeholder: ratio(getComputedStyle(input, '::placeholder').color), restoring: ratio(style.getPropertyValue('--restoring')),
    border: ratio(getComputedStyle(input).borderTopColor), track: ratio(getComputedStyle(loop).outlineColor),
  };
}"""


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_what_is_to_be_seen_stands_out_from_the_card(browser: Any, theme: str) -> None:
    with seen(browser, "well", 1280, theme) as (_, watched, page):
        watched.go("Tasks")
        page.wait_for_selector(".loop")
        found = page.evaluate(CONTRAST)
        least = {"placeholder": 4.5, "restoring": 4.5, "border": 3.0, "track": 3.0}  # of text, and of what is no text
        assert least == {name: min(least[name], ratio) for name, ratio in found.items()}
