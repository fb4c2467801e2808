"""What the page's own code keeps and says, run outside of a browser."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from samzapy.web.files import PAGE
from samzapy.web.frames import Recent, View, make_frame
from tests.page.node import run
from tests.page.staged import Stage, live

DRIVER = """
let status = 200, opened = 0, every_ms = 1000, skew = 0;
globalThis.fetch = async (path, { signal }) => {
  if (signal.aborted) throw new DOMException("aborted", "AbortError");
  if (status === 0) throw new TypeError("no route");
  opened++;
  if (status !== 200) return new Response(JSON.stringify({ detail: "32 streams are open", remedy: "Close a tab." }), { status });
  let timer;
  const body = new ReadableStream({
    start(c) {
      const send = () => c.enqueue(new TextEncoder().encode(`event: frame\\ndata: ${JSON.stringify({ job: {}, now_ms: Date.now() + skew })}\\n\\n`));
      if (every_ms === 1000) send();
      timer = setInterval(send, every_ms);
      signal.addEventListener("abort", () => { clearInterval(timer); c.error(new DOMException("aborted", "AbortError")); });
    },
    cancel() { clearInterval(timer); },
  });
  return new Response(body, { status: 200 });
};
const { live } = await import("./page/lib/api.js");
let frames = 0, told = [], refused = null;
const open = () => live({ find: "" }, (state, news, why) => ((refused = why || refused), frames++), (stale) => stale && told.push(stale));
async function type(stream, text, ms) {
  for (let i = 1; i <= text.length; i++) { stream.look({ find: text.slice(0, i) }); await go(ms); }
}
"""


def keeping(tmp_path: Path, told: list[dict[str, Any]]) -> Any:
    """What the page keeps after these frames: each with the answers to what it asks then."""
    return run(
        tmp_path,
        f"""
const {{ kept }} = await import("./page/lib/kept.js");
let asked = [], shown = {{}}, answers = {{}};
const get = async (path) => {{ asked.push(path); if (!(path.split("?")[0] in answers)) throw new Error("gone"); return answers[path.split("?")[0]]; }};
const keeps = kept(get, (events, series) => (shown = {{ events, series }}));
for (const frame of {json.dumps(told)}) {{
  answers = frame.answers;
  keeps.take(frame.state, frame.news);
  await settled();
}}
result = {{ asked, events: shown.events.map((e) => e.n), series: shown.series.map((p) => p.in), times: shown.series.map((p) => p.at_ms) }};
""",
    )


def frame(at_s: float, news: list[int], run_id: str = "r", events: list[int] | None = None, series: list[tuple[float, int]] | None = None) -> dict[str, Any]:
    answers: dict[str, Any] = {}
    if events is not None:
        answers["/events"] = {"items": [event(n) for n in events], "last": max(events, default=0)}
    if series is not None:
        answers["/series"] = {"items": [{"at_ms": int(1000 * at), "in": n} for at, n in series]}
    rates = {"in": 1, "out": 1, "lag": 0, "loop": {}}
    return {"state": {"job": {"run_id": run_id, "rates": rates}, "now_ms": int(1000 * at_s)}, "news": [event(n) for n in news], "answers": answers}


def event(n: int, kind: str = "container") -> dict[str, Any]:
    return {"n": n, "kind": kind, "text": f"event {n}", "at_ms": n}


def test_news_that_a_frame_has_no_place_for_are_asked_for(tmp_path: Path) -> None:
    first = frame(1, [1, 2], events=[1, 2], series=[])
    kept = keeping(tmp_path, [first, frame(2, [3]), frame(3, [50, 51], events=list(range(4, 52)))])
    assert list(range(1, 52)) == kept["events"]
    assert ["/events?since=0", "/series", "/events?since=3"] == kept["asked"]


def test_what_was_not_answered_is_asked_again_and_what_is_gone_only_once(tmp_path: Path) -> None:
    frames = [frame(1, [1], series=[]), frame(2, [], events=[1]), frame(3, [8, 9]), frame(4, [10], events=[8, 9, 10]), frame(5, [11])]
    kept = keeping(tmp_path, frames)
    assert [1, 8, 9, 10, 11] == kept["events"]
    assert ["/events?since=0", "/series", "/events?since=0", "/events?since=1", "/events?since=1"] == kept["asked"]


def test_a_new_run_begins_a_new_timeline(tmp_path: Path) -> None:
    kept = keeping(tmp_path, [frame(1, [1, 2, 3], events=[1, 2, 3], series=[]), frame(2, [30], "s", events=list(range(1, 31)))])
    assert list(range(1, 31)) == kept["events"]
    assert "/events?since=0" == kept["asked"][-1]


def test_curves_have_no_hole_where_the_tab_was_hidden(tmp_path: Path) -> None:
    frames = [frame(100, [], events=[], series=[(96, 5), (98, 5)]), frame(102, []), frame(103, []), frame(400, [], series=[(2.0 * n, 7) for n in range(51, 200)])]
    kept = keeping(tmp_path, frames)
    assert [96, 98, 100, *range(102, 401, 2)] == [at / 1000 for at in kept["times"]]
    assert kept["times"] == sorted(kept["times"])
    assert "/series" == kept["asked"][-1]


def test_times_are_of_the_drivers_clock_however_far_off_the_browsers_is(tmp_path: Path) -> None:
    found = run(
        tmp_path,
        """
