"""Jobs in trouble of a known kind, on a real Kafka: a task whose records say how long they take and what they do, and a feed that goes on."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from confluent_kafka import Producer

from tests.beside import Beside
from tests.integration.job import Job, Running

TASK = """
import os
import re
import select
import time

from samzapy import StreamTask

class Troubled(StreamTask):
    def init(self, context):
        self.counts = context.get_store("counts")
        self.order, self.looked_at, self.does, self.kept, self.n = context.params["order"], 0.0, "", [], 0

    def process(self, envelope, collector, coordinator):
        # "wait 2.5": a wait of 2.5 ms; "spin 3": as much work; "keys 50": so many keys are put; "sleep 60"; "hold"
        what, _, much = envelope.message.partition(" ")
        if time.monotonic() - self.looked_at > 0.2:
            self.looked_at = time.monotonic()
            self.does = open(self.order).read() if os.path.exists(self.order) else ""
        if what == "wait":
            select.select([], [], [], float(much) / 1000)
        elif what == "spin":
            for n in range(int(much) * 10_000):
                pass
        elif what == "keys":
            for n in range(int(much)):
                self.counts.put(f"{self.n}", 1)
                self.n = (self.n + 1) % 3_000_000
        elif what == "hold":
            self.tell_the_time()
            re.match(r"(a|aa)+$", "a" * 60 + "b")  # it holds on: the interpreter's lock, for hours
        elif what == "sleep":
            self.tell_the_time()
            select.select([], [], [], float(much))  # it sleeps
        if self.does == "crash" and envelope.partition == 1:
            os._exit(3)
        if self.does == "leak" and envelope.partition == 1:
            self.kept.append(b"x" * (1 << 20))

    def tell_the_time(self):
        with open(self.order + ".told", "w") as file:
            file.write(repr(time.time()))
"""


class Trouble(Job):
    """A job of `Troubled`. `order`: a file whose word its containers follow; `told`: where a task that sleeps or holds on has written since when."""

    def __init__(self, servers: str, folder: Path, name: str, partitions: int = 4, **sections: Any) -> None:
        self.order, self.told = folder / "order", folder / "order.told"
        inputs = [{"topic": f"{name}-in", "key": "string", "value": "string"}]
        more = {"params": {"order": str(self.order)}, "outputs": [], "inputs": inputs, "commit": {"interval": "1s"}, **sections}
        super().__init__(servers, folder, name, partitions, "Troubled", **more)
        (folder / f"task_{name.replace('-', '_')}.py").write_text(TASK)


class Feed(Beside):
    """So many records a second into each partition, until the block is left. `rates` may be changed at any time.

    Attributes:
        rates: by partition, records a second and their value.
        hot: of ten records of partition 3, how many have the same key; each other record has its own, or one of `keys`.
    """

    TICK_S = 0.05

    def __init__(self, servers: str, topic: str, rates: Mapping[int, tuple[float, str]], keys: int = 1 << 62) -> None:
        super().__init__("feed")
        self.rates, self.hot, self._keys = rates, 0, keys
        self._producer, self._topic = Producer({"bootstrap.servers": servers, "linger.ms": 5}), topic

    def _run(self) -> None:
        due: dict[int, float] = {}
        n, last = 0, time.monotonic()
        while not self._stopping.wait(self.TICK_S):
            now = time.monotonic()
            for partition, (rate, value) in self.rates.items():
                due[partition] = due.get(partition, 0.0) + rate * (now - last)
                while due[partition] >= 1.0:
                    key = "hot" if partition == 3 and n * 7 % 10 < self.hot else str(n % self._keys)
                    self._producer.produce(self._topic, value, key, partition)
                    due[partition], n = due[partition] - 1.0, n + 1
            last = now
            self._producer.poll(0)
        self._producer.flush(30)


class Throttled(Beside):
    """Processes that get little of a processor: three quarters of all time they are stopped, a little at a time, until the block is left."""

    STOPPED_S, RUN_S = 0.015, 0.005  # as short as a few records take: else a batch fits between two stops, and nothing is slow

    def __init__(self, processes: Callable[[], set[int]]) -> None:
        super().__init__("throttled")
        self._processes = processes

    def _run(self) -> None:
        pids = self._processes()
        try:
            while not self._stopping.wait(self.RUN_S):
                self._send(signal.SIGSTOP, pids)
                self._stopping.wait(self.STOPPED_S)
                self._send(signal.SIGCONT, pids)
        finally:
            self._send(signal.SIGCONT, pids)

    @staticmethod
    def _send(what: signal.Signals, pids: set[int]) -> None:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, what)


class Hints:
    """What a running job's status says is wrong, looked at every half second.

    Attributes:
        seen: by code, the first hint of it.
    """

    def __init__(self, run: Running) -> None:
        self.seen: dict[str, dict[str, Any]] = {}
        self._run = run

    def now(self) -> set[str]:
        status = self._run.job.status() or {"hints": []}
        for hint in status["hints"]:
            self.seen.setdefault(hint["code"], hint)
        return {hint["code"] for hint in status["hints"]}

    def within(self, limit_s: float, code: str) -> dict[str, Any]:
        """The hint of this code, as soon as it is told; it fails after so many seconds."""
        self._until(limit_s, lambda told: code in told, f"{code} is told")
        return self.seen[code]

    def gone_within(self, limit_s: float, besides: set[str]) -> float:
        """Until nothing is told any more, or only what may be; the seconds that took."""
        return self._until(limit_s, lambda told: not told - besides, "no hint is told")

    def none_for(self, seconds: float) -> None:
        began, pause = time.monotonic(), threading.Event()
        while time.monotonic() - began < seconds:
            assert set() == self.now(), self.seen
            pause.wait(0.5)

    def _until(self, limit_s: float, condition: Any, what: str) -> float:
        began, pause = time.monotonic(), threading.Event()
        while not condition(told := self.now()):
            assert time.monotonic() - began < limit_s, f"not within {limit_s:.0f} s: {what}; told now: {told}; seen: {self.seen}; {self._run.job.status()}"
            pause.wait(0.5)
        return time.monotonic() - began

    @property
    def urgent(self) -> set[str]:
        """The codes that somebody was to act on at once."""
        return {code for code, hint in self.seen.items() if hint["severity"] == "act"}
