"""A program of three stages as a simulated job: what goes through its internal topics is counted once, and windows behind them miss nothing."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import orjson
import pytest

from samzapy.serde.registry import serde_named
from samzapy.streams import App, agg, tumbling
from samzapy.streams.expand import sections
from samzapy.streams.program import Program
from samzapy.testing.memory_partition import State
from tests.simulation.simulation import Simulation
from tests.simulation.test_simulated_program import LONGEST_S, ODDS

PARTITIONS, SECONDS = 3, 30
BASE = 1_600_000_000_000
WINDOW_MS, DELAY_MS = 5_000, 1_000


def staged() -> App:
    """Counts by rest, sums of windows by rest, and of these the largest of all."""
    app = App()
    numbers = app.stream("in", value=dict, time=lambda v: v["t"], watermark_delay="1s", idle_timeout=None)
    by_rest = numbers.filter(lambda v: v["n"] > 0).key_by(lambda v: v["n"] % 7, "by-rest", key=int)
    by_rest.count("rests").to("rests")
    sums = by_rest.window(tumbling("5s")).aggregate("sums", n=agg.count(), total=agg.sum(lambda v: v["n"]))
    sums.to("sums")
    best = sums.map(lambda pane: pane.value["total"], value=int).key_by(lambda n: "all", "one-place", key=str, partitions=1)
    best.window(tumbling("5s")).aggregate("best", rests=agg.count(), most=agg.max()).to("best")
    return app


def document(app: App, guarantee: str) -> dict[str, Any]:
    return {
        "job": "staged", "app": "tests.simulation.test_simulated_stages:app", "kafka": {"bootstrap.servers": "memory:9092"},
        **sections(app.graph, {}, {}, "staged-1").to_json(),
        "commit": {"interval": "300ms", "timeout": "10s", "guarantee": guarantee},
        "containers": {"count": 2, "lease": "3s", "heartbeat": "500ms", "max_restarts": 100, "restart_window": "10s"},
    }  # fmt: skip


def live_through(seed: int, guarantee: str = "exactly_once") -> tuple[dict[str, list[Any]], list[tuple[int, int]]]:
    """What the job sent, by topic, and what it was given, as (time, number)."""
    draw = random.Random(seed)
    app = staged()
    made = Program(app.graph, sections(app.graph, {}, {}, "staged-1").topics, lambda name: serde_named(name, ()), check=False)
    topics = dict.fromkeys(("in", "rests", "sums", "best"), PARTITIONS)
    given: list[tuple[int, int]] = []
    with Simulation(seed, document(app, guarantee), made.task, topics, {"h0": 1, "h1": 1}, ODDS, LONGEST_S) as sim:
        feed = sim.log.plain_producer("feed")
        driver = sim.start()
        for second in range(SECONDS):
            for partition in range(PARTITIONS):
                for _ in range(draw.randint(1, 5)):
                    t, n = BASE + second * 1000 + draw.randint(0, DELAY_MS), draw.randint(-2, 99)
                    given.append((t, n))
                    feed.send("in", orjson.dumps({"t": t, "n": n}), None, partition)
            sim.baton.sleep(draw.random() * 2)
            driver = sim.struck(driver, draw, second, SECONDS)
        feed.flush()
        sim.baton.sleep(5.0)
        sim.chance.end()
        driver.coordinator.request_stop()
        sim.baton.sleep(30.0)
        assert (0, []) == (driver.exit_code, [*sim.problems, *sim.baton.errors])
        driver = sim.start(until_end=True)
        for _ in range(3):
            sim.baton.sleep(draw.random() * 3)
            if sim.live_containers():
                sim.baton.kill(draw.choice(sim.live_containers()).process, "SIGKILL")
        sim.baton.sleep(120.0)
        assert (0, []) == (driver.exit_code, [*sim.problems, *sim.baton.errors])
        return {topic: [one for p in range(PARTITIONS) for one in sent(sim, topic, p)] for topic in ("rests", "sums", "best")}, given


def sent(sim: Simulation, topic: str, partition: int) -> list[tuple[bytes, Any]]:
    records = sim.cluster.partition(sim.places([topic])[partition]).records
    return [(r.key() or b"", orjson.loads(r.value() or b"null") if topic != "rests" else int.from_bytes(r.value() or b"", "big"))
            for r in records if r.state is State.COMMITTED]  # fmt: skip


def judge(found: dict[str, list[Any]], given: list[tuple[int, int]]) -> None:
    """What came out is what a plain loop over all that was given makes of it."""
    wanted = [(t, n) for t, n in given if n > 0]
    counts: dict[int, list[int]] = {}
    for key, n in found["rests"]:
        counts.setdefault(int.from_bytes(key, "big"), []).append(n)
    assert {rest: list(range(1, n + 1)) for rest, n in Counter(n % 7 for _, n in wanted).items()} == counts

    sums: dict[tuple[int, int], list[int]] = {}
    for t, n in wanted:
        one = sums.setdefault((t // WINDOW_MS * WINDOW_MS, n % 7), [0, 0])
        one[0], one[1] = one[0] + 1, one[1] + n
    panes = sorted((pane["start"], int.from_bytes(key, "big"), pane["n"], pane["total"], pane["pane"]) for key, pane in found["sums"])
    assert sorted((start, rest, n, total, "on_time") for (start, rest), (n, total) in sums.items()) == panes

    best: dict[int, list[int]] = {}
    for (start, _), (_, total) in sums.items():
        best.setdefault(start, []).append(total)
    told = sorted((pane["start"], pane["rests"], pane["most"]) for _, pane in found["best"])
    assert sorted((start, len(totals), max(totals)) for start, totals in best.items()) == told


@pytest.mark.parametrize("seed", [1, 2])
def test_three_stages_are_exact(seed: int) -> None:
    judge(*live_through(seed))


def test_they_are_exact_with_at_least_once_too() -> None:
    """But for what is sent to outputs: there records may come twice."""
    found, given = live_through(3, "at_least_once")
    judge({topic: [one for at, one in enumerate(records) if one not in records[:at]] for topic, records in found.items()}, given)


@pytest.mark.prove
@pytest.mark.parametrize("seed", range(10, 110))
def test_they_are_exact_in_many_histories(seed: int) -> None:
    judge(*live_through(seed))
