"""A program of two stages on a real broker: containers are killed while records go through the internal topic."""

from __future__ import annotations

import json
import os
import random
import secrets
import signal
from collections import Counter
from pathlib import Path

import pytest

from tests.broker import add_partitions, create_topic, produce, read_all
from tests.integration.job import Job

pytestmark = pytest.mark.kafka
T0, PARTITIONS, WORDS = 1_600_041_600_000, 3, 50
PROGRAM = """
from samzapy.streams import App, agg, tumbling

app = App()
lines = app.stream(f"{NAME}-in", value=dict, time=lambda v: v["at"], watermark_delay="2s", idle_timeout="2s")
words = lines.flat_map(lambda v: v["words"], value=int).key_by(lambda n: n, "by-word", key=int)
words.count("counts").to(f"{NAME}-counts")
words.window(tumbling("10s")).count("panes").to(f"{NAME}-panes")
"""


class Staged(Job):
    """As its base, of a program that reads `<name>-in` and counts by word in a second stage."""

    def __init__(self, servers: str, folder: Path, name: str, guarantee: str) -> None:
        super().__init__(servers, folder, name, PARTITIONS)
        for other in ("counts", "panes"):
            create_topic(servers, f"{name}-{other}", PARTITIONS, retention_ms=-1)
        module = "program_" + name.replace("-", "_")
        (folder / f"{module}.py").write_text(f"NAME = {name!r}\n{PROGRAM}")
        document = json.loads(self.file.read_text())
        own = {key: document[key] for key in ("job", "kafka", "commit", "containers", "state")}
        own["commit"] = {**own["commit"], "guarantee": guarantee}
        self.file.write_text(json.dumps({**own, "app": f"{module}:app"}))

    def panes(self) -> list[tuple[int, int, int]]:
        """(word, start of the window, how many) of what is committed."""
        found = [(int.from_bytes(r.key or b"", "big"), json.loads(r.value or b"")) for r in read_all(self.servers, f"{self.name}-panes")]
        return [(word, pane["start"], pane["value"]) for word, pane in found]

    def counts(self) -> dict[int, list[int]]:
        """By word what its count was after each record."""
        found: dict[int, list[int]] = {}
        for record in read_all(self.servers, f"{self.name}-counts"):
            found.setdefault(int.from_bytes(record.key or b"", "big"), []).append(int.from_bytes(record.value or b"", "big"))
        return found


