"""Windows of event time on a real broker: containers are killed while records come out of order, and a partition falls silent."""

from __future__ import annotations

import json
import os
import random
import secrets
import signal
from collections import Counter
from pathlib import Path

import pytest

from samzapy.streams.operators.rows import CURSOR, SLICE
from tests.broker import create_topic, ends, produce, read_all
from tests.integration.job import Job

pytestmark = pytest.mark.kafka
T0, SIZE, DELAY, PARTITIONS = 1_600_041_600_000, 10_000, 3_000, 2
RECORDS = 6000
PROGRAM = """
from samzapy.streams import App, tumbling

app = App()
a, b = (app.stream(f"{NAME}-{which}", key=str, value=dict, time=lambda v: v["at"], watermark_delay="3s", idle_timeout="2s") for which in ("in", "b"))
panes = a.merge(b).window(tumbling("10s"), allowed_lateness="10s").count("counts")
panes.to(f"{NAME}-panes")
panes.late.to(f"{NAME}-late", value=dict)
"""


class Windows(Job):
    """As its base, of a program with two inputs: `<name>-in` and `<name>-b`."""

    def __init__(self, servers: str, folder: Path, name: str) -> None:
        super().__init__(servers, folder, name, PARTITIONS)
        self.output = f"{name}-panes"
        for other in ("b", "late", "panes"):
            create_topic(servers, f"{name}-{other}", PARTITIONS, retention_ms=-1)  # panes have the times of their windows, which are years ago
        module = "program_" + name.replace("-", "_")
        (folder / f"{module}.py").write_text(f"NAME = {name!r}\n{PROGRAM}")
        document = json.loads(self.file.read_text())
        own = {key: document[key] for key in ("job", "kafka", "commit", "containers", "state")}
        self.file.write_text(json.dumps({**own, "app": f"{module}:app"}))

    def send(self, topic: str, records: list[tuple[int, str, int]]) -> None:
        """Records of (partition, key, time)."""
        produce(self.servers, topic, [(key.encode(), json.dumps({"at": at}).encode(), partition) for partition, key, at in records])

    def panes(self) -> list[tuple[str, int, str, int]]:
        """(key, end, kind, count) of what is committed."""
        found = [((r.key or b"").decode(), json.loads(r.value or b"")) for r in read_all(self.servers, self.output)]
        return [(key, pane["end"], pane["pane"], pane["value"]) for key, pane in found]


def disordered(count: int, seconds: int) -> list[tuple[int, str, int]]:
    """Over that many seconds, none more than DELAY older than one before it of its partition."""
    chance = random.Random(secrets.randbits(32))
    times = sorted((T0 + n * seconds * 1000 // count, chance.randrange(PARTITIONS)) for n in range(count))
    return [(partition, f"{partition}-{chance.randrange(20)}", at - chance.randrange(DELAY)) for at, partition in times]


@pytest.mark.parametrize("kills", [1, 3])
@pytest.mark.prove
def test_windows_are_right_after_kills_with_disorder_and_a_partition_that_falls_silent(kafka: str, tmp_path: Path, kills: int) -> None:
    job = Windows(kafka, tmp_path, f"windows-{secrets.token_hex(4)}")
    records, few = disordered(RECORDS, 600), disordered(200, 60)
    other = f"{job.name}-b"
    job.send(other, few)  # after a minute of its time it is silent for ever
    with job.running("--local") as run:
        for begin in range(0, RECORDS, RECORDS // kills):
            job.send(job.input, records[begin : begin + RECORDS // kills])
            status = run.until(lambda s: any(c["state"] == "RUNNING" and c["pid"] for c in s["containers"]))
            victim = next(c for c in status["containers"] if c["state"] == "RUNNING" and c["pid"])
            os.kill(victim["pid"], signal.SIGKILL)
            run.until(lambda s, v=victim: all(c["pid"] != v["pid"] for c in s["containers"]))
        at = {f"{topic}[{p}]": end for topic in (job.input, other) for p, end in ends(kafka, topic).items()}
        run.until_caught_up(at)
        newest = {p: max(at for partition, _, at in records if partition == p) - DELAY for p in range(PARTITIONS)}
        # The silent input is left out of the minimum once the broker has said that it stands at its end.
        assert "older than its retention.ms" not in (job.folder / "run.log").read_text()
        run.until(lambda s: all(min(w["watermark"] or 0 for w in t["time"].values()) >= min(newest.values()) for t in s["tasks"]))
        run.until(lambda s: all("silent" in w["waits_for"] or "any input" in w["waits_for"] for t in s["tasks"] for w in t["time"].values()))
        assert run.stop() == 0
    while_running = job.panes()
    assert len(while_running) > 1000
    done = job.run_to_end()
    assert done.returncode == 0, done.stderr

    expected = Counter((key, (at - T0) // SIZE * SIZE + SIZE + T0) for _, key, at in (*records, *few))
    panes = job.panes()
    assert len(panes) == len(expected)
    assert {pane[:2]: pane[3] for pane in panes} == expected
    assert {pane[2] for pane in panes} == {"on_time"}
    assert read_all(kafka, f"{job.name}-late") == []
    left = {(r.partition, r.key): r.value for r in read_all(kafka, job.changelog) if r.key and r.key[:1] in (SLICE, CURSOR)}
    kept = [key for (_, key), value in left.items() if value is not None and not key.startswith(b"\x00samzapy")]
    assert set(kept) == {CURSOR}, "nothing is left of any window; only how far they have fired"
