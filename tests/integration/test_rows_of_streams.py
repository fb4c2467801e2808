"""What programs must give, row by row, on a real broker and with real processes: each once as it is, and once with three SIGKILLs."""

from __future__ import annotations

import json
import os
import random
import secrets
import signal
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from jobs.wikipedia import parse_edit, raw_record
from jobs.wikipedia_feed import feed_file, lines
from samzapy.model.key_partition import murmur2
from tests.broker import create_topic, ends, produce, read_all
from tests.integration.job import Job, Running
from tests.jobs.test_wikipedia_windows import directly, is_hello_samzas
from tests.unit.streams.test_stages import ONCE, SENTENCE
from tests.unit.streams.test_windows import MEANS

pytestmark = [pytest.mark.kafka, pytest.mark.prove]
T0, MINUTE, DAY = 1_600_041_600_000, 60_000, 86_400_000
PROGRAM = """
from samzapy.streams import App, agg, hopping, tumbling

app = App()

def timed(topic, **more):
    return app.stream(f"{NAME}-{topic}", key=str, value=dict, time=lambda v: v["at"], watermark_delay="0s", idle_timeout="5s", **more)

# J1
words = app.stream(f"{NAME}-j1", value=str).flat_map(str.split, value=str).key_by(lambda word: word, "j1-words", key=str)
words.count("j1").to(f"{NAME}-j1-out")
at_once = timed("j1t").flat_map(lambda v: v["line"].split(), value=str).key_by(lambda word: word, "j1t-words", key=str)
at_once.window(tumbling("10s")).count("j1t").to(f"{NAME}-j1t-out")
# J9
for row in ("j9", "j9b"):
    means = timed(row).window(hopping("60m", every="10m"), allowed_lateness="30m").aggregate(row, r=agg.mean(lambda v: v["v"]))
    means.to(f"{NAME}-{row}-out")
    means.late.to(f"{NAME}-{row}-late", value=dict)
# J10, J11
tags = timed("j10").flat_map(lambda v: v["tags"], value=str).key_by(lambda tag: tag, "j10-tags", key=str)
tags.window(hopping("60s", every="5s")).count("j10").to(f"{NAME}-j10-out")
letters = timed("j11").flat_map(lambda v: v["tags"], value=str).key_by(lambda tag: tag, "j11-tags", key=str)
letters.window(tumbling("5s")).count("j11").to(f"{NAME}-j11-out")
# J12
timed("j12").window(hopping("5s", every="1s")).count("j12").to(f"{NAME}-j12-out")
# J14
numbers = app.stream(f"{NAME}-j14", key=str, value=int)
numbers.map(lambda n: n * 2).to(f"{NAME}-j14-doubled", value=int)
numbers.reduce("j14-sums", lambda a, b: a + b).to(f"{NAME}-j14-sums")
numbers.fold("j14-texts", lambda: "start", lambda text, n: f"{text}-{n}", value=str).to(f"{NAME}-j14-texts")
numbers.merge(numbers).count("j14-merged").to(f"{NAME}-j14-merged")
even, odd = numbers.branch(lambda n: n % 2 == 0)
even.to(f"{NAME}-j14-even")
odd.to(f"{NAME}-j14-odd")
least = app.stream(f"{NAME}-j14b", key=str, value=list).aggregate("j14-least", row=agg.min_by(lambda row: row[0]))
least.updates().map(lambda best: best["row"][1], value=str).to(f"{NAME}-j14-least")
# J15
one = timed("j15").map(lambda v: v["v"], value=int).window(tumbling("1m"))
one.reduce("j15-sum", lambda a, b: a + b).to(f"{NAME}-j15-sum")
one.aggregate("j15-mean", r=agg.mean()).to(f"{NAME}-j15-mean")
one.collect("j15-all").to(f"{NAME}-j15-all")
# J17
profiles = app.table(f"{NAME}-j17-profiles", key=str, value=str)
views = app.stream(f"{NAME}-j17", key=str, value=str)
views.lookup(profiles, how="inner").map(lambda pair, key: [key, pair[1], pair[0]], value=list).to(f"{NAME}-j17-out")
views.lookup(profiles).map(lambda pair, key: [key, pair[1]], value=list).to(f"{NAME}-j17-left")
# J21
first = app.table(f"{NAME}-j21-first", key=str, value=float)
halves = app.stream(f"{NAME}-j21", key=str, value=float).fold("j21", lambda: 0.0, lambda a, b: a / 2 + b / 2, value=float, initial=first)
halves.to(f"{NAME}-j21-out")
# J26
timed("j26").window(hopping("30d", every="1d")).aggregate("j26", r=agg.sum(lambda v: v["v"])).to(f"{NAME}-j26-out")
"""
OUTPUTS = ["j1-out", "j1t-out", "j9-out", "j9-late", "j9b-out", "j9b-late", "j10-out", "j11-out", "j12-out", "j14-doubled", "j14-sums", "j14-texts",
           "j14-merged", "j14-even", "j14-odd", "j14-least", "j15-sum", "j15-mean", "j15-all", "j17-out", "j17-left", "j21-out", "j26-out"]  # fmt: skip
