"""Live frames: once a second to each tab that looks, and when the job's state changes, what changed of what it shows. Bounded by that, not by the job.

A stream is an answer of server-sent events, read with `fetch`, because the token goes in a header. The first frame is whole; later ones have only
the rows and containers that changed. It ends by itself after STREAM_S, or when the driver stops, and the page asks again.
"""

from __future__ import annotations

import asyncio
import re
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from itertools import groupby
from typing import Any

import orjson
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from samzapy.clock import SystemClock
from samzapy.coordinator.http import BAD, REQUEST_S, TOO_MANY, is_closing
from samzapy.model.states import TaskState
from samzapy.web.access import Refused
from samzapy.web.facts import Facts, Rows, filtered, ordered
from samzapy.web.routes import SORTS

CLOCK = SystemClock()
EVERY_S, LOOK_S, FRESH_S = 1.0, 0.25, 0.5
STREAM_S = REQUEST_S - 10.0
MAX_STREAMS = 32
MAX_ROWS, MAX_CONTAINERS, MAX_CELLS = 50, 50, 10_000
MAX_NEWS, MAX_TEXT, MAX_EVENT = 20, 200, 500
ROW = ("name", "state", "container", "lag", "behind_s", "rate", "busy", "us", "processed", "skipped", "dead_letters", "reason")
CONTAINER = ("id", "state", "host", "preferred_host", "pid", "restarts", "reason", "memory_bytes", "loop", "badge", "now")
COUNTED, MAX_OPERATORS = ("in", "out", "dropped", "late"), 60
BEHIND_S = 10.0  # a task with records to read is always behind by a little
LETTERS = {
    TaskState.RUNNING: "r", TaskState.RESTORING: "s", TaskState.BOOTSTRAPPING: "b", TaskState.STOPPED: "e", TaskState.WAITING: "w",
}  # fmt: skip


class Streams:
    """The streams that are open. Used on the listener's loop only."""

    def __init__(self, facts: Facts, now: Callable[[], float] = time.monotonic, now_ms: Callable[[], int] = CLOCK.now_ms) -> None:
        self._facts = Recent(facts)
        self._open, self._now, self._now_ms = 0, now, now_ms

    def open(self, request: Request) -> Response | Refused:
        """The answer to a request for frames. `?sort=`, `?find=`, `?offset=` choose the rows."""
        if self._open >= MAX_STREAMS:
            why = f"{MAX_STREAMS} streams are open for pages of this job, and no more are allowed"
            return Refused(TOO_MANY, why, "Close the page in another tab.", (("Retry-After", "10"),))
        query = request.query_params
        sort, find = query.get("sort", "-lag"), query.get("find", "")[:200]
        offset = query.get("offset") or "0"
        if not re.fullmatch(r"\d{1,15}", offset, re.ASCII):
            return Refused(BAD, f"request not understood: offset={offset[:50]!r}: not a number", "Give how many rows to pass over.")
        view = View(sort if sort.removeprefix("-") in SORTS else "-lag", find, min(int(offset), 1_000_000))
        return StreamingResponse(self._frames(request, view), media_type="text/event-stream")

    async def _frames(self, request: Request, view: View) -> AsyncIterator[bytes]:
        self._open += 1
        try:
            sent: dict[str, Any] = {}
            ends_at = self._now() + STREAM_S  # by the clock: frames take longer than a second each on a busy machine, and the listener cuts at REQUEST_S
            while self._now() < ends_at:
                frame = await run_in_threadpool(lambda: make_frame(self._facts, view))
                told = {**changed(frame, sent), "now_ms": self._now_ms()}  # times are of the driver's clock: the page's may differ
                yield b"event: frame\ndata: " + orjson.dumps(told) + b"\n\n"
                await self._wait(request, frame["job"]["state"])
                if is_closing(request) or await request.is_disconnected():
                    break
            yield b"event: again\ndata: {}\n\n"
        finally:
            self._open -= 1

    async def _wait(self, request: Request, state: str) -> None:
        """Until the next frame: a second, or until the job's state is another. A container that died is back within a second or two."""
        for _ in range(int(EVERY_S / LOOK_S)):
            await asyncio.sleep(LOOK_S)
            if is_closing(request) or await run_in_threadpool(self._facts.state) != state:
                break


