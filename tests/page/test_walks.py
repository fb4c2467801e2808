"""Walks over the page in a real browser: what is seen, what is asked for, and what the page does when the driver goes away."""

from __future__ import annotations

import json
import os
import re
import threading
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from samzapy.coordinator.http import Listener
from samzapy.web.app import web_app
from samzapy.web.cluster import Cluster
from samzapy.web.stopped_job import Still
from tests.page.browser import OVERLAPS, Watched, chromium
from tests.page.staged import ABOUT, OPERATE, TOKEN, VIEW, J, Served, Stage, Traced, contents
from tests.page.still import JOBS, still_facts

pytestmark = pytest.mark.prove
VIEWS = ("Overview", "Tasks", "Timeline", "Errors", "Inside", "Topics", "Config", "Runs")
EVIL = "<img src=x onerror=window.hit=1>"
ERROR = {
    "n": 1, "kind": "error", "type": "ValueError", "place": "counts.py:31", "first_ms": 1, "last_ms": 2, "tasks": ["Partition 0"], "count": 412,
    "text": f"ValueError: bad price {EVIL}", "record": "visits[3]@88120", "action": "set aside", "stack": f"counts.py:31 in process: {EVIL}",
}  # fmt: skip


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as running:
        yield running


@pytest.fixture
def served() -> Iterator[Served]:
    """A job whose containers report every half second, with an error that quotes a record."""
    stage, ended = Stage(24, 3, looks_inside=True), threading.Event()
    stage.beat(news=[ERROR])

    def beats() -> None:
        while not ended.wait(0.5):
            stage.beat(0.5, lag=40)

    thread = threading.Thread(target=beats, daemon=True)
    with Served(stage) as served:
        thread.start()
        yield served
        ended.set()
        thread.join()
        stage.close()


def test_the_newcomer_sees_the_job_and_the_token_stays_where_it_belongs(browser: Any, served: Served) -> None:
    watched = Watched(browser)
    page = watched.open(served.url, OPERATE)

    page.wait_for_selector("text=RUNNING")
    for words in ("visits", "visit-counts", "VisitCounter", "counts"):
        page.wait_for_selector(f".graph text.title:has-text('{words}')")
    page.wait_for_function("() => /^[1-9]/.test(document.querySelector('.tile .big').textContent)")
    page.reload()
    page.wait_for_selector(".tiles")
    assert "token" not in page.url
    assert "" == page.evaluate("document.cookie")
    assert OPERATE not in " ".join(watched.asked), "neither in an address nor in a referrer"
    assert [] == watched.wrong
    assert {served.url} == {re.match(r"\w+ (http://[^/]+)", line)[1] for line in watched.asked}  # type: ignore[index]


def test_without_a_token_it_says_what_to_type(browser: Any, served: Served) -> None:
    page = Watched(browser).page
    page.goto(served.url)
    page.wait_for_selector("text=samzapy ui JOB.yaml")
    page.goto(f"{served.url}/#token=wrong")
    page.reload()
    page.wait_for_selector("text=samzapy ui JOB.yaml")


def test_a_page_on_another_port_of_the_host_neither_reads_nor_changes(browser: Any, served: Served) -> None:
    stage = Stage()
    stage.beat()
    ask = """async ([url, method, token]) => {
      const headers = token ? { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' } : {};
      try { return String((await fetch(url, { method, headers, body: method === 'POST' ? '{"containers": 9}' : undefined })).status); }
      catch (error) { return error.name; }
    }"""
    with Served(stage) as other:
        # A page as it may be: without the content security policy of our own.
        context = browser.new_context(bypass_csp=True)
        page = context.new_page()
        page.goto(other.url)
        for method, path, token in (("GET", "/v1/jobs/visits/1", ""), ("GET", "/v1/jobs/visits/1/config", VIEW), ("POST", "/v1/jobs/visits/1/scale", OPERATE)):
            assert "TypeError" == page.evaluate(ask, [served.url + path, method, token]), (method, path)
        assert [] == served.stage.changes.asked
        assert "200" == page.evaluate(ask, [f"{other.url}/v1/jobs/visits/1/config", "GET", VIEW]), "its own it may read"
        context.close()
    stage.close()


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280, 2560])
def test_no_text_lies_on_another_in_any_view(browser: Any, served: Served, width: int, theme: str) -> None:
    watched = Watched(browser, width, theme)
    page = watched.open(served.url, OPERATE)
    for view in VIEWS:
        watched.go(view)
        page.wait_for_timeout(1500)
        assert [] == page.evaluate(OVERLAPS), (view, width, theme)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, (view, width, theme)
    assert [] == watched.wrong


