"""The Wikipedia jobs against a direct pass over the file: the sums over all windows are the same, whatever happened in between."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobs.wikipedia import EDITS, LONGEST_LINE, RAW, STATS, Totals, direct_pass, parse_edit, raw_record, sum_of_windows
from jobs.wikipedia_feed import VARIABLE, feed_file, generated_lines, lines, records
from samzapy.serde.registry import serde_named
from samzapy.testing import Harness

CONFIG = Path(__file__).parents[2] / "config"
TASKS = 2
EVENTS = ("run", "step", "window", "crash", "crash without state", "restart", "end")
# samza-hello-samza's own expression, as it stands there: the judge of ours
HELLO_SAMZA = re.compile(r"\[\[(.*)\]\]\s(.*)\s(.*)\s\*\s(.*)\s\*\s\(\+?(.\d*)\)\s(.*)")


def line_of(raw: str) -> bytes:
    return orjson.dumps({"raw": raw, "time": 5, "source": "rc-pmtpa", "channel": "#en.wikipedia"})


EDIT_LINES = [
    line_of("[[Amber]] MB http://e.org/?diff=1 * Otto * (-12) typo"),
    line_of("[[Talk:Amber]] !N http://e.org/?diff=2 * .0.1.2 * (+300) "),
    line_of("[[Amber]]  http://e.org/?diff=3 * Norma * (+0) /* a */ b"),
]
LOG_LINE = line_of("[[Special:Log/newusers]] create  * Norma *  new user account")

# -- plain functions -----------------------------------------------------------------------------------------------------------------


def test_an_edit_is_taken_apart() -> None:
    assert {
        "title": "Talk:Amber", "user": ".0.1.2", "diff_bytes": 300, "diff_url": "http://e.org/?diff=2", "summary": "",
        "flags": ["new", "unpatrolled", "talk"], "channel": "#en.wikipedia", "source": "rc-pmtpa", "time": 5,
    } == parse_edit(raw_record(EDIT_LINES[1]))  # fmt: skip


@pytest.mark.parametrize(
    "record",
    [
        None, 7, [], {}, {"raw": None}, {"raw": ""}, {"raw": "[[A]]"},
        {"raw": "[[A]] M http://e.org * u * (12) x" + "y" * LONGEST_LINE},
        {"raw": "[[A]] M http://e.org * u * (+) x"},
        {"raw": "[[A]] M http://e.org * u * (+99999999999999999999) x"},
        {"raw": "[[Special:Log/newusers]] create  * Norma *  new user account"},
    ],
)  # fmt: skip
def test_what_is_no_edit_is_none(record: object) -> None:
    assert parse_edit(record) is None


def test_every_line_of_the_feed_is_judged_as_hello_samza_judges_it() -> None:
    judged = Counter[bool]()
    for line in lines():
        record = raw_record(line)
        theirs, ours = HELLO_SAMZA.fullmatch(record["raw"]), parse_edit(record)
        if theirs is None:
            assert ours is None, record
        else:
            expected = (theirs[1], theirs[4], int(theirs[5]), theirs[3], theirs[6])
            assert ours is not None, record
            assert expected == (ours["title"], ours["user"], ours["diff_bytes"], ours["diff_url"], ours["summary"])
        judged[ours is not None] += 1
    assert judged[True] > 800, judged
    assert judged[False] > 20, judged


def test_a_broken_line_is_kept_whole() -> None:
    assert {"raw": '{"raw": "[[A]'} == raw_record(b'{"raw": "[[A]')
    assert {"raw": '{"raw": 7}'} == raw_record(b'{"raw": 7}')
    assert {"raw": "\N{REPLACEMENT CHARACTER}"} == raw_record(b"\xff")
    assert {"raw": "x"} == raw_record(b'{"raw": "x", "time": "soon", "source": 1, "channel": null, "more": 1e300}')


NAMES = st.sampled_from(["raw", "time", "source", "channel"]) | st.text(max_size=3)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
DOCUMENTS = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(NAMES, inner), max_leaves=6)


@given(st.binary(max_size=80) | DOCUMENTS.map(lambda document: json.dumps(document).encode()))
def test_any_line_becomes_a_record_that_json_takes(line: bytes) -> None:
    record = raw_record(line)
    assert record == orjson.loads(serde_named("json", []).encode(record))
    assert parse_edit(record) is None or isinstance(record["raw"], str)


def test_the_file_is_found_by_its_variable_and_generated_lines_stand_in(tmp_path: Path) -> None:
    file = tmp_path / "feed.jsonl"
    file.write_bytes(b"one\r\ntwo\n")
    assert [b"one", b"two"] == list(lines({VARIABLE: str(file)}))
    assert [(None, b"one"), (None, b"two")] == list(records({VARIABLE: str(file)}))
    with pytest.raises(FileNotFoundError, match=VARIABLE):
        feed_file({VARIABLE: str(tmp_path / "other")})
    assert list(generated_lines(300, seed=1)) == list(generated_lines(300, seed=1))
    totals, unparsable = direct_pass(generated_lines(300, seed=1))
    assert totals.edits > 200
    assert unparsable > 5
    assert {"minor", "new", "bot", "unpatrolled", "special", "talk"} == set(totals.flags)


# -- the tasks, one by one -------------------------------------------------------------------------------------------------------------


def test_the_feed_passes_every_line_but_blank_ones() -> None:
    with job("feed") as h:
        for value in (EDIT_LINES[0], b"", b"  ", b"broken", None):
            h.send("wikipedia-feed", value=value)
        h.run()
        assert {None: {"raw": "broken"}, "Amber": orjson.loads(EDIT_LINES[0])} == dict(h.output("wikipedia-raw"))
        assert 2 == len(h.output("wikipedia-raw"))


def test_the_parser_counts_what_is_no_edit_and_goes_on() -> None:
    with job("parser") as h:
        for value in (EDIT_LINES[0], LOG_LINE, b"no json", b"[]", b"\xff", None, EDIT_LINES[2]):
            h.send("wikipedia-raw", value=value)
        h.run()
        assert ["Amber", "Amber"] == [key for key, _ in h.output("wikipedia-edits")]
        assert 5 == h.metric("unparsable", task=0)
        assert {"edits": 2, "unparsable": 5} == h.store("lines", task=0)


def test_a_window_sums_up_and_the_next_begins_anew() -> None:
    with job("stats") as h:
        send_edits(h, EDIT_LINES)
        h.run()
        assert [] == windows(h)
        h.advance(10)
        h.run()
        send_edits(h, EDIT_LINES[:1])
        h.run()
        h.advance(10)
        h.run()
        h.advance(10)
        h.run()
        first = {"edits": 3, "bytes_added": 288, "unique_titles": 2, "flags": {"bot": 1, "minor": 1, "new": 1, "talk": 1, "unpatrolled": 1}}
        second = {"edits": 1, "bytes_added": -12, "unique_titles": 1, "flags": {"bot": 1, "minor": 1}}
        ever = {"edits": 4, "bytes_added": 276, "unique_titles": 2, "flags": {"bot": 2, "minor": 2, "new": 1, "talk": 1, "unpatrolled": 1}}
        assert [
            {"task": "Partition 0", "window": 1, **first, "all_time": {name: first[name] for name in ever}},
            {"task": "Partition 0", "window": 2, **second, "all_time": ever},
        ] == windows(h), "and no record of a window without edits"


@pytest.mark.parametrize("what", ["crash", "crash without state", "restart"])
def test_an_open_window_survives(what: str) -> None:
    with job("stats") as h:
        send_edits(h, EDIT_LINES[:2])
        h.run()
        happen(h, what)
        send_edits(h, EDIT_LINES[2:])
        h.run()
        h.advance(10)
        h.run()
        assert [(3, 288)] == [(w["edits"], w["bytes_added"]) for w in windows(h)]


# -- all three -----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("between", ["nothing", "crash", "crash without state", "restart", "end"])
def test_the_sums_over_all_windows_are_those_of_a_direct_pass(between: str) -> None:
    assert_pipeline(list(lines()), [between, "window", between])


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10_000), st.lists(st.sampled_from(EVENTS), max_size=5))
def test_whatever_happens_between_parts_of_the_feed(seed: int, story: list[str]) -> None:
    assert_pipeline(list(generated_lines(120, seed)), story)


def assert_pipeline(feed: Sequence[bytes], story: Sequence[str]) -> None:
    """The feed in len(story) + 1 parts through the three jobs, with what the story says after each part, in every job."""
    expected, unparsable = direct_pass(feed)
    parts = len(story) + 1
    with job("feed", TASKS) as first, job("parser", TASKS) as second, job("stats", TASKS) as third:
        raw_seen, edits_seen = set[tuple[int, int]](), set[tuple[int, int]]()
        for part in range(parts):
            for number, line in enumerate(feed[part * len(feed) // parts : (part + 1) * len(feed) // parts]):
                first.send("wikipedia-feed", value=line, partition=number % TASKS)
            first.run()
            pipe(first, RAW, second, raw_seen)
            second.run()
            pipe(second, EDITS, third, edits_seen)
            third.container.step(0.0)
            if part < len(story):
                for h in (first, second, third):
                    happen(h, story[part])
        third.end()
        assert expected == sum_of_windows(windows(third))
        assert all_time(windows(third)) == expected
        assert unparsable == sum(second.store("lines", task).get("unparsable", 0) for task in range(TASKS))
        assert {} == third.store("current", 0) | third.store("current", 1)


def job(name: str, tasks: int = 1) -> Harness:
    return Harness(CONFIG / f"wikipedia-{name}.yaml", tasks=tasks)


def send_edits(h: Harness, of_lines: Sequence[bytes]) -> None:
    for line in of_lines:
        edit = parse_edit(raw_record(line))
        assert edit is not None
        h.send("wikipedia-edits", value=edit, key=edit["title"])


def windows(h: Harness) -> list[dict[str, Any]]:
    return [value for _, value in h.output(STATS)]


def all_time(of_windows: Sequence[dict[str, Any]]) -> Totals:
    """The newest all-time counts of each task, added up."""
    newest = {w["task"]: w["all_time"] for w in sorted(of_windows, key=lambda w: w["window"])}
    total = Totals()
    for counts in newest.values():
        total.edits += counts["edits"]
        total.bytes_added += counts["bytes_added"]
        total.unique_titles += counts["unique_titles"]
        total.flags.update(counts["flags"])
    return total


def pipe(source: Harness, topic: str, target: Harness, seen: set[tuple[int, int]]) -> None:
    """What was committed to the topic in one job, and is not in `seen`, as the input of the next; a key stays in its partition."""
    for message in source.records(topic):
        place = (message.partition(), message.offset())
        if place not in seen:
            seen.add(place)
            target.send_raw(topic, message.value(), message.key(), message.partition() % TASKS)


def happen(h: Harness, what: str) -> None:
    if what == "run":
        h.run()
    elif what == "step":
        h.container.step(0.0)
    elif what == "window":
        h.advance(10)
    elif what == "restart":
        h.restart()
    elif what == "end":
        h.end()
        h.crash()
    elif what.startswith("crash"):
        h.crash(keep_state=what == "crash")
