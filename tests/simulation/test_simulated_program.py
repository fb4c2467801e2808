"""A program of streams as a simulated job: containers and drivers are killed, the cluster loses requests and replies, and what comes out is exact."""

from __future__ import annotations

import random
from typing import Any

import orjson
import pytest

from samzapy.model.key_partition import murmur2
from samzapy.serde.registry import serde_named
from samzapy.streams import App, agg
from samzapy.streams.expand import sections
from samzapy.streams.program import Program
from samzapy.testing.memory_partition import State
from tests.simulation.simulation import Simulation

PARTITIONS, SECONDS = 3, 40
KEYS = ("ada", "bob", "eve", "kim", "lou", "max", "zoe")
ODDS = {"add.reply_lost": 0.01, "produce.request_lost": 0.01, "end.reply_lost": 0.05, "end.request_lost": 0.03, "marker.late": 0.2, "fetch.short": 0.3}
LONGEST_S = {"marker.late": 1.0}


def chained() -> App:
    """Each record's output says what came before it: a record that is lost, doubled or moved shows in all that follow."""
    app = App()
    table = app.table("names", key=str, value=str, broadcast=True)
    numbers = app.stream("in", key=str, value=int)
    chain = numbers.fold("chain", list, lambda seen, n: [*seen, n][-4:], value=list)
    chain.updates().lookup(table).map(lambda pair, key: {"chain": pair[0], "name": pair[1]}).to("out")
    even, odd = numbers.branch(lambda n: n % 2 == 0)
    even.aggregate("even", n=agg.count(), largest=agg.max(), top=agg.top(3, lambda n: n % 7)).to("even")
    odd.flat_map(lambda n: [n, -n], value=int).filter(lambda n: n % 3 != 0).merge(odd).reduce("odd", lambda a, b: a * 31 % 9973 + b).to("odd")
    return app


def directly(given: list[tuple[str, int]]) -> dict[str, list[tuple[str, Any]]]:
    """The outputs of one partition's records, by a plain loop."""
    out: dict[str, list[tuple[str, Any]]] = {"out": [], "even": [], "odd": []}
    chain: dict[str, list[int]] = {key: [] for key in KEYS}
    even: dict[str, list[int]] = {key: [] for key in KEYS}
    odd: dict[str, int | None] = dict.fromkeys(KEYS)
    for key, n in given:
        chain[key] = [*chain[key], n][-4:]
        out["out"].append((key, {"chain": chain[key], "name": key.upper()}))
        if n % 2 == 0:
            even[key].append(n)
            top = sorted(even[key], key=lambda m: -(m % 7))[:3]
            out["even"].append((key, {"n": len(even[key]), "largest": max(even[key]), "top": top}))
        else:
            for m in [m for m in (n, -n) if m % 3 != 0] + [n]:
                before = odd[key]
                odd[key] = m if before is None else before * 31 % 9973 + m
                out["odd"].append((key, odd[key]))
    return out


def document(app: App, exactly_once: bool) -> dict[str, Any]:
    return {
        "job": "program", "app": "tests.simulation.test_simulated_program:app", "kafka": {"bootstrap.servers": "memory:9092"},
        **sections(app.graph, {}, {}).to_json(),
        "commit": {"interval": "300ms", "timeout": "10s", "guarantee": "exactly_once" if exactly_once else "at_least_once"},
        "containers": {"count": 2, "lease": "3s", "heartbeat": "500ms", "max_restarts": 100, "restart_window": "10s"},
    }  # fmt: skip


def live_through(seed: int) -> tuple[dict[str, list[list[tuple[str, Any]]]], dict[str, list[list[tuple[str, Any]]]]]:
    """What the job sent, by topic and partition, and what it should have sent."""
    draw = random.Random(seed)
    app = chained()
    made = Program(app.graph, {}, lambda name: serde_named(name, ()), check=False)
    topics = dict.fromkeys(("in", "names", "out", "even", "odd"), PARTITIONS)
    given: list[list[tuple[str, int]]] = [[] for _ in range(PARTITIONS)]
    with Simulation(seed, document(app, exactly_once=True), made.task, topics, {"h0": 1, "h1": 1}, ODDS, LONGEST_S) as sim:
        feed = sim.log.plain_producer("feed")
        for number, key in enumerate(KEYS):
            feed.send("names", key.upper().encode(), key.encode(), number % PARTITIONS)
        driver = sim.start()
        for second in range(SECONDS):
            for _ in range(draw.randint(0, 12)):
                key, n = draw.choice(KEYS), draw.randint(1, 99)
                partition = murmur2(key.encode()) % PARTITIONS
                given[partition].append((key, n))
                feed.send("in", n.to_bytes(8, "big"), key.encode(), partition)
            sim.baton.sleep(draw.random() * 2)
            driver = sim.struck(driver, draw, second, SECONDS)
        sim.chance.end()
        feed.flush()
        sim.baton.sleep(60.0)
        driver.coordinator.request_stop()
        sim.baton.sleep(10.0)
        assert (0, []) == (driver.exit_code, [*sim.problems, *sim.baton.errors])
        return {topic: [sent(sim, topic, p) for p in range(PARTITIONS)] for topic in ("out", "even", "odd")}, wanted(given)


def sent(sim: Simulation, topic: str, partition: int) -> list[tuple[str, Any]]:
    records = sim.cluster.partition(sim.places([topic])[partition]).records
    found = [(r.key() or b"", r.value() or b"") for r in records if r.state is State.COMMITTED]
    return [(key.decode(), int.from_bytes(value, "big", signed=True) if topic == "odd" else orjson.loads(value)) for key, value in found]


def wanted(given: list[list[tuple[str, int]]]) -> dict[str, list[list[tuple[str, Any]]]]:
    made = [directly(part) for part in given]
    return {topic: [part[topic] for part in made] for topic in ("out", "even", "odd")}


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_program_loses_nothing_and_counts_nothing_twice(seed: int) -> None:
    found, expected = live_through(seed)
    assert expected == found
    assert all(sum(map(len, parts)) > 50 for parts in expected.values())


@pytest.mark.prove
@pytest.mark.parametrize("seed", range(10, 110))
def test_a_program_is_exact_in_many_histories(seed: int) -> None:
    found, expected = live_through(seed)
    assert expected == found