def test_what_others_wrote_is_shown_as_text(browser: Any, served: Served) -> None:
    watched = Watched(browser)
    page = watched.open(served.url, VIEW)
    watched.go("Errors")
    page.click("button:has-text('stack')")
    page.wait_for_selector(f"pre:has-text('{EVIL}')")

    page.wait_for_selector("td:has-text('1,236')")
    assert page.evaluate("window.hit === undefined")


def test_an_action_says_first_what_it_will_do_and_is_done_by_keyboard(browser: Any, served: Served) -> None:
    watched = Watched(browser)
    page = watched.open(served.url, OPERATE)
    page.locator("header select").focus()
    page.select_option("header select", "scale")
    page.locator("dialog input").fill("5")
    page.wait_for_selector("dialog .effect:has-text('3 → 5 containers for 24 tasks')")
    assert [] == served.stage.changes.asked
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_selector("dialog", state="detached")

    assert [5] == served.stage.changes.asked
    page.wait_for_selector("text=asked for: scale")
    assert [] == watched.wrong


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280, 2560])
def test_inside_shows_the_stack_a_profile_and_a_trace(browser: Any, served: Served, width: int, theme: str) -> None:
    served.stage.traced = Traced(f'"{EVIL}"')
    watched = Watched(browser, width, theme)
    page = watched.open(served.url, OPERATE)
    watched.go("Inside")
    page.click("tbody tr:first-child button")
    page.wait_for_selector("details[open] pre.stack")
    _look_well(page, width)

    page.locator("section:has-text('Ask a container') label:has-text('for') select").select_option("5")
    page.click("button:text-is('Profile')")
    page.wait_for_selector("svg.flame g", timeout=15_000)
    assert page.locator("svg.flame g").count() > 3
    _look_well(page, width)
    page.locator("svg.flame g[tabindex]").nth(1).focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("button:text-is('show all')")

    page.fill("label:has-text('task') input", "Partition 3")
    page.click("button:text-is('Trace')")
    page.wait_for_selector("text=raised ValueError: no such page")
    page.wait_for_selector("td.effects:has-text('41')")
    assert page.evaluate("window.hit === undefined")
    _look_well(page, width)
    assert [] == watched.wrong


def _look_well(page: Any, width: int) -> None:
    folder = os.environ.get("SAMZAPY_TEST_SCREENSHOTS")
    if folder:
        heading = page.locator("main h2").last.inner_text().lower()
        theme = page.evaluate("document.documentElement.dataset.theme")
        page.screenshot(path=f"{folder}/inside-{heading}-{theme}-{width}.png", full_page=True)
    assert [] == page.evaluate(OVERLAPS)
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280, 2560])
def test_of_a_job_that_does_not_run_it_says_what_was_and_what_to_type(browser: Any, width: int, theme: str) -> None:
    facts = Still(ABOUT, still_facts)
    app = web_app(facts, facts, contents(Stage()), TOKEN, cluster=Cluster(lambda: JOBS))
    listener = Listener(app, "127.0.0.1", 0)
    listener.start()
    try:
        watched = Watched(browser, width, theme)
        page = watched.open(listener.url, OPERATE)
        for words in ("its last run failed", "no such page", f"samzapy run {ABOUT['called']}", "1,234", "88,120", "container 1 failed", "pages-1"):
            page.wait_for_selector(f"main :text({words!r}) >> visible=true", timeout=5000)
        page.wait_for_selector("text=FAILED")
        page.wait_for_selector(f"button[aria-label='copy: samzapy run {ABOUT['called']}']")
        assert 0 == page.locator("header select").count(), "there is nobody who could do anything"
        other = page.locator("tr:has-text('orders-1')").inner_text()
        assert "type samzapy ui and the name of its job file" in other
        assert ABOUT["called"] not in other, "that is this job's file"
        _look_well(page, width)
        for view in [view for view in VIEWS[1:] if view != "Inside"]:
            watched.go(view)
            page.wait_for_timeout(500)
            assert [] == page.evaluate(OVERLAPS), view
            assert page.evaluate("document.documentElement.scrollWidth") <= width, view
            assert "JOB.yaml" not in page.inner_text("main"), view
        assert [] == watched.wrong
    finally:
        listener.stop()