const { now, told, at_driver } = await import("./page/lib/now.js");
const before = now() - Date.now();
told(Date.now() + 600000);
time += 1000;
result = [before, now() - time, at_driver(5)];
""",
    )
    assert [0, 600_000, 600_005] == found


def test_no_file_looks_at_the_browsers_clock_for_a_time_that_is_shown() -> None:
    looks = {path.name for path in PAGE.rglob("*.js") if "vendor" not in path.parts and re.search(r"Date\.now\(\)|new Date\(\)", path.read_text())}
    assert {"now.js", "api.js"} == looks, "api.js only measures how long something takes"


def test_who_types_is_not_told_that_the_driver_does_not_answer(tmp_path: Path) -> None:
    found = run(
        tmp_path,
        DRIVER
        + """
const stream = open();
await go(2500);
opened = frames = 0;
await type(stream, "Partition 1234", 330);
const slow = [told.length, opened, frames];
opened = 0;
await type(stream, "Partition 5678", 100);
await go(300);
const fast = opened;
every_ms = 2000; // a driver that takes long for its first frame
await type(stream, "Partition 9012", 400);
result = { slow, fast, told: told.length };
""",
    )
    assert {"slow": [0, 14, 14], "fast": 1, "told": 0} == {**found, "slow": [*found["slow"][:2], min(14, found["slow"][2])]}


def test_what_refuses_a_stream_is_told_in_its_own_words_and_a_driver_that_is_gone_is_told(tmp_path: Path) -> None:
    found = run(
        tmp_path,
        DRIVER
        + """
status = 429;
const stream = open();
await go(3000);
const first = told.map((t) => t.why);
status = 200;
skew = 600000;
await go(2000);
told = [];
status = 0;
stream.look({ find: "x" });
await go(1000);
const gone = told.map((t) => [t.why, t.since - time > 590000]);
told = [];
status = 200;
await go(2000);
result = { first: [...new Set(first)], gone, after: told.length, refused };
""",
    )
    assert ["32 streams are open. Close a tab"] == found["first"]
    assert found["gone"]
    assert all(one == ["", True] for one in found["gone"])
    assert (0, None) == (found["after"], found["refused"])


def test_a_slow_answer_to_an_earlier_question_is_not_taken(tmp_path: Path) -> None:
    found = run(
        tmp_path,
        """
globalThis.fetch = (path) => new Promise((later) => setTimeout(() => later(new Response(JSON.stringify(path))), path.includes("slow") ? 900 : 100));
const { once } = await import("./page/lib/api.js");
const taken = [];
const end = once("/slow", (found) => taken.push(found), () => {});
end();
once("/quick", (found) => taken.push(found), () => {});
await go(2000);
result = taken;
""",
    )
    assert ["/quick"] == found


def test_an_open_page_has_every_death_however_many_stores_are_restored(tmp_path: Path) -> None:
    """The driver's own events, as they are told: 300 restores in each frame, and the answers to what the page asks then."""
    stage = Stage(tasks=40, containers=10)
    facts, view, frames = live(stage), View(), []
    for second in range(10):
        stage.roster.events.add("container", "died", f"container {second} died", container=second, state="FAILED")
        for n in range(300):
            stage.roster.events.add("restore", "restored", f"Partition {n}: store 'counts' restored", container=second)
        told = make_frame(Recent(facts), view)
        answers = {"/events": {"items": facts.events(0), "last": stage.roster.events.last}, "/series": {"items": []}}
        frames.append({"state": {"job": told["job"], "now_ms": 1000 * second}, "news": told["news"], "answers": answers})
    deaths = [e["n"] for e in facts.events(0) if e["what"] == "died"]
    assert 10 == len(deaths)
    assert any(e["kind"] == "job" and e.get("state") == "RUNNING" for e in facts.events(0))
    assert set(deaths) <= set(keeping(tmp_path, frames)["events"])


def test_an_operator_to_which_nothing_comes_any_more_has_no_rate_soon(tmp_path: Path) -> None:
    """A frame that says nothing of the operators says that they counted nothing."""
    found = run(
        tmp_path,
        """
const { noted, paces } = await import("./page/lib/program.js");
const { patched } = await import("./page/lib/frames.js");
let history = [], state = {}, rates = [];
for (let s = 0; s < 30; s++) {
  state = patched(state, s < 10 ? { now_ms: 1000 * s, operators: { map: [500 * s, 500 * s, -1, -1] } } : { now_ms: 1000 * s });
  for (let drawn = 0; drawn < 3; drawn++) history = noted(history, state.now_ms, state.operators);
  rates.push(paces(history).map?.[0]);
}
result = [rates[9], rates[29], history.length];
""",
    )
    assert [500, 0, 8] == found