ONE_PARTITION = ["j1t", "j9", "j9b", "j10", "j11", "j12", "j15", "j26"]  # so that the order of their records, and with it their time, is one
TASKS = 4
LATEST_KILL_S = 1.5  # after records were sent
CATS, BOTH = {"#cat": 2, "#dog": 1}, {"#cat": 1, "#dog": 1}
TAGS = {5: BOTH, **dict.fromkeys(range(10, 60, 5), CATS), 60: {"#cat": 2, "#dog": 2}, 65: BOTH, **{end: {"#dog": 1} for end in range(70, 120, 5)}}
Record = tuple[str, Any, str | None]  # topic, value, key


def at(unit: float, time: float, **more: Any) -> dict[str, Any]:
    return {"at": T0 + round(unit * time), **more}


def rows() -> list[list[Record]]:
    """What is sent, in four parts: containers are killed in between."""
    j9 = [at(MINUTE, 5 * n, v=n) for n in range(16)] + [at(MINUTE, 35, v=100)] + [at(MINUTE, 5 * n, v=n) for n in range(16, 24)]
    j9b = [("k", at(MINUTE, 5 * n, v=n)) for n in range(24)] + [("other", at(MINUTE, 125, v=1)), ("k", at(MINUTE, 35, v=100))]
    j10 = [at(1000, 0, tags=["#cat", "#dog"]), at(1000, 7, tags=["#cat"]), at(1000, 58, tags=["#dog"])]
    j11 = [at(1, 0, tags=["a", "b", "a"]), at(1, 4999, tags=["b"]), at(1, 5000, tags=["a"]), at(1, 11000, tags=["c"])]
    every: list[Record] = [
        *(("j1", word, None) for word in SENTENCE.split()), ("j1t", at(1, 0, line=SENTENCE), "k"), *(("j9", v, "k") for v in j9),
        *(("j9b", v, key) for key, v in j9b), *(("j10", v, "k") for v in j10), *(("j11", v, "k") for v in j11),
        ("j12", at(1000, 0.5), "x"), ("j12", at(1000, 3.2), "x"), *(("j14", n, "k") for n in range(1, 6)),
        *(("j14b", row, "a") for row in ([3, "x"], [1, "y"], [2, "z"])),
        *(("j15", at(1000, n, v=v), "k") for n, v in enumerate((1, 2, 6))), ("j17", "google.com", "user1"), ("j17", "yahoo.com", "user2"), ("j17", "x", "user3"),
        *(("j21", value, key) for key, value in (("u1", 1.0), ("u1", 1.0), ("u1", -1.0), ("u2", 1.0))),
        *(("j26", at(DAY, day - 0.5, v=10), "a") for day in range(1, 41)),
    ]  # fmt: skip
    by_topic: dict[str, list[Record]] = {}
    for record in every:
        by_topic.setdefault(record[0], []).append(record)
    parts: list[list[Record]] = [[], [], [], []]
    for records in by_topic.values():
        for part in range(4):
            parts[part] += records[len(records) * part // 4 : len(records) * (part + 1) // 4]
    return parts


def encoded(value: Any) -> bytes:
    if isinstance(value, str):
        return value.encode()
    return value.to_bytes(8, "big", signed=True) if type(value) is int else json.dumps(value).encode()


class Rows(Job):
    """A job with all the rows."""

    def __init__(self, servers: str, folder: Path, name: str) -> None:
        super().__init__(servers, folder, name, TASKS)
        topics = {"j1", "j14", "j14b", "j17", "j17-profiles", "j21", "j21-first", *OUTPUTS}
        for topic in topics | set(ONE_PARTITION):
            create_topic(servers, f"{name}-{topic}", 1 if topic in ONE_PARTITION else TASKS, retention_ms=-1)
        module = "rows_" + name.replace("-", "_")
        (folder / f"{module}.py").write_text(f"NAME = {name!r}\n{PROGRAM}")
        document = json.loads(self.file.read_text())
        self.file.write_text(json.dumps({**{key: document[key] for key in ("job", "kafka", "commit", "containers", "state")}, "app": f"{module}:app"}))

    def send(self, records: list[Record]) -> None:
        by_topic: dict[str, list[Any]] = {}
        for topic, value, key in records:
            one_of = 1 if topic in ONE_PARTITION else TASKS
            data = None if key is None else key.encode()
            partition = murmur2(data if data is not None else encoded(value)) % one_of
            by_topic.setdefault(topic, []).append((data, encoded(value), partition))
        for topic, found in by_topic.items():
            produce(self.servers, f"{self.name}-{topic}", found)

    def out(self, topic: str) -> list[tuple[str, Any]]:
        """Key and value of what is committed, of JSON."""
        return [((r.key or b"").decode(), json.loads(r.value or b"null")) for r in read_all(self.servers, f"{self.name}-{topic}")]

    def numbers(self, topic: str) -> list[tuple[str, int]]:
        return [((r.key or b"").decode(), int.from_bytes(r.value or b"", "big", signed=True)) for r in read_all(self.servers, f"{self.name}-{topic}")]


def kill_one(run: Running, chance: random.Random) -> None:
    """SIGKILL to any of its containers, at any time."""
    threading.Event().wait(chance.random() * LATEST_KILL_S)
    status = run.until(lambda s: s["containers"] and all(c["state"] == "RUNNING" and c["pid"] for c in s["containers"]))
    victim = chance.choice(status["containers"])
    os.kill(victim["pid"], signal.SIGKILL)
    run.until(lambda s: all(c["pid"] != victim["pid"] for c in s["containers"]))


@pytest.mark.parametrize("kills", [0, 3])
def test_every_row_gives_exactly_what_it_must(kafka: str, tmp_path: Path, kills: int) -> None:
    job = Rows(kafka, tmp_path, f"rows-{secrets.token_hex(4)}")
    chance = random.Random(job.name)
    job.send([("j17-profiles", "LNKD", "user1"), ("j17-profiles", "MSFT", "user2"), ("j21-first", 1.0, "u2")])
    with job.running("--local") as run:
        run.until(lambda s: all(t["state"] == "RUNNING" for t in s["tasks"]))
        for number, part in enumerate(rows()):
            job.send(part)
            if number < kills:
                kill_one(run, chance)
        run.until(lambda s: len(job.out("j17-out")) == 2)
        job.send([("j17-profiles", "APPL", "user1")])
        at_end = {f"{job.name}-j17-profiles[{p}]": end for p, end in enumerate(profiles(job))}
        run.until_caught_up(at_end)
        job.send([("j17", "google.com", "user1")])
        run.until(lambda s: len(job.out("j17-out")) == 3)
        # Of each operator what came too late, as `samzapy status` has it.
        run.until(lambda s: {"j9": 0, "j9b": 1} == {row: sum(t["operators"][row]["late"] for t in s["tasks"] if row in t["operators"]) for row in ("j9", "j9b")})
        assert run.stop() == 0
    done = job.run_to_end()
    assert done.returncode == 0, done.stderr
    assert_windows(job)

    counts = job.numbers("j1-out")
    assert (15, {"Apache": 3, "Scala": 2, "2016": 2, "Streaming": 2, **dict.fromkeys(ONCE, 1)}) == (len(counts), dict(counts))
    assert [2, 4, 6, 8, 10] == [n for _, n in job.numbers("j14-doubled")]
    assert [1, 3, 6, 10, 15] == [n for _, n in job.numbers("j14-sums")]
    texts = [(r.value or b"").decode() for r in read_all(kafka, f"{job.name}-j14-texts")]
    assert ["start" + "".join(f"-{n}" for n in range(1, k + 1)) for k in range(1, 6)] == texts
    assert list(range(1, 11)) == [n for _, n in job.numbers("j14-merged")]
    assert ([2, 4], [1, 3, 5]) == tuple([n for _, n in job.numbers(topic)] for topic in ("j14-even", "j14-odd"))
    assert ["x", "y", "y"] == [(r.value or b"").decode() for r in read_all(kafka, f"{job.name}-j14-least")]
    pairs = [["user1", "APPL", "google.com"], ["user1", "LNKD", "google.com"], ["user2", "MSFT", "yahoo.com"]]
    assert pairs == sorted(value for _, value in job.out("j17-out"))
    assert [["user1", "APPL"], ["user1", "LNKD"], ["user2", "MSFT"], ["user3", None]] == sorted((v for _, v in job.out("j17-left")), key=str)
    halves = job.out("j21-out")
    assert ([0.5, 0.75, -0.125], [1.0]) == tuple([v for key, v in halves if key == user] for user in ("u1", "u2"))


def profiles(job: Rows) -> list[int]:
    """Where the partitions of J17's table end."""
    found = [0] * TASKS
    for record in read_all(job.servers, f"{job.name}-j17-profiles"):
        found[record.partition] = max(found[record.partition], record.offset + 1)
    return found


def assert_windows(job: Rows) -> None:
    panes = [((p["end"] - T0) // MINUTE, p["pane"], p["index"], round(p["r"], 6)) for _, p in job.out("j9-out")]
    late = [(50, "late", 1, 13.181818), (60, "late", 1, 12.769231), (70, "late", 1, 14.615385)]
    changed = {80: 16.461538, 90: 18.307692}
    on_time = [(end, "on_time", 0, changed.get(end, mean)) for end, mean in MEANS.items()]
    assert [*on_time[:7], *late, *on_time[7:]] == panes
    assert [] == job.out("j9-late")
    panes = [((p["end"] - T0) // MINUTE, p["pane"], p["index"], p["r"]) for key, p in job.out("j9b-out") if key == "k"]
    assert [(end, "on_time", 0, mean) for end, mean in MEANS.items()] == panes
    assert [("k", at(MINUTE, 35, v=100))] == job.out("j9b-late")

    words = job.out("j1t-out")
    assert 10 == len(words)
    assert Counter(SENTENCE.split()) == {word: p["value"] for word, p in words}
    assert {(T0, T0 + 10_000, "on_time")} == {(p["start"], p["end"], p["pane"]) for _, p in words}

    by_end: dict[int, dict[str, int]] = {}
    for tag, pane in job.out("j10-out"):
        by_end.setdefault((pane["end"] - T0) // 1000, {})[tag] = pane["value"]
    assert (36, 48) == (len(job.out("j10-out")), sum(n for tags in by_end.values() for n in tags.values()))
    assert TAGS == by_end
    assert [(0, "a", 2), (0, "b", 2), (5, "a", 1), (10, "c", 1)] == sorted(((p["start"] - T0) // 1000, tag, p["value"]) for tag, p in job.out("j11-out"))
    counts = list(enumerate((1, 1, 1, 2, 2, 1, 1, 1), 1))
    assert counts == [((p["end"] - T0) // 1000, p["value"]) for _, p in job.out("j12-out")]
    assert ([9], [[1, 2, 6]]) == tuple([p["value"] for _, p in job.out(topic)] for topic in ("j15-sum", "j15-all"))
    assert [3.0] == [p["r"] for _, p in job.out("j15-mean")]
    totals = [((p["end"] - T0) // DAY, p["r"]) for _, p in job.out("j26-out")]
    assert [(n, 10 * min(n, 30, 70 - n)) for n in range(1, 70)] == totals


# -- the feed of hello-samza -------------------------------------------------------------------------------------------------------------------

STATISTICS = """
from jobs.wikipedia import parse_edit
from jobs.wikipedia_windows import diff_bytes, flags, time, title
from samzapy.streams import App, agg, tumbling

app = App()
lines = app.stream(f"{NAME}-in", value=dict, time=time, watermark_delay="5s", idle_timeout="10s")
edits = lines.filter_map(parse_edit, value=dict)
for combine in (True, False):
    name = "combined" if combine else "each"
    windows = edits.key_by(lambda edit: "all", f"place-{name}", key=str, combine=combine).window(tumbling("10s"))
    panes = windows.aggregate(name, edits=agg.count(), bytes_added=agg.sum(diff_bytes), unique_titles=agg.distinct(title), flags=agg.value_counts(flags))
    panes.to(f"{NAME}-{name}")
edits.key_by(title, "by-title", key=str).count("titles").to(f"{NAME}-titles")
"""


@pytest.mark.parametrize("kills", [0, 3])
def test_the_statistics_of_the_feed_are_those_of_a_direct_pass(kafka: str, tmp_path: Path, kills: int) -> None:
    """J5 over four partitions, with the combiner and without."""
    name = f"feed-{secrets.token_hex(4)}"
    job, chance = Job(kafka, tmp_path, name, TASKS), random.Random(name)
    for topic in ("combined", "each", "titles"):
        create_topic(kafka, f"{name}-{topic}", TASKS, retention_ms=-1)
    (tmp_path / "jobs").symlink_to(Path(__file__).parents[2] / "jobs")
    (tmp_path / "feed_stats.py").write_text(f"NAME = {name!r}\n{STATISTICS}")
    document = json.loads(job.file.read_text())
    own = {key: document[key] for key in ("job", "kafka", "commit", "containers", "state")}
    job.file.write_text(json.dumps({**own, "on_error": {"then": "skip"}, "app": "feed_stats:app"}))
    records = sorted((raw_record(line) for line in lines() if line.strip()), key=lambda record: record.get("time", 0))
    with job.running("--local") as run:
        for part in range(4):
            part_of = list(enumerate(records))[len(records) * part // 4 : len(records) * (part + 1) // 4]
            produce(kafka, job.input, [(None, json.dumps(record).encode(), n % TASKS) for n, record in part_of])
            if part < kills:
                kill_one(run, chance)
        run.until_caught_up({f"{job.input}[{p}]": end for p, end in ends(kafka, job.input).items()})
        assert run.stop() == 0
    done = job.run_to_end()
    assert done.returncode == 0, done.stderr
    expected = directly(records)
    for way in ("combined", "each"):
        panes = [json.loads(r.value or b"") for r in read_all(kafka, f"{name}-{way}")]
        assert sorted(expected) == [pane["start"] for pane in panes]
        assert expected == {pane["start"]: {name: pane[name] for name in ("edits", "bytes_added", "unique_titles", "flags")} for pane in panes}
        if feed_file() is not None:
            is_hello_samzas(panes)
    edits = [edit["title"] for record in records if "time" in record and (edit := parse_edit(record)) is not None]
    counts = [((r.key or b"").decode(), int.from_bytes(r.value or b"", "big")) for r in read_all(kafka, f"{name}-titles")]
    assert Counter(edits) == dict(counts)
    assert len(counts) == len(edits)
    assert feed_file() is None or len(dict(counts)) == 763