def test_who_may_only_look_is_offered_nothing_else(browser: Any, served: Served) -> None:
    page = Watched(browser).open(served.url, VIEW)
    page.wait_for_selector("text=view only")
    assert 0 == page.locator("header select").count()


def test_rows_are_sorted_and_found_by_the_driver(browser: Any, served: Served) -> None:
    watched = Watched(browser)
    page = watched.open(served.url, VIEW)
    watched.go("Tasks")
    page.fill("input[type=search]", "partition 7")
    page.wait_for_selector("text=1 of 24 tasks")
    page.wait_for_function("() => document.querySelectorAll('tbody tr').length === 1")
    assert "find=partition+7" in page.url
    page.reload()
    page.wait_for_selector("text=1 of 24 tasks")


def test_six_tabs_are_live_at_once(browser: Any, served: Served) -> None:
    watched = [Watched(browser) for _ in range(6)]
    pages = [one.open(served.url, VIEW) for one in watched]
    before = [page.inner_text(".tile .soft") for page in pages]
    for page, was in zip(pages, before, strict=True):
        page.wait_for_function("(was) => document.querySelector('.tile .soft').textContent !== was", arg=was, timeout=5000)
    assert [] == [wrong for one in watched for wrong in one.wrong]


def test_when_the_driver_is_gone_it_says_so_and_comes_back_by_itself(browser: Any) -> None:
    stage = Stage()
    stage.beat()
    with Served(stage) as served:
        page = Watched(browser).open(served.url, VIEW)
        port = int(served.url.rpartition(":")[2])
    page.wait_for_selector("text=stale since", timeout=8000)
    assert page.title().startswith("stale since")
    with Served(stage, port):
        page.wait_for_selector("text=stale since", state="detached", timeout=10_000)


def test_a_dead_letter_is_found_shown_sent_back_once_and_another_discarded(browser: Any, served: Served) -> None:
    for n in range(60):
        served.stage.set_aside(n, ("ValueError: bad price", "KeyError: 'user'", f"Odd: {EVIL}")[n % 3], b'{"price": "1,50", "n": %d}' % n, EVIL.encode())
    watched = Watched(browser)
    page = watched.open(served.url, OPERATE)
    watched.go("Errors")
    page.wait_for_selector("h2:has-text('60 of 60 wait')")
    assert ["20", "20", "20"] == re.findall(r"^\S+ (\d+)", "\n".join(page.locator(".group").all_inner_texts()), re.MULTILINE)
    page.click(".group:has-text('KeyError')")
    page.wait_for_selector("text=20 found")
    page.fill("input[type=search]", '"n": 16}')
    page.wait_for_selector("text=1 found")
    page.click("button:has-text('show')")
    for words in (EVIL, '{"price": "1,50", "n": 16}', "trace: \\xff1", "counts.py:31 in process", "visits[0]@16"):
        page.wait_for_selector(f"dl.facts :text({json.dumps(words)})")

    page.focus("input[aria-label='choose visits[0]@16']")
    page.keyboard.press("Space")
    page.click("button:has-text('Send back 1')")
    page.wait_for_selector(".effect:has-text('1 record is sent back to visits')")
    assert not [e for e in served.stage.roster.events.since() if e["kind"] == "people"], "it was only asked what that would do"
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Enter")
    page.wait_for_selector("text=Done: 1 record is sent back")
    page.wait_for_selector("h2:has-text('59 of 60 wait')")
    page.wait_for_selector("text=0 found")
    page.check("text=also those sent back or discarded")
    page.wait_for_selector("td:has-text('sent back')")
    assert page.locator("input[aria-label='choose visits[0]@16']").is_disabled()

    page.fill("input[type=search]", '"n": 19}')
    page.check("input[aria-label='choose visits[0]@19']")
    page.click("button:has-text('Discard 1')")
    page.wait_for_selector(".effect:has-text('1 dead letter is marked')")
    page.click("dialog button.main")
    page.wait_for_selector("h2:has-text('58 of 60 wait')")
    assert page.evaluate("window.hit === undefined")
    assert [] == watched.wrong
    watched.go("Timeline")
    page.wait_for_selector(".events li:has-text('asked for: dead letters: replay; 1 record is sent back')")


