"""How long a container that says nothing any more holds up what others read behind an internal topic: its open transaction does, until a new one
has taken its place. That is a lease later if it is frozen, at once if it died, and takes as long as a process needs to start."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import signal
from itertools import pairwise
from pathlib import Path

import pytest

from tests.beside import Beside
from tests.broker import produce, read_all
from tests.figures import Tell
from tests.integration.job import Job

pytestmark = [pytest.mark.kafka, pytest.mark.prove]
CONTAINERS, LEASE_S, TIMEOUT_S, EVERY_S = 8, 10, 300, 0.2
PROGRAM = """
from samzapy.streams import App

app = App()
numbers = app.stream(f"{NAME}-in", value=int).key_by(lambda n: n, "by-number", key=int)
numbers.to(f"{NAME}-out", timestamps="send")
"""


class Fed(Beside):
    """Sends a record to each partition of a topic several times a second, from a thread."""

    def __init__(self, job: Job) -> None:
        super().__init__("fed")
        self._job, self.sent = job, 0

    def _run(self) -> None:
        while not self._stopping.wait(EVERY_S):
            produce(self._job.servers, self._job.input, [(None, (self.sent + p).to_bytes(8, "big"), p) for p in range(CONTAINERS)])
            self.sent += CONTAINERS


def gaps_s(job: Job) -> list[float]:
    """By partition of the output, the longest time in which nothing came, by the times at which records were sent there."""
    times: dict[int, list[int]] = {}
    for record in read_all(job.servers, job.output):
        times.setdefault(record.partition, []).append(record.timestamp)
    return [max(b - a for a, b in pairwise(found)) / 1000 for found in map(sorted, times.values())]


@pytest.mark.parametrize("blow", [signal.SIGSTOP, signal.SIGKILL])
def test_an_open_transaction_holds_the_following_stage_up_until_its_container_is_replaced(kafka: str, tmp_path: Path, tell: Tell, blow: signal.Signals) -> None:
    name = f"frozen-{secrets.token_hex(4)}"
    job = Job(kafka, tmp_path, name, CONTAINERS)
    (tmp_path / "frozen.py").write_text(f"NAME = {name!r}\n{PROGRAM}")
    document = {key: value for key, value in json.loads(job.file.read_text()).items() if key in ("job", "kafka", "state")}
    commit = {"interval": "1s", "timeout": f"{TIMEOUT_S}s"}
    containers = {"count": CONTAINERS, "lease": f"{LEASE_S}s", "max_restarts": 50}
    job.file.write_text(json.dumps({**document, "commit": commit, "containers": containers, "app": "frozen:app"}))
    with job.running("--local") as run, Fed(job) as fed:
        run.until(lambda s: all(t["state"] == "RUNNING" for t in s["tasks"]) and len(read_all(kafka, job.output)) > 500)
        calm = max(gaps_s(job))
        status = run.until(lambda s: all(c["pid"] for c in s["containers"]))
        victim = status["containers"][3]
        os.kill(victim["pid"], blow)
        at = fed.sent
        run.until(lambda s: all(c["pid"] and c["pid"] != victim["pid"] for c in s["containers"]))
        run.until(lambda s: len(read_all(kafka, job.output)) > at + 1000)
        if blow == signal.SIGSTOP:
            with contextlib.suppress(ProcessLookupError):
                os.kill(victim["pid"], signal.SIGKILL)
        assert run.stop() == 0
    assert job.run_to_end().returncode == 0
    found = gaps_s(job)
    each = ", ".join(f"{gap:.1f}" for gap in found)
    tell(f"{blow.name}: nothing came for {max(found):.1f} s at most (by partition {each}); before, {calm:.1f} s. The lease is {LEASE_S} s")
    assert len(read_all(kafka, job.output)) == fed.sent, "none lost, none twice"
    assert max(found) < TIMEOUT_S / 2, "the transaction was ended by whoever took over, not by its own timeout"
