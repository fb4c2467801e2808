"""Wikipedia's recent changes, as in samza-hello-samza: feed → raw → edits → statistics, three tasks, three jobs.

    wikipedia-feed ──WikipediaFeed──▶ wikipedia-raw ──WikipediaParser──▶ wikipedia-edits ──WikipediaStats──▶ wikipedia-stats

No line is lost on the way: whatever the feed holds becomes a raw record; the parser counts what is no edit; what the statistics add up
lies in stores, never in `self`, so the sums over all windows equal those of a direct pass over the file, whatever crashed in between.
Edits are keyed by title, so a title is always the same task's and unique titles add up over tasks.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from samzapy import IncomingMessageEnvelope, KeyValueStore, StreamTask, TaskContext, TaskCoordinator
from samzapy.api.context import MessageCollector

RAW = "wikipedia-raw"
EDITS = "wikipedia-edits"
STATS = "wikipedia-stats"

# -- lines and edits: plain functions ----------------------------------------------------------------------------------------------

LONGEST_LINE = 8192  # IRC lines have at most 512 bytes; what is far longer is no edit, and not worth a regular expression's time
FLAGS = {"M": "minor", "N": "new", "B": "bot", "!": "unpatrolled"}
NAMESPACES = {"Special:": "special", "Talk:": "talk"}
PAGE = re.compile(r"\[\[([^\]]+)\]\]")
EDIT = re.compile(
    r"\[\[(?P<title>.+?)\]\] (?P<flags>\S*) (?P<url>https?://\S+) \* (?P<user>.+?) \* \((?P<bytes>[+-]?[0-9]{1,12})\) ?(?P<summary>.*)",
    re.DOTALL,
)


def raw_record(line: bytes) -> dict[str, Any]:
    """A line of the feed as a record of wikipedia-raw. A line that is not the JSON it should be is kept whole as `raw`."""
    try:
        found = orjson.loads(line)
    except orjson.JSONDecodeError:
        found = None
    if not isinstance(found, dict) or not isinstance(found.get("raw"), str):
        return {"raw": line.decode("utf-8", "replace")}
    record = {name: found[name] for name in ("channel", "raw", "source") if isinstance(found.get(name), str)}
    if type(found.get("time")) is int:
        record["time"] = found["time"]
    return record


def page_of(raw: str) -> str | None:
    """The page that a line is about: the key that keeps the edits of a page in order."""
    found = PAGE.search(raw)
    return found[1] if found else None


def parse_edit(record: object) -> dict[str, Any] | None:
    """The edit that a record of wikipedia-raw tells of, or None: logs (new users, moves, blocks, …) and broken lines are no edits.

    An edit's line is `[[Title]] FLAGS http://… * User * (+diff) summary`.
    """
    if not isinstance(record, dict) or not isinstance(record.get("raw"), str) or len(record["raw"]) > LONGEST_LINE:
        return None
    found = EDIT.fullmatch(record["raw"])
    if found is None:
        return None
    title = found["title"]
    flags = [name for sign, name in FLAGS.items() if sign in found["flags"]]
    flags += [name for start, name in NAMESPACES.items() if title.startswith(start)]
    return {
        "title": title,
        "user": found["user"],
        "diff_bytes": int(found["bytes"]),
        "diff_url": found["url"],
        "summary": found["summary"],
        "flags": flags,
        **{name: record[name] for name in ("channel", "source", "time") if name in record},
    }


# -- the tasks ---------------------------------------------------------------------------------------------------------------------


class WikipediaFeed(StreamTask[bytes | None, bytes | None]):
    """Lines of the feed → records of wikipedia-raw. Only blank lines are passed by."""

    def process(
        self, envelope: IncomingMessageEnvelope[bytes | None, bytes | None], collector: MessageCollector, coordinator: TaskCoordinator
    ) -> None:
        line = (envelope.message or b"").strip()
        if line:
            record = raw_record(line)
            collector.send(RAW, record, key=page_of(record["raw"]))


class WikipediaParser(StreamTask[bytes | None, bytes | None]):
    """Raw records → edits.

    The metric `unparsable` is for watching (it starts at 0 with each process); the store `lines` holds the exact numbers of `edits` and
    `unparsable` lines since the first.
    """

    def init(self, context: TaskContext) -> None:
        self.lines: KeyValueStore[str, int] = context.get_store("lines")
        self.unparsable = context.metrics.counter("unparsable")

    def process(
        self, envelope: IncomingMessageEnvelope[bytes | None, bytes | None], collector: MessageCollector, coordinator: TaskCoordinator
    ) -> None:
        edit = self._parsed(envelope.message)
        if edit is None:
            self.unparsable.inc()
        else:
            collector.send(EDITS, edit, key=edit["title"])
        name = "unparsable" if edit is None else "edits"
        self.lines.update_with(name, lambda n: n + 1, 0)

    def _parsed(self, message: bytes | None) -> dict[str, Any] | None:
        try:
            return parse_edit(orjson.loads(message or b""))
        except orjson.JSONDecodeError:
            return None


class WikipediaStats(StreamTask[str, dict[str, Any]]):
    """Edits → a record of statistics per task and window in which there were any, and all-time counts.

    Stores: `current` holds the open window (so a crash or a restart loses nothing of it): `edits`, `bytes_added`, `new_titles`,
    `flag:<name>`, `title:<title>`. `window()` and `end_of_stream()` send it, add it to `totals` and empty it, all in one commit.
    """

    def init(self, context: TaskContext) -> None:
        self.task_name = context.task_name
        self.current: KeyValueStore[str, int] = context.get_store("current")
        self.totals: KeyValueStore[str, int] = context.get_store("totals")
        self.titles: KeyValueStore[str, int] = context.get_store("titles")

    def process(
        self, envelope: IncomingMessageEnvelope[str, dict[str, Any]], collector: MessageCollector, coordinator: TaskCoordinator
    ) -> None:
        edit = envelope.message
        title = edit["title"]
        times = self.titles.get(title, 0)
        self.titles.put(title, times + 1)
        self._add("edits", 1)
        self._add("bytes_added", edit["diff_bytes"])
        self._add("new_titles", 0 if times else 1)
        for flag in edit["flags"]:
            self._add(f"flag:{flag}", 1)
        self._add(f"title:{title}", 1)

    def window(self, collector: MessageCollector, coordinator: TaskCoordinator) -> None:
        self._close_window(collector)

    def end_of_stream(self, collector: MessageCollector, coordinator: TaskCoordinator) -> None:
        self._close_window(collector)

    def _add(self, name: str, amount: int) -> None:
        self.current[name] = self.current.get(name, 0) + amount

    def _close_window(self, collector: MessageCollector) -> None:
        entries = dict(self.current.all())
        if not entries:
            return
        self.current.delete_all(entries)
        titles = sum(1 for name in entries if name.startswith("title:"))
        sums = {name: amount for name, amount in entries.items() if not name.startswith("title:")}
        for name, amount in {**sums, "windows": 1}.items():
            self.totals[name] = self.totals.get(name, 0) + amount
        totals = dict(self.totals.all())
        message = {
            "task": self.task_name,
            "window": totals["windows"],
            "edits": sums["edits"],
            "bytes_added": sums["bytes_added"],
            "unique_titles": titles,
            "flags": _flags(sums),
            "all_time": {
                "edits": totals["edits"],
                "bytes_added": totals["bytes_added"],
                "unique_titles": totals["new_titles"],
                "flags": _flags(totals),
            },
        }
        collector.send(STATS, message, key=self.task_name)


def _flags(counts: Mapping[str, int]) -> dict[str, int]:
    return {name.removeprefix("flag:"): count for name, count in counts.items() if name.startswith("flag:")}


# -- the direct way, to compare with -----------------------------------------------------------------------------------------------


@dataclass
class Totals:
    """What does not depend on where a window begins."""

    edits: int = 0
    bytes_added: int = 0
    unique_titles: int = 0
    flags: Counter[str] = field(default_factory=Counter)


def direct_pass(lines: Iterable[bytes]) -> tuple[Totals, int]:
    """The totals of a feed by a plain loop, and how many lines are no edits."""
    totals, titles, unparsable = Totals(), set(), 0
    for line in lines:
        if not line.strip():
            continue
        edit = parse_edit(raw_record(line.strip()))
        if edit is None:
            unparsable += 1
            continue
        totals.edits += 1
        totals.bytes_added += edit["diff_bytes"]
        totals.flags.update(edit["flags"])
        titles.add(edit["title"])
    totals.unique_titles = len(titles)
    return totals, unparsable


def sum_of_windows(records: Iterable[Mapping[str, Any]]) -> Totals:
    """What the records of wikipedia-stats add up to.

    Unique titles of windows do not add up: those of all time are taken, of each task the newest.
    """
    totals, titles = Totals(), dict[str, int]()
    for record in records:
        totals.edits += record["edits"]
        totals.bytes_added += record["bytes_added"]
        totals.flags.update(record["flags"])
        titles[record["task"]] = max(titles.get(record["task"], 0), record["all_time"]["unique_titles"])
    totals.unique_titles = sum(titles.values())
    return totals