def test_who_may_only_look_is_offered_no_dead_letters_to_send(browser: Any, served: Served) -> None:
    served.stage.set_aside(1, "ValueError: bad price")
    watched = Watched(browser)
    page = watched.open(served.url, VIEW)
    watched.go("Errors")
    page.wait_for_selector("h2:has-text('1 of 1 wait')")
    assert 0 == page.locator("text=Send back").count() == page.locator("input[aria-label^=choose]").count()


def test_a_burst_with_a_filter_shows_exactly_those_that_match_and_pausing_ends_the_questions(browser: Any, served: Served) -> None:
    served.stage.feed(b'"before"')
    groups = dict(served.stage.cluster.group_offsets)
    watched = Watched(browser)
    page = watched.open(served.url, VIEW)
    watched.go("Topics")
    page.wait_for_selector("td:has-text('before')")
    page.fill("input[type=search]", "needle")
    page.wait_for_selector("text=No record that was read contains this text")
    for n in range(1000):
        served.stage.feed(b'{"n": %d, "is": "%s"}' % (n, b"needle" if n % 100 == 7 else EVIL.encode()), partition=n % 24)
    page.wait_for_function("() => document.querySelectorAll('tbody tr').length === 10", timeout=15000)
    shown = page.locator("tbody tr").all_inner_texts()
    assert {str(n) for n in range(7, 1000, 100)} == {found[1] for text in shown if (found := re.search(r'"n": (\d+)', text))}
    assert groups == served.stage.cluster.group_offsets

    page.click("button:has-text('pause')")
    page.wait_for_timeout(1000)
    asked = sum("/records" in line for line in watched.asked)
    page.wait_for_timeout(2500)
    assert asked == sum("/records" in line for line in watched.asked)
    page.fill("input[type=search]", "")
    page.wait_for_selector("td:has-text('<img src=x')")
    assert page.evaluate("window.hit === undefined")
    assert [] == watched.wrong


def test_the_last_runs_are_told_and_what_the_configuration_changed(browser: Any, served: Served) -> None:
    served.stage.ran("old", 48)
    event = {"n": 1, "at_ms": 1, "kind": "container", "what": "died", "text": f"container 0 died: {EVIL}"}
    served.stage.ran("failed", 3, outcome="FAILED", ended_by="an error of container 0", error="SZ210: it broke", events=[event])
    watched = Watched(browser)
    page = watched.open(served.url, VIEW)
    watched.go("Runs")
    page.wait_for_selector("tr:has-text('FAILED'):has-text('an error of container 0'):has-text('SZ210: it broke')")
    assert 3 == page.locator("tbody > tr").count()
    page.click("tr:has-text('FAILED') button:has-text('show')")
    page.wait_for_selector(f".events li:has-text({json.dumps(EVIL)})")
    watched.go("Config")
    page.select_option("label:has-text('compare with') select", "file")
    page.wait_for_selector("tr:has-text('commit.interval'):has-text('500ms'):has-text('1s'):has-text('visits.yaml:7')")
    assert 1 == page.locator("tbody tr").count(), "exactly what differs"
    page.select_option("label:has-text('compare with') select", "failed")
    page.wait_for_selector("tr:has-text('visits.yaml:9')")
    assert page.evaluate("window.hit === undefined")
    assert [] == watched.wrong


def test_the_configuration_is_this_runs_and_what_was_chosen_last(browser: Any, served: Served) -> None:
    served.stage.ran("run-0", 3)
    watched, held = Watched(browser), list[Any]()
    page = watched.open(served.url, VIEW)
    page.route("**/runs/*against=file*", lambda route: held.append(route))  # its answer comes when the other is there
    watched.go("Config")
    page.select_option("label:has-text('compare with') select", "file")
    page.wait_for_timeout(200)
    page.select_option("label:has-text('compare with') select", "run-0")
    page.wait_for_selector("td:has-text('visits.yaml:9')")
    with page.expect_response(lambda response: "against=file" in response.url):
        held[0].continue_()
    page.wait_for_timeout(500)
    assert 0 == page.locator("text=the job file now, which takes effect").count()
    assert page.locator("td:has-text('visits.yaml:9')").count()

    page.select_option("label:has-text('compare with') select", "")
    with page.expect_request(lambda request: request.url.endswith("/config")):
        served.stage.roster.run_id = "run-2"
    assert [] == watched.wrong