class Recent:
    """Facts of which the status is made at most twice a second, however many look, and when the job's state changes."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._lock = threading.Lock()
        self._made_at, self._status = float("-inf"), dict[str, Any]()

    def status(self) -> dict[str, Any]:
        with self._lock:
            if time.monotonic() - self._made_at >= FRESH_S or self._status["state"] != self._facts.state():
                self._status, self._made_at = self._facts.status(), time.monotonic()
            return self._status

    def state(self) -> str:
        return self._facts.state()

    def events(self, since: int) -> Rows:
        return self._facts.events(since)

    def errors(self) -> Rows:
        return self._facts.errors()

    def hints(self) -> Rows:
        return self._facts.hints()


class View:
    """What a tab shows: the rows from `offset` on, in that order. `since`: the newest event that it has."""

    def __init__(self, sort: str = "-lag", find: str = "", offset: int = 0) -> None:
        self.sort, self.find, self.offset, self.since = sort, find, offset, 0


def make_frame(facts: Facts | Recent, view: View) -> dict[str, Any]:
    """Everything that this view shows, as it is now, and the news since the last frame made for it."""
    status = facts.status()
    tasks = status["tasks"]
    found = ordered(filtered(tasks, view.find), view.sort)
    news = facts.events(view.since)
    view.since = news[-1]["n"] if news else view.since
    states = dict(Counter(str(task["state"]) for task in tasks))  # of a task that nobody reports yet it is an enum's, which orjson takes for no key
    restores = [
        {"task": task["name"], "store": store, "container": task["container"], **facts_["restore"]}
        for task in tasks
        for store, facts_ in task["stores"].items()
        if (facts_.get("restore") or {}).get("remaining")
    ]
    job = {name: status[name] for name in ("job", "id", "state", "run_id", "target", "reason", "paused", "rates")}
    return {
        "job": {
            **job, "states": states, "tasks": len(tasks), "found": len(found), "offset": view.offset, "containers": len(status["containers"]),
            "moves": len(status["moves"]), "restores": len(restores), "set_aside": sum(t["dead_letters"] for t in tasks),
            "skipped": sum(t["skipped"] for t in tasks),
            "processed": sum(t["processed"] for t in tasks), "errors": sum(group["count"] for group in facts.errors()),
            **{name: status[name] for name in ("is_still", "last_run") if status.get(name)},
            "notes": [note[:MAX_TEXT] for note in status["notes"][:5]],
        },
        "hints": facts.hints()[:5],
        "restores": sorted(restores, key=lambda r: -r.get("eta_s", 0.0))[:5],
        "containers": {str(c["id"]): _container(c) for c in status["containers"][:MAX_CONTAINERS]},
        "operators": _operators(tasks),
        "cells": _cells(status),
        "rows": {task["name"]: _row(task) for task in found[view.offset : view.offset + MAX_ROWS]},
        "order": [task["name"] for task in found[view.offset : view.offset + MAX_ROWS]],
        "news": [{**event, "text": _cut(event["text"])} for event in news[-MAX_NEWS:]],
    }  # fmt: skip


def _cut(text: str) -> str:
    return text if len(text) <= MAX_EVENT else text[: MAX_EVENT - 1] + "…"


def _operators(tasks: Rows) -> dict[str, list[int]]:
    """What the operators of a program counted in all tasks: [in, out, dropped, late], -1 for what an operator does not count."""
    sums: dict[str, list[int]] = {}
    for task in tasks:
        for name, counts in list((task.get("operators") or {}).items())[:MAX_OPERATORS]:
            now = [counts.get(key, -1) for key in COUNTED]
            before = sums.get(name)
            sums[name] = now if before is None else [a + b if b >= 0 else a for a, b in zip(before, now, strict=True)]
    return sums


def _container(container: Mapping[str, Any]) -> dict[str, Any]:
    loop = {name: round(share, 2) for name, share in container["loop"].items() if share >= 0.005}
    told = {**{name: container.get(name) for name in CONTAINER}, "reason": container["reason"][:MAX_TEXT], "loop": loop}
    return _said({**told, "tasks": len(container["tasks"])})


def _said(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Without what is empty: a frame is small, and the page knows the names."""
    return {name: value for name, value in facts.items() if value or value == 0}


def _row(task: Mapping[str, Any]) -> dict[str, Any]:
    """One task. A restore is told where there is one, with the least that is left of all stores."""
    row = {name: task.get(name) for name in ROW} | {"reason": (task["reason"] or "")[:MAX_TEXT], "is_behind": _is_behind(task)}
    restores = [facts["restore"] for facts in task["stores"].values() if facts.get("restore")]
    needed, remaining = sum(r.get("needed", 0) for r in restores), sum(r["remaining"] for r in restores)
    row["from"] = ", ".join(sorted({r["source"] for r in restores}))
    if remaining:
        row |= {"needed": needed, "remaining": remaining, "eta_s": max((r["eta_s"] for r in restores if "eta_s" in r), default=None)}
    row["copies"] = [{"host": c["host"], "lag": c["lag"]} for c in task["standby"][:3]]
    return _said(row)


def _is_behind(task: Mapping[str, Any]) -> bool:
    """Whether a task that runs is behind by more than a busy one always is."""
    seconds = task.get("behind_s")
    return bool(task["lag"]) and (seconds is None or seconds >= BEHIND_S)


def _cells(status: Mapping[str, Any]) -> dict[str, str]:
    """By container, a letter for each of its tasks, its state, or `l` where it runs and is behind; `12r` are twelve alike in a row."""
    cells: dict[str, list[str]] = {}
    for task in status["tasks"][:MAX_CELLS]:
        letter = LETTERS.get(task["state"], "w")
        cells.setdefault("" if task["container"] is None else str(task["container"]), []).append("l" if letter == "r" and _is_behind(task) else letter)
    return {number: "".join(f"{len(list(alike))}{letter}" for letter, alike in groupby(letters)) for number, letters in cells.items()}


def changed(frame: Mapping[str, Any], sent: dict[str, Any]) -> dict[str, Any]:
    """What differs from what was sent, which is brought up to date. A row or container that is gone is null."""
    news: dict[str, Any] = {}
    for part, now in frame.items():
        if part == "news":
            if now:
                news[part] = now
        elif part in ("rows", "containers", "cells"):
            before = sent.get(part, {})
            differs = {name: value for name, value in now.items() if before.get(name) != value} | {name: None for name in before if name not in now}
            if differs:
                news[part] = differs
        elif sent.get(part) != now:
            news[part] = now
        sent[part] = now
    return news
