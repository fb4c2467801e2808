"""Jobs in trouble, staged: what the page shows of each is looked at. `python -m tests.page.scenes FOLDER` takes a screenshot of every view of each,
light and dark, at 360, 1280 and 2560 px; `python -m tests.page.scenes FOLDER skewed 1280 light` of one."""

from __future__ import annotations

import signal
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from samzapy.clock import SystemClock
from samzapy.coordinator.events import CONTAINER
from samzapy.model.process_end import ProcessEnd, killed_by
from samzapy.plan.killed_for_memory import MIB, killed_for_memory
from samzapy.serde.basic import JsonSerde
from samzapy.streams import App, agg
from samzapy.streams.expand import sections
from samzapy.streams.picture import drawn
from samzapy.streams.program import Program
from tests.page.browser import Watched, chromium
from tests.page.staged import OPERATE, Served, Stage

VIEWS = ("Overview", "Tasks", "Timeline", "Errors", "Inside", "Topics", "Config", "Runs")
WIDTHS, THEMES = (360, 1280, 2560), ("light", "dark")
AGO_S = 240.0
BUDGET = 2048 * MIB  # `containers.memory`
ERROR = {
    "kind": "error", "type": "ValueError", "place": "visit_counter.py:31", "tasks": ["Partition 0", "Partition 3"],
    "text": "ValueError: could not convert string to float: '1,50'", "record": "visits[0]@88120", "action": "set aside",
    "stack": "Traceback (most recent call last):\n  File \"visit_counter.py\", line 31, in process\n    price = float(message['price'])\n"
    "ValueError: could not convert string to float: '1,50'",
}  # fmt: skip

UNREAD = {
    **ERROR, "type": "SerdeError", "place": "value of visits", "record": "visits[3]@41002",
    "text": "SerdeError: serde json cannot read b'price=1': unexpected character.",
    "stack": "-> SerdeError",
}  # fmt: skip


class PastClock(SystemClock):
    """The machine's time, some minutes ago, which is caught up by leaps: minutes of a job are made in no time."""

    def __init__(self) -> None:
        self.ago_s = AGO_S

    def now_ms(self) -> int:
        return super().now_ms() - int(self.ago_s * 1000)

    def monotonic(self) -> float:
        return SystemClock.monotonic() - self.ago_s