def test_a_job_is_paused_and_resumed_from_the_page(browser: Any, served: Served) -> None:
    watched = Watched(browser)
    page = watched.open(served.url, OPERATE)
    assert 0 == page.locator("header option[value=resume]").count()
    page.select_option("header select", "pause")
    page.wait_for_selector("dialog .effect:has-text('24 tasks in 3 containers commit what they have done')")
    assert not served.stage.roster.orders.is_paused
    page.click("dialog button.main")
    page.wait_for_selector(".hint.act:has-text('paused by operate (127.0.0.1)')")
    assert served.stage.roster.orders.is_paused
    page.select_option("header select", "resume")
    page.click("dialog button.main")
    page.wait_for_selector("text=paused by", state="detached")
    assert not served.stage.roster.orders.is_paused
    assert [] == watched.wrong


def test_with_all_other_hosts_out_of_reach_no_view_misses_anything(browser: Any, served: Served) -> None:
    served.stage.set_aside(1, "ValueError: bad price")
    served.stage.feed(b'"a record"')
    watched, refused = Watched(browser), list[str]()

    def only_this(route: Any) -> None:
        if route.request.url.startswith(f"{served.url}/"):
            route.continue_()
        else:
            refused.append(route.request.url)
            route.abort()

    failed: list[str] = []
    watched.page.on("requestfailed", lambda request: failed.append(request.url))
    watched.context.route("**/*", only_this)
    page = watched.open(served.url, OPERATE)
    for view in VIEWS:
        watched.go(view)
        page.wait_for_function("() => document.querySelector('main').innerText.length > 40 && !/(^|\\n)…(\\n|$)/.test(document.querySelector('main').innerText)")
        missing = page.evaluate("Array.from(document.images).filter((image) => !image.naturalWidth).map((image) => image.src)")
        assert [] == missing, view
        assert page.evaluate("Array.from(document.styleSheets).every((sheet) => sheet.cssRules.length > 0)")
    assert ([], []) == (refused, [url for url in failed if "/stream" not in url])
    assert [] == watched.wrong
    # What is asked elsewhere would be seen: the policy of the page, or else this test, stops it.
    page.evaluate("fetch('http://127.0.0.2:9/').catch(() => 0)")
    assert watched.wrong or refused


def test_a_longer_span_asks_for_the_coarser_curve(browser: Any, served: Served) -> None:
    watched = Watched(browser)
    page = watched.open(served.url, VIEW)
    watched.go("Timeline")
    with page.expect_response(lambda response: "/series?step=30" in response.url) as asked:
        page.select_option("label:has-text('last') select", "360")
    assert asked.value.ok
    page.select_option("label:has-text('last') select", "10")
    assert [] == watched.wrong


@pytest.mark.parametrize("minutes", [-10, 10])
def test_a_browser_whose_clock_is_wrong_has_curves_and_times_as_the_driver(browser: Any, served: Served, minutes: int) -> None:
    watched = Watched(browser)
    watched.context.add_init_script(f"const real = Date.now; Date.now = () => real() + {minutes * 60_000};")
    page = watched.open(served.url, VIEW)
    page.wait_for_function("() => /^for \\d+(\\.\\d)? (ms|s)$/.test(document.querySelector('.bar .soft')?.textContent || '')")
    watched.go("Timeline")
    page.wait_for_selector(".lanes rect")
    was = page.inner_text(".axes span.soft")
    page.wait_for_function("(was) => document.querySelector('.axes span.soft').textContent !== was", arg=was)


SEEN_OR_NOT = "(is) => { Object.defineProperty(document, 'visibilityState', { configurable: true, get: () => is }); }"


