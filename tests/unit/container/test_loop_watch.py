"""A call into Kafka's client that was under way when the host's clock was set back ends the process; nothing else that the clock does ends it."""

from __future__ import annotations

import threading

import pytest

from samzapy.container.loop_watch import LoopWatch


class Clock:
    def __init__(self) -> None:
        self.passed_s, self.ahead_s = 100.0, 1e9

    def monotonic(self) -> float:
        return self.passed_s

    def now_ms(self) -> int:
        return int((self.passed_s + self.ahead_s) * 1000)


class Bench:
    """A loop on a thread that waits, with a heartbeat each second."""

    def __init__(self) -> None:
        self.clock, self.ends, self.seen_at = Clock(), [], 100.0
        self.waits = threading.Event()
        thread = threading.Thread(target=self.waits.wait, daemon=True)
        thread.start()
        self.watch = LoopWatch(number=0, loop_thread=thread.ident or 0, stuck_hook_s=60.0, clock=self.clock, end=lambda *said: self.ends.append(said))  # type: ignore[arg-type]

    def beat(self, *, times: int = 1, turns: bool = False) -> None:
        for _ in range(times):
            self.clock.passed_s += 1.0
            self.seen_at = self.clock.passed_s if turns else self.seen_at
            self.watch.look(self.seen_at, is_running=True)


@pytest.fixture
def bench():
    made = Bench()
    yield made
    made.waits.set()


def test_a_call_that_was_under_way_when_the_clock_was_set_back_ends_the_process(bench: Bench) -> None:
    bench.beat(times=3, turns=True)
    bench.clock.ahead_s -= 86_400
    bench.beat(times=5)
    assert [] == bench.ends, "it may return by itself"
    bench.beat()
    [(why, by_record)] = bench.ends
    assert "set back by 86,400 s" in why
    assert not by_record


def test_a_loop_that_went_on_after_the_clock_was_set_back_may_take_long_later(bench: Bench) -> None:
    bench.beat(turns=True)
    bench.clock.ahead_s -= 86_400
    bench.beat(times=2)
    bench.beat(turns=True)
    bench.beat(times=50)
    assert [] == bench.ends


def test_a_clock_that_is_set_ahead_or_back_by_little_ends_nothing(bench: Bench) -> None:
    bench.beat(turns=True)
    for step_s in (3600.0, -1.5):
        bench.clock.ahead_s += step_s
        bench.beat(times=20)
    assert [] == bench.ends