@pytest.mark.parametrize(
    ("guarantee", "kills"),
    [("exactly_once", 1), *(pytest.param(g, 3, marks=pytest.mark.prove) for g in ("exactly_once", "at_least_once"))],
)
def test_what_goes_through_an_internal_topic_is_counted_once(kafka: str, tmp_path: Path, guarantee: str, kills: int) -> None:
    job = Staged(kafka, tmp_path, f"stages-{secrets.token_hex(4)}", guarantee)
    chance = random.Random(secrets.randbits(32))
    lines = [(T0 + n * 50 - chance.randrange(2000), [chance.randrange(WORDS) for _ in range(chance.randrange(4))]) for n in range(3000)]
    wanted = Counter(word for _, words in lines for word in words)
    with job.running("--local") as run:
        for begin in range(0, len(lines), len(lines) // kills):
            part = enumerate(lines[begin : begin + len(lines) // kills])
            produce(kafka, job.input, [(None, json.dumps({"at": at, "words": words}).encode(), n % PARTITIONS) for n, (at, words) in part])
            status = run.until(lambda s: any(c["state"] == "RUNNING" and c["pid"] for c in s["containers"]))
            victim = next(c for c in status["containers"] if c["state"] == "RUNNING" and c["pid"])
            os.kill(victim["pid"], signal.SIGKILL)
            run.until(lambda s, v=victim: all(c["pid"] != v["pid"] for c in s["containers"]))
        run.until(lambda s: sum(map(len, job.counts().values())) >= wanted.total())
        assert run.stop() == 0
    done = job.run_to_end()
    assert done.returncode == 0, done.stderr

    counts = job.counts()
    if guarantee == "exactly_once":
        assert {word: list(range(1, n + 1)) for word, n in wanted.items()} == counts
    assert {word: n for word, n in wanted.items() if n} == {word: max(found) for word, found in counts.items()}
    panes = job.panes()
    windows = Counter((word, at // 10_000 * 10_000) for at, words in lines for word in words)
    assert windows == {(word, start): n for word, start, n in panes}
    assert guarantee != "exactly_once" or len(panes) == len(windows)


FIELDS = """
from dataclasses import dataclass
from samzapy.streams import App

@dataclass
class Paid:
    {fields}

app = App()
paid = app.stream(f"{{NAME}}-in", value=Paid)
paid.key_by(lambda p: p.{who}, "by-user", key=str).count("counts").to(f"{{NAME}}-counts")
"""
UPGRADE = """

    @classmethod
    def upgrade(cls, old):
        return {"user": old["usr"], "cents": old["amount"] * 100}
"""


@pytest.mark.prove
@pytest.mark.parametrize("then", ["fail", "skip"])
def test_classes_change_while_containers_restart_one_by_one(kafka: str, tmp_path: Path, then: str) -> None:
    job = Staged(kafka, tmp_path, f"changed-{secrets.token_hex(4)}", "exactly_once")
    document = json.loads(job.file.read_text())
    job.file.write_text(json.dumps({**document, "containers": {**document["containers"], "count": 2}, "on_error": {"then": then}}))
    (module,) = tmp_path.glob("program_*.py")
    module.write_text(f"NAME = {job.name!r}\n" + FIELDS.format(fields="usr: str\n    amount: int", who="usr"))
    sent: Counter[str] = Counter()

    def feed(count: int) -> None:
        users = [f"u{n % 40}" for n in range(count)]
        sent.update(users)
        produce(kafka, job.input, [(None, json.dumps({"usr": user, "amount": 1}), n % PARTITIONS) for n, user in enumerate(users)])

    def counts() -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for record in read_all(job.servers, f"{job.name}-counts"):
            found.setdefault((record.key or b"").decode(), []).append(int.from_bytes(record.value or b"", "big"))
        return found

    with job.running("--local") as run:
        feed(300)
        run.until(lambda s: sum(map(len, counts().values())) == sent.total())
        module.write_text(f"NAME = {job.name!r}\n" + FIELDS.format(fields="user: str\n    cents: int" + UPGRADE, who="user"))
        restarted = job.command("restart", str(job.file), "--container", "0")
        assert restarted.returncode == 0, restarted.stderr
        feed(300)  # container 0 sends records to container 1 that its old code cannot read
        run.until(lambda s: sum(map(len, counts().values())) == sent.total())
        assert run.stop() == 0
    assert {user: list(range(1, n + 1)) for user, n in sent.items()} == counts()


@pytest.mark.prove
def test_windows_lose_nothing_of_partitions_that_come_while_the_job_runs(kafka: str, tmp_path: Path) -> None:
    job = Staged(kafka, tmp_path, f"grown-{secrets.token_hex(4)}", "exactly_once")
    wanted: Counter[tuple[int, int]] = Counter()

    def feed(begin: int, end: int, partitions: int) -> None:
        lines = [(T0 + ms, [ms // 100 % WORDS]) for ms in range(begin, end, 20)]
        wanted.update((word, at // 10_000 * 10_000) for at, words in lines for word in words)
        produce(kafka, job.input, [(None, json.dumps({"at": at, "words": words}).encode(), n % partitions) for n, (at, words) in enumerate(lines)])

    with job.running("--local") as run:
        feed(0, 30_000, PARTITIONS)
        run.until(lambda s: sum(map(len, job.counts().values())) == wanted.total())
        add_partitions(kafka, job.input, PARTITIONS + 1)
        feed(28_500, 31_000, PARTITIONS + 1)
        assert run.process.wait(150) == 1  # a service manager is to start it again
    said = (job.folder / "run.log").read_text()
    assert f"{job.input}[{PARTITIONS}]: added while the job runs" in said
    feed(31_000, 60_000, PARTITIONS + 1)
    done = job.run_to_end()
    assert done.returncode == 0, done.stderr
    assert wanted == {(word, start): n for word, start, n in job.panes()}