@pytest.mark.parametrize("view", ["Topics", "Timeline", "Runs"])  # those that ask for more than the stream
def test_a_hidden_tab_asks_for_nothing_after_half_a_minute_and_goes_on_when_it_is_seen(browser: Any, served: Served, view: str) -> None:
    """The page's clock is put forward, so nobody waits, and a slow machine takes as many ticks as a fast one."""
    watched, ended = Watched(browser), list[str]()
    page = watched.page
    page.on("requestfailed", lambda request: ended.append(request.url))
    page.on("requestfinished", lambda request: ended.append(request.url))
    page.clock.install()
    watched.open(served.url, VIEW)
    watched.go(view)
    page.wait_for_selector("main h2")

    def opened() -> int:
        return sum("/stream?" in line for line in watched.asked)

    def closed() -> int:
        return sum("/stream?" in url for url in ended)

    page.evaluate(SEEN_OR_NOT, "hidden")
    page.clock.run_for(25_000)
    assert opened() > closed(), "a look at another tab does not end it"
    page.clock.run_for(6_000)
    page.wait_for_timeout(500)
    assert opened() == closed(), "after 31 s it is closed"
    before = list(watched.asked)
    page.clock.run_for(60_000)
    assert before == watched.asked

    page.evaluate(SEEN_OR_NOT, "visible")
    with page.expect_request(lambda request: "/stream?" in request.url):
        page.clock.run_for(3_000)
    watched.go("Overview")
    was = page.inner_text(".tile .soft")
    page.wait_for_function("(was) => document.querySelector('.tile .soft').textContent !== was", arg=was)
    assert [] == watched.wrong


ACTIONS = ["scale", "restart", "pause", "resume", "commit", "stop"]


@pytest.mark.parametrize("action", ACTIONS)
def test_the_dialog_says_what_a_dry_run_does_and_the_event_who_asked(browser: Any, served: Served, action: str) -> None:
    def asked(body: dict[str, Any] | None, path: str, method: str) -> Any:
        words = {"Authorization": f"Bearer {OPERATE}", "Content-Type": "application/json"}
        request = urllib.request.Request(served.url + path, json.dumps(body).encode() if body is not None else None, words, method=method)
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)

    if action == "resume":
        asked({}, f"{J}/pause", "POST")
    watched, sent = Watched(browser), list[tuple[str, str, dict[str, Any]]]()
    page = watched.page
    page.on("request", lambda r: sent.append((r.method, r.url.removeprefix(served.url), r.post_data_json)) if r.method in ("POST", "PUT") else None)
    watched.open(served.url, OPERATE)
    page.wait_for_selector(f"header option[value={action}]", state="attached")
    page.select_option("header select", action)
    page.wait_for_selector("dialog button.main:not([disabled])")
    if action == "scale":
        sent.clear()
        page.locator("dialog input").fill("5")
        page.wait_for_selector("dialog .effect:has-text('3 → 5 containers')")
    told = page.inner_text("dialog .effect")
    method, path, body = sent[-1]
    assert [True] == [body["dry_run"] for _, _, body in sent], "nothing else was asked for"
    events = asked(None, f"{J}/events", "GET")["items"]
    assert f"{asked(body, path, method)['effect']}." == told, "word for word"
    was = max(event["n"] for event in events)

    page.click("dialog button.main")
    page.wait_for_selector("dialog", state="detached")
    assert (method, path, {name: value for name, value in body.items() if name != "dry_run"}) == sent[-1]
    events = [event for event in asked(None, f"{J}/events", "GET")["items"] if event["n"] > was and event["kind"] == "people"]
    assert [action] == [event["what"] for event in events]
    assert events[0]["text"].startswith("operate (127.0.0.1) asked for")
    assert told.removesuffix(".") in events[0]["text"]
    assert [] == watched.wrong


@pytest.mark.parametrize("action", ACTIONS)
def test_every_action_is_done_by_keyboard_alone(browser: Any, served: Served, action: str) -> None:
    if action == "resume":
        served.stage.roster.orders.pause("somebody")
    watched = Watched(browser)
    page = watched.open(served.url, OPERATE)
    page.wait_for_selector(f"header option[value={action}]", state="attached")

    def tab_to(selector: str) -> None:
        for _ in range(30):
            page.keyboard.press("Tab")
            if page.evaluate("(wanted) => document.activeElement.matches(wanted)", selector):
                return
        raise AssertionError(f"by the Tab key there is no way to {selector}")

    tab_to("header select")
    page.keyboard.press("Space")
    for _ in range(page.evaluate("(action) => Array.from(document.querySelectorAll('header option')).findIndex((one) => one.value === action)", action)):
        page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_selector("dialog button.main:not([disabled])")
    tab_to("dialog button.main")
    page.keyboard.press("Enter")
    page.wait_for_selector("dialog", state="detached")
    events = [event for event in served.stage.roster.events.since() if event["kind"] == "people"]
    assert [action] == [event["what"] for event in events]
    assert [] == watched.wrong