class Scene(Stage):
    """A job of 12 tasks in 3 containers that keeps up."""

    def __init__(self) -> None:
        self.clock = PastClock()
        super().__init__(12, 3, 3, looks_inside=True, clock=self.clock)
        self.done: dict[str, float] = {}
        self.lag: dict[str, float] = {}
        self.time, self.at = 0.0, self.clock.monotonic()
        self.notes = ()
        self.told = dict.fromkeys(range(3), 0)
        self.roster.diagnosing.budget_bytes = BUDGET
        self.roster.diagnosing.hang_s = 600.0
        for number in range(3):
            self.roster.events.add(CONTAINER, "state", f"container {number} is RUNNING", container=number, state="RUNNING")

    def play(self) -> Scene:
        """Some minutes of it, up to now."""
        while self.clock.ago_s > 0:
            self.step(2.0)
            self.clock.ago_s = max(0.0, self.clock.ago_s - 2.0)
        return self

    def catch_up(self) -> None:
        """So much time has passed since the last step as really has."""
        self.step(self.clock.monotonic() - self.at)

    def step(self, seconds: float) -> None:
        """So much time passes."""
        self.time, self.at = self.time + seconds, self.clock.monotonic()
        for name in self.names:
            arriving, able = self.arriving(name), self.able(name)
            lag = max(0.0, self.lag.get(name, 0.0) + (arriving - able) * seconds)
            self.done[name] = self.done.get(name, 0.0) + arriving * seconds - (lag - self.lag.get(name, 0.0))
            self.lag[name] = lag
        self.beat(seconds)

    # -- what a scene says of its own ----------------------------------------------------------------------------------------------------

    def arriving(self, name: str) -> float:
        """Records a second that come for a task."""
        return 900.0 + 37 * (int(name.split()[1]) % 5)

    def able(self, name: str) -> float:
        """Records a second that it can process."""
        return 4000.0

    def us(self, name: str) -> float:
        return 60.0 + 3 * (int(name.split()[1]) % 4)

    def state_of(self, name: str) -> str:
        return "RUNNING"

    def of_container(self, number: int) -> dict[str, Any]:
        """More of its report."""
        return {}

    # -- what containers would tell ------------------------------------------------------------------------------------------------------

    def restoring_s(self, number: int) -> float:
        """How long a container has done nothing but restore."""
        return 0.0

    def in_hook_s(self, number: int) -> float:
        """How long it has been in one hook."""
        return 0.0

    def _loop(self, number: int, done: float) -> dict[str, float]:
        busy = {name: self.done[name] * self.us(name) / 1e6 for name in self.names[number :: self.containers]}
        restore = self.restoring_s(number)
        in_loop = self.time - self.in_hook_s(number) - restore  # a hook that has not returned is not counted yet
        process, commit, other = min(0.96 * in_loop, sum(busy.values())), 0.03 * in_loop, 0.005 * in_loop
        waits = max(0.0, in_loop - process - commit - other)
        return {"process": process, "commit": commit, "wait_input": waits, "wait_output": 0.0, "restore": restore, "other": other}

    def _report(self, number: int) -> dict[str, Any]:
        news = []
        for item in self.news_of(number):
            self.told[number] += 1
            news.append({**item, "n": self.told[number]})
        return {"memory_bytes": (410 + 23 * number) << 20, "news": news, **self.of_container(number)}

    def news_of(self, number: int) -> list[dict[str, Any]]:
        """What a container tells of since its last report: that it committed, unless it is busy otherwise."""
        if self.in_hook_s(number) or self.restoring_s(number):
            return []
        took_s = 0.02 + 0.004 * (int(self.time) // 2 % 5)
        parts = {"send": took_s / 4, "decide": took_s / 2, "apply": took_s / 4}
        told = {"why": "interval", "seconds": took_s, "parts": parts, "changes": 900, "tasks": 4, "newest_s": 0.04 + took_s, "oldest_s": 1.05 + took_s}
        return [{"kind": "commit", "at_ms": self.clock.now_ms(), **told}]

    def starts_again(self, number: int, end: ProcessEnd, host: str, pid: int) -> None:
        """A container dies, and is started again there."""
        with self.roster.lock:
            member, add = self.roster.members[number], self.roster.events.add
            told = replace(end, words=f"process {member.owner.pid} on {member.owner.host} was {end.words}")
            add(CONTAINER, "died", f"container {number} died: {told}", container=number, state="LOST", end=told.to_json())
            add(CONTAINER, "launched", f"container {number} is being started", container=number, state="STARTING")
            add(CONTAINER, "named", f"container {number} runs as process {pid} on {host}", container=number, state="STARTING")
            add(CONTAINER, "state", f"container {number} is RUNNING", container=number, state="RUNNING")
            member.owner = replace(member.owner, host=host, pid=pid)
            member.history = replace(member.history, restarts=member.history.restarts + 1)

    def _task(self, name: str, done: float, lag: int, state: str, now_ms: int) -> dict[str, Any]:
        told = super()._task(name, done, lag, self.state_of(name), now_ms)
        n, waits = int(self.done[name]), int(self.lag[name])
        late_ms = int(1000 * waits / self.arriving(name))
        told |= {"processed": n, "positions": {f"visits[{name.split()[1]}]": n}, "lag": waits, "event_ms": now_ms - 40 - late_ms, "busy_s": n * self.us(name) / 1e6}
        return told


class Well(Scene):
    """All is well."""


class Skewed(Scene):
    """One partition gets most of the records."""

    def arriving(self, name: str) -> float:
        return 14_000.0 if name == "Partition 4" else super().arriving(name)

    def able(self, name: str) -> float:
        return 12_800.0 if name == "Partition 4" else 4000.0


class Stuck(Scene):
    """A hook of one container does not return."""

    def able(self, name: str) -> float:
        return 0.0 if self._is_stuck(int(name.split()[1]) % 3) else 4000.0

    def _is_stuck(self, number: int) -> bool:
        return number == 1 and self.time > 150

    def in_hook_s(self, number: int) -> float:
        return self.time - 150 if self._is_stuck(number) else 0.0

    def of_container(self, number: int) -> dict[str, Any]:
        if not self._is_stuck(number):
            return {}
        return {"now": {"silent_s": self.time - 150, "at": "visit_counter.py:42 in look_up", "record": " on record visits[7]@99121"}}


class Restoring(Scene):
    """A container died; its tasks are restored elsewhere."""

    NEEDED = 2_100_000

    def state_of(self, name: str) -> str:
        return "RESTORING" if int(name.split()[1]) % 3 == 1 and 0 < self._restored(name) < self.NEEDED else "RUNNING"

    def _restored(self, name: str) -> int:
        """Of its changelog's records."""
        return 0 if self.time <= 200 else min(self.NEEDED, int(12_000 * (self.time - 200)) + 1000 * int(name.split()[1]))

    def able(self, name: str) -> float:
        return 0.0 if self.state_of(name) == "RESTORING" else 4000.0

    def restoring_s(self, number: int) -> float:
        return max(0.0, self.time - 200) if number == 1 else 0.0

    def step(self, seconds: float) -> None:
        super().step(seconds)
        if 200 < self.time <= 202:
            self.starts_again(1, killed_by(signal.SIGKILL), "host-2", 4711)
            self.roster.state = "DEGRADED"

    def _task(self, name: str, done: float, lag: int, state: str, now_ms: int) -> dict[str, Any]:
        told = super()._task(name, done, lag, state, now_ms)
        if self.state_of(name) == "RESTORING":
            restored = self._restored(name)
            told["stores"]["counts"]["restore"] |= {"records": restored, "seconds": self.time - 200, "needed": self.NEEDED, "remaining": self.NEEDED - restored}
        return told


class Failing(Scene):
    """Records fail, and a container dies again and again."""

    DEATHS = (60.0, 120.0, 180.0, 230.0)

    def __init__(self) -> None:
        super().__init__()
        self.began_ms, self.letters = self.clock.now_ms(), 0

    def of_container(self, number: int) -> dict[str, Any]:
        """The memory of container 2 grows until it is killed."""
        since_s = self.time - max((at for at in self.DEATHS if at < self.time), default=0.0)
        return {"memory_bytes": min(1946, 420 + int(30 * since_s)) * MIB} if number == 2 else {}

    def news_of(self, number: int) -> list[dict[str, Any]]:
        more = {"first_ms": self.began_ms, "last_ms": self.clock.now_ms()}
        errors = [{**ERROR, **more, "count": int(self.time * 2)}, {**UNREAD, **more, "count": int(self.time)}] if number == 0 else []
        return [*super().news_of(number), *errors]

    def step(self, seconds: float) -> None:
        super().step(seconds)
        if self.time in self.DEATHS:
            self.starts_again(2, killed_for_memory(killed_by(signal.SIGKILL), 1946 * MIB, BUDGET, 0.4, False), "host-2", 4010 + self.DEATHS.index(self.time))
        while self.letters < 3 * int(self.time):
            which = ERROR if self.letters % 3 else UNREAD
            self.set_aside(self.letters, which["text"], b'{"price": "1,50", "n": %d}' % self.letters if which is ERROR else b"price=1")
            self.letters += 1

    def _task(self, name: str, done: float, lag: int, state: str, now_ms: int) -> dict[str, Any]:
        failed = {"Partition 0": 2 * int(self.time), "Partition 3": int(self.time)}.get(name, 0)
        return {**super()._task(name, done, lag, state, now_ms), "dead_letters": failed}


class Streams(Scene):
    """A program of streams, in two stages."""

    def __init__(self) -> None:
        super().__init__()
        self.program = Program(APP.graph, sections(APP.graph, {}, {}).topics, lambda name: JsonSerde())  # no record is read
        self.about = {**self.about, "task": "shop", "operators": drawn(APP.graph, {})}

    def _task(self, name: str, done: float, lag: int, state: str, now_ms: int) -> dict[str, Any]:
        n = int(self.done[name])
        counts = [n // (node.number + 1) for node in APP.graph]
        return {**super()._task(name, done, lag, state, now_ms), "operators": self.program.counted(counts)}


def _shop() -> App:
    app = App()
    orders = app.stream("orders", key=str, value=dict).filter(lambda order: order["total"] > 0, label="paid")
    users = app.table("users", key=str, value=dict)
    joined = orders.lookup(users, how="inner").map(lambda pair: {**pair[0], "land": pair[1]["land"]}, value=dict, label="with its land")
    joined.filter(lambda order: order["total"] > 1000, label="large").to("large-orders", value=dict)
    lands = joined.key_by(lambda order: order["land"], "by-land", key=str, value=dict)
    lands.aggregate("lands", orders=agg.count(), total=agg.sum(lambda order: order["total"])).to("lands", partitions=4)
    return app


APP = _shop()
SCENES: dict[str, type[Scene]] = {"well": Well, "skewed": Skewed, "stuck": Stuck, "restoring": Restoring, "failing": Failing, "streams": Streams}


def shoot(folder: Path, scene: str, widths: tuple[int, ...] = WIDTHS, themes: tuple[str, ...] = THEMES, views: tuple[str, ...] = VIEWS) -> None:
    """Screenshots of a scene."""
    stage = SCENES[scene]().play()
    stage.ran("run-0", 30)
    stage.feed(*(b'{"page": "/home", "user": "ada", "n": %d}' % n for n in range(30)))
    with chromium() as browser, Served(stage) as served:
        for width in widths:
            for theme in themes:
                watched = Watched(browser, width, theme)
                page = watched.open(served.url, OPERATE)
                for view in views:
                    watched.go(view)
                    stage.catch_up()
                    page.wait_for_timeout(1000)
                    stage.catch_up()
                    page.wait_for_timeout(700)
                    page.screenshot(path=folder / f"{scene}-{view.lower()}-{width}-{theme}.png", full_page=True)
                watched.context.close()
    stage.close()


if __name__ == "__main__":
    into, chosen = Path(sys.argv[1]), sys.argv[2:]
    into.mkdir(parents=True, exist_ok=True)
    for one in [name for name in SCENES if name in chosen] or SCENES:
        shoot(
            into, one, tuple(w for w in WIDTHS if str(w) in chosen) or WIDTHS, tuple(t for t in THEMES if t in chosen) or THEMES,
            tuple(v for v in VIEWS if v in chosen) or VIEWS,
        )  # fmt: skip
