"""What goes through internal topics and what waits for time, on a real broker and with real processes: each as it is, and with three SIGKILLs."""

from __future__ import annotations

import json
import os
import random
import secrets
import signal
import subprocess
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from samzapy.dev.jars import kafka_jars
from samzapy.dev.java import find_java
from samzapy.model.marks import MARKS_KEY
from tests.broker import create_topic, ends, produce, read_all
from tests.figures import Tell
from tests.integration.job import Job, Running
from tests.integration.test_rows_of_streams import kill_one

pytestmark = [pytest.mark.kafka, pytest.mark.prove]
T0, TASKS = 1_600_041_600_000, 4
KILLS = pytest.mark.parametrize("kills", [0, 3])


class Program(Job):
    """A job of a program's source, in which NAME is the job's name."""

    def __init__(self, servers: str, folder: Path, name: str, source: str, tasks: int = TASKS, topics: tuple[str, ...] = (), **sections: Any) -> None:
        super().__init__(servers, folder, name, tasks)
        for topic in topics:
            create_topic(servers, f"{name}-{topic}", tasks, retention_ms=-1)
        module = "program_" + name.replace("-", "_")
        (folder / f"{module}.py").write_text(f"NAME = {name!r}\n{source}")
        document = json.loads(self.file.read_text())
        own = {key: document[key] for key in ("job", "kafka", "commit", "containers", "state")}
        self.file.write_text(json.dumps({**own, "app": f"{module}:app", **sections}))

    def fed(self, topic: str, records: list[tuple[Any, bytes, int]], kills: int) -> None:
        """Send records while it runs, in as many parts as there are kills; then run it to the end."""
        chance = random.Random(self.name)
        with self.running("--local") as run:
            run.until(lambda s: all(t["state"] == "RUNNING" for t in s["tasks"]))
            for part in range(kills + 1):
                produce(self.servers, topic, records[len(records) * part // (kills + 1) : len(records) * (part + 1) // (kills + 1)])
                if part < kills:
                    kill_one(run, chance)
            run.until_caught_up({f"{topic}[{p}]": end for p, end in ends(self.servers, topic).items()})
            assert run.stop() == 0
        done = self.run_to_end()
        assert done.returncode == 0, done.stderr

    def out(self, topic: str) -> list[Any]:
        return [json.loads(r.value or b"null") for r in read_all(self.servers, f"{self.name}-{topic}")]


# -- a topic of a Java client ------------------------------------------------------------------------------------------------------------------

JAVA = """
import java.util.Properties;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.serialization.StringSerializer;

public class Send {
    public static void main(String[] given) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", given[0]);
        try (Producer<String, String> producer = new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer())) {
            for (int n = 0; n < 1000; n++) producer.send(new ProducerRecord<>(given[1], "key-" + n, "java-" + n));
        }
    }
}
"""
JOINED = """
from samzapy.streams import App

app = App()
theirs = app.table(f"{NAME}-java", key=str, value=str)
ours = app.stream(f"{NAME}-in", value=str).key_by(lambda line: f"key-{line}", "by-name", key=str)
ours.lookup(theirs).map(lambda pair: list(pair), value=list).to(f"{NAME}-out")
"""


@KILLS
def test_keys_lie_where_a_java_client_puts_them_and_a_join_misses_no_pair(kafka: str, tmp_path: Path, kills: int) -> None:
    """P5."""
    name = f"java-{secrets.token_hex(4)}"
    job = Program(kafka, tmp_path, name, JOINED, topics=("java",))
    java = find_java()
    (tmp_path / "Send.java").write_text(JAVA)
    jars = kafka_jars(java, lambda text: None)
    subprocess.run([java.executable, "-cp", f"{jars}/*", str(tmp_path / "Send.java"), kafka, f"{name}-java"], check=True, capture_output=True, timeout=120)
    theirs = {r.key: r.partition for r in read_all(kafka, f"{name}-java")}
    job.fed(job.input, [(None, str(n).encode(), n % TASKS) for n in range(1000)], kills)
    pairs = Counter(map(tuple, job.out("out")))
    assert Counter((str(n), f"java-{n}") for n in range(1000)) == pairs
    ours = [(r.key, r.partition) for r in read_all(kafka, f"{name}-1-by-name") if r.key != MARKS_KEY]
    assert len(ours) == 1000 == len(theirs)
    assert theirs == dict(ours)


# -- who gets what -----------------------------------------------------------------------------------------------------------------------------

GROUPINGS = """
from samzapy.kafka.admin import KafkaAdmin
from samzapy.streams import App

KafkaAdmin.delete_records = lambda admin, before: None  # what went through can be looked at afterwards

app = App()
numbers = app.stream(f"{NAME}-in", key=str, value=int)
for name, part in {
    "partial": numbers.repartition("partial", choices=2),
    "shuffled": numbers.repartition("shuffled", by="round_robin"),
    "direct": numbers.repartition("direct", by=lambda n: n % 3),
    "fields": numbers.key_by(lambda n: n % 100, "fields", key=int),
    "global": numbers.key_by(lambda n: 0, "global", key=int),
    "all": numbers.broadcast("all"),
}.items():
    part.map(lambda n: [n], value=list).to(f"{NAME}-{name}-out")
"""
EIGHT, NUMBERS = 8, 10_000
WAYS = ("partial", "shuffled", "direct", "fields", "global", "all")


def by_partition(job: Job, way: str) -> list[tuple[int, int]]:
    """Partition and number of what is committed in an internal topic."""
    found = [r for r in read_all(job.servers, f"{job.name}-1-{way}") if r.key != MARKS_KEY]
    return [(r.partition, int.from_bytes(r.value or b"", "big")) for r in found]


@KILLS
def test_who_gets_what_with_all_groupings(kafka: str, tmp_path: Path, kills: int) -> None:
    """P6: 10,000 records, eight tasks."""
    job = Program(kafka, tmp_path, f"groups-{secrets.token_hex(4)}", GROUPINGS, EIGHT, tuple(f"{way}-out" for way in WAYS))
    job.fed(job.input, [(b"most" if n % 10 else b"%d" % n, n.to_bytes(8, "big"), n % EIGHT) for n in range(NUMBERS)], kills)
    once = Counter(range(NUMBERS))
    for way in WAYS:
        assert Counter(n for (n,) in job.out(f"{way}-out")) == (Counter(dict.fromkeys(once, EIGHT)) if way == "all" else once), way
    found = {way: by_partition(job, way) for way in WAYS}
    shares = Counter(p for p, _ in found["shuffled"])
    assert len(shares) == EIGHT
    assert max(shares.values()) <= 1.2 * min(shares.values())
    assert all(p == n % 3 for p, n in found["direct"])
    assert len({p for p, _ in found["global"]}) == 1
    assert max(Counter(p for p, _ in found["partial"]).values()) <= 0.6 * NUMBERS  # 90 % have one key
    assert len({p for p, n in found["partial"] if n % 10}) == 2
    assert all(len({p for p, n in found["fields"] if n % 100 == key}) == 1 for key in range(100))
    assert Counter(n for _, n in found["all"]) == Counter(dict.fromkeys(range(NUMBERS), EIGHT))
    assert all(Counter(p for p, _ in found["all"])[p] == NUMBERS for p in range(EIGHT))


# -- time --------------------------------------------------------------------------------------------------------------------------------------

ORDERS = """
from samzapy.streams import App, agg, tumbling

app = App()
for order in range(20):
    numbers = app.stream(f"{NAME}-in{order}", key=str, value=dict, time=lambda v: v["at"], watermark_delay="30s", idle_timeout=None)
    numbers.window(tumbling("10s")).aggregate(f"w{order}", n=agg.count(), total=agg.sum(lambda v: v["n"])).to(f"{NAME}-out{order}")
"""
MIXED = 30_000  # ms by which records are out of order at most


@KILLS
def test_twenty_random_orders_within_the_bound_give_the_same_windows(kafka: str, tmp_path: Path, kills: int) -> None:
    """W2: the same records in twenty orders, each in a topic of its own."""
    name = f"orders-{secrets.token_hex(4)}"
    chance = random.Random(name)
    topics = tuple(f"{way}{order}" for order in range(20) for way in ("in", "out"))
    job = Program(kafka, tmp_path, name, ORDERS, 2, topics)
    records = [(chance.randrange(6), chance.randrange(300_000), chance.randrange(1000)) for _ in range(400)]
    for order in range(20):
        mixed = sorted(records, key=lambda record: record[1] + chance.uniform(0, MIXED))
        assert order == 0 or mixed != records
        sent = [(f"k{k}".encode(), json.dumps({"at": T0 + at, "n": n}).encode(), k % 2) for k, at, n in mixed]
        half = len(sent) // 2
        produce(kafka, f"{name}-in{order}", sent[:half])
        job_rest = sent[half:]
        (tmp_path / f"rest{order}").write_text(json.dumps([(k.decode(), v.decode(), p) for k, v, p in job_rest]))
    with job.running("--local") as run:
        run.until(lambda s: all(t["state"] == "RUNNING" for t in s["tasks"]))
        for kill in range(kills):
            if kill == 1:
                send_rest(job, tmp_path)
            kill_one(run, chance)
        if kills == 0:
            send_rest(job, tmp_path)
        run.until_caught_up({f"{name}-in{order}[{p}]": end for order in range(20) for p, end in ends(kafka, f"{name}-in{order}").items()})
        assert run.stop() == 0
    done = job.run_to_end()
    assert done.returncode == 0, done.stderr
    sums: dict[tuple[str, int], tuple[int, int]] = {}
    for k, at, n in records:
        count, total = sums.get((f"k{k}", at // 10_000), (0, 0))
        sums[f"k{k}", at // 10_000] = count + 1, total + n
    wanted = sorted((key, T0 + start * 10_000, "on_time", n, total) for (key, start), (n, total) in sums.items())
    for order in range(20):
        found = [((r.key or b"").decode(), json.loads(r.value or b"")) for r in read_all(kafka, f"{name}-out{order}")]
        assert wanted == sorted((key, p["start"], p["pane"], p["n"], p["total"]) for key, p in found), order


def send_rest(job: Job, folder: Path) -> None:
    for order in range(20):
        rest = json.loads((folder / f"rest{order}").read_text())
        produce(job.servers, f"{job.name}-in{order}", [(k.encode(), v.encode(), p) for k, v, p in rest])


WAITING = """
from samzapy.streams import App, agg, tumbling

app = App()
numbers = app.stream(f"{NAME}-in", key=str, value=dict, time=lambda v: v["at"], watermark_delay="0s", idle_timeout="5s")
by_key = numbers.key_by(lambda v: v["at"] % 7, "by-rest", key=int)
panes = by_key.window(tumbling("10s")).count("panes")
panes.to(f"{NAME}-panes", timestamps="send")
panes.late.to(f"{NAME}-late", value=dict)
"""


def timed(partition: int, seconds: float) -> tuple[bytes, bytes, int]:
    return b"k", json.dumps({"at": T0 + round(seconds * 1000)}).encode(), partition


def test_windows_close_without_a_silent_partition_within_its_idle_timeout(kafka: str, tmp_path: Path, tell: Tell) -> None:
    """W3: four partitions, one of them silent."""
    job = Program(kafka, tmp_path, f"silent-{secrets.token_hex(4)}", WAITING, TASKS, ("panes", "late"))
    with job.running("--local") as run:
        run.until(lambda s: all(t["state"] == "RUNNING" for t in s["tasks"]))
        produce(kafka, job.input, [timed(p, n / 10) for n in range(100) for p in range(3)] + [timed(p, 20) for p in range(3)])
        run.until(lambda s: len(job.out("panes")) == 7)
        sent = max(r.timestamp for r in read_all(kafka, job.input))
        assert sum(p["value"] for p in job.out("panes")) == 300
        assert run.stop() == 0
    closed = max(r.timestamp for r in read_all(kafka, f"{job.name}-panes"))
    tell(f"windows closed {(closed - sent) / 1000:.1f} s after the last record, a partition being silent with idle_timeout=5s")
    assert 0 <= closed - sent < 60_000, "long before the five minutes that are the default"


def test_no_window_closes_while_a_container_of_the_stage_before_stands_still(kafka: str, tmp_path: Path) -> None:
    """W3: two stages and three tasks that feed the second; the container of one is stopped by SIGSTOP with records of its own unread."""
    containers = {"count": 3, "lease": "120s", "max_restarts": 50}
    commit = {"interval": "200ms", "timeout": "300s"}
    job = Program(kafka, tmp_path, f"stopped-{secrets.token_hex(4)}", WAITING, 3, ("panes", "late"), containers=containers, commit=commit)
    with job.running("--local") as run:
        run.until(lambda s: all(t["state"] == "RUNNING" for t in s["tasks"]))
        produce(kafka, job.input, [timed(p, n / 10) for n in range(10) for p in range(3)])
        run.until_caught_up({f"{job.input}[{p}]": end for p, end in ends(kafka, job.input).items()})
        status = run.until(lambda s: all(c["pid"] for c in s["containers"]))
        victim = random.Random(job.name).choice(status["containers"])
        task = next(t for t in status["tasks"] if t["container"] == victim["id"])
        silent = int(task["name"].rsplit(" ", 1)[1])
        os.kill(victim["pid"], signal.SIGSTOP)
        try:
            produce(kafka, job.input, [timed(silent, 2 + n / 10) for n in range(50)] + [timed(p, 30 + n) for p in range(3) for n in range(40) if p != silent])
            others = {f"{job.input}[{p}]": end for p, end in ends(kafka, job.input).items() if p != silent}
            reached(run, others)
            for _ in range(8):  # longer than the idle timeout, which says nothing of a task that does not answer
                threading.Event().wait(1.0)
                assert [] == job.out("panes")
        finally:
            os.kill(victim["pid"], signal.SIGCONT)
        run.until(lambda s: sum(p["value"] for p in job.out("panes") if p["start"] == T0) == 80)
        produce(kafka, job.input, [timed(silent, 100)])
        assert run.stop() == 0
    done = job.run_to_end()
    assert done.returncode == 0, done.stderr
    assert [] == job.out("late")
    times = [n * 100 for n in range(10)] * 3 + [2000 + n * 100 for n in range(50)] + [30_000 + n * 1000 for n in range(40)] * 2 + [100_000]
    wanted = Counter(((T0 + at) % 7, at // 10_000) for at in times)
    found = [(int.from_bytes(r.key or b"", "big"), json.loads(r.value or b"")) for r in read_all(kafka, f"{job.name}-panes")]
    assert sorted((key, start, n) for (key, start), n in wanted.items()) == sorted((key, (p["start"] - T0) // 10_000, p["value"]) for key, p in found)


def reached(run: Running, ends: dict[str, int]) -> None:
    """Those that still answer have read to these ends; of the others nothing is asked."""
    run.until(lambda s: all({**{place: at for t in s["tasks"] for place, at in t["positions"].items()}}.get(place, 0) >= end for place, end in ends.items()))


# -- names -------------------------------------------------------------------------------------------------------------------------------------

HOURS = """
from samzapy.streams import App, agg, tumbling

app = App()
clicks = app.stream(f"{NAME}-in", key=str, value=dict, time=lambda v: v["at"], watermark_delay="10s", idle_timeout="5s")
paid = clicks.key_by(lambda v: v["campaign"], "by-campaign", key=str)
paid.window(tumbling("1h")).aggregate("campaign-hours", n=agg.count()).to(f"{NAME}-hours")
"""


@KILLS
def test_a_program_that_changes_over_state(kafka: str, tmp_path: Path, kills: int) -> None:
    """Names: renamed, another length: refused; an operator without state, a new window: it goes on, and the new one begins empty."""
    job = Program(kafka, tmp_path, f"names-{secrets.token_hex(4)}", HOURS, TASKS, ("hours", "days"))
    chance, module = random.Random(job.name), tmp_path / f"program_{job.name.replace('-', '_')}.py"

    def send(count: int, since: int) -> Counter[tuple[str, int]]:
        sent = [(f"c{chance.randrange(5)}", T0 + since + n * 60_000) for n in range(count)]
        produce(kafka, job.input, [(None, json.dumps({"campaign": c, "at": at}).encode(), n % TASKS) for n, (c, at) in enumerate(sent)])
        return Counter((c, at // 3_600_000) for c, at in sent)

    def changed(*pairs: tuple[str, str]) -> subprocess.CompletedProcess[str]:
        source = HOURS
        for old, new in pairs:
            assert old in source
            source = source.replace(old, new)
        module.write_text(f"NAME = {job.name!r}\n{source}")
        return job.run_to_end()

    wanted = send(300, 0)
    with job.running("--local") as run:
        for _ in range(kills):
            kill_one(run, chance)
        run.until_caught_up({f"{job.input}[{p}]": end for p, end in ends(kafka, job.input).items()})
        assert run.stop() == 0
    renamed = changed(('"campaign-hours"', '"per-campaign"'))
    assert renamed.returncode != 0
    assert all(f"'{name}'" in renamed.stderr for name in ("campaign-hours", "per-campaign")), renamed.stderr
    longer = changed(('"1h"', '"2h"'))
    assert longer.returncode != 0
    assert "campaign-hours" in longer.stderr
    assert "tumbling 1h" in longer.stderr
    assert "tumbling 2h" in longer.stderr
    inserted = changed(("paid.window", "paid.map(lambda v: dict(v), value=dict).window"))
    assert inserted.returncode == 0, inserted.stderr
    later = send(300, 100 * 3_600_000)
    days = 'paid.window(tumbling("1d")).aggregate("campaign-days", n=agg.count()).to(f"{NAME}-days")\n'
    added = changed(("paid.window", f"{days}paid.window"))
    assert added.returncode == 0, added.stderr
    found = {topic: [((r.key or b"").decode(), json.loads(r.value or b"")) for r in read_all(kafka, f"{job.name}-{topic}")] for topic in ("hours", "days")}
    assert wanted + later == Counter({(key, p["start"] // 3_600_000): p["n"] for key, p in found["hours"]})
    assert len(found["hours"]) == len(wanted + later)
    assert sum(p["n"] for _, p in found["days"]) == later.total()


# -- panes that fail -----------------------------------------------------------------------------------------------------------------------------

FAILING = """
from samzapy.streams import App, agg, hopping


def refuses(pane, key):
    if key % 5 == 3:
        raise ValueError(f"not {key}")


app = App()
numbers = app.stream(f"{NAME}-in", key=int, value=dict, time=lambda v: v["at"], watermark_delay="30s", idle_timeout="5s")
panes = numbers.window(hopping("20s", every="10s")).aggregate("panes", n=agg.count(), total=agg.sum(lambda v: v["n"]))
panes.peek(refuses).to(f"{NAME}-panes", timestamps="send")
"""


@KILLS
def test_panes_that_fail_are_set_aside_once_and_all_others_come_once(kafka: str, tmp_path: Path, kills: int) -> None:
    """A function refuses the panes of four keys; sums of one more are beyond 64 bits where two slices meet. The job goes on."""
    name = f"failing-{secrets.token_hex(4)}"
    job = Program(kafka, tmp_path, name, FAILING, TASKS, ("panes",), on_error={"then": "dead_letter"})
    huge = 1 << 63
    records = [(key, at, huge if key == 0 and at in (5, 15) else 1) for at in range(0, 600, 5) for key in range(20)]
    sent = [(key.to_bytes(8, "big"), json.dumps({"at": T0 + at * 1000, "n": n}).encode(), key % TASKS) for key, at, n in records]
    job.fed(job.input, sent, kills)
    found = Counter((int.from_bytes(r.key or b"", "big"), json.loads(r.value or b"")["start"]) for r in read_all(kafka, f"{name}-panes"))
    letters = [(r.key, json.loads(r.value or b"")["start"]) for r in read_all(kafka, f"{name}-1-dead-letter") if r.key is not None]
    wanted = {(key, T0 + start * 1000) for key in range(20) for start in range(-10, 600, 10)}
    refused = {(key, start) for key, start in wanted if key % 5 == 3} | {(0, T0)}
    assert Counter(dict.fromkeys(wanted - refused, 1)) == found
    assert Counter(dict.fromkeys(refused, 1)) == Counter((int.from_bytes(key, "big"), start) for key, start in letters)
    replayed = job.command("dlq", "replay", str(job.file), "--all", "--execute")
    assert "is a window's result, not a record" in replayed.stderr, replayed.stderr
