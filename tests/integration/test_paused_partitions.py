"""A partition that was held back and is given back and assigned anew is read again: after an abort at the inputs' ends, after a move."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.broker import create_topic, produce, read_all
from tests.integration.job import Job

pytestmark = pytest.mark.kafka

PASSING = """
from samzapy import OutgoingMessageEnvelope, StreamTask, SystemStream

class Passing(StreamTask):
    def init(self, context):
        self.out = SystemStream("kafka", context.params["out"])

    def process(self, envelope, collector, coordinator):
        collector.send(OutgoingMessageEnvelope(self.out, envelope.message, envelope.key))
"""

SLOW_AT_FIRST = """
import os
from threading import Event

from samzapy import OutgoingMessageEnvelope, StreamTask, SystemStream

class SlowAtFirst(StreamTask):
    def init(self, context):
        self.out = SystemStream("kafka", context.params["out"])
        self.go = context.params["go"]

    def process(self, envelope, collector, coordinator):
        if envelope.message != "boot":
            collector.send(OutgoingMessageEnvelope(self.out, envelope.message, envelope.message, partition=envelope.partition))
        elif not os.path.exists(self.go):
            Event().wait(0.1)
"""


def _with(job: Job, module: str, task: str) -> Job:
    (job.folder / f"task_{job.name.replace('-', '_')}.py").write_text(module)
    return job


def _is_in(status: dict[str, Any], containers: int, state: str) -> bool:
    """All tasks are in this state, in so many containers."""
    return {(t["container"], t["state"]) for t in status["tasks"]} == {(n, state) for n in range(containers)}


def test_an_abort_at_the_inputs_ends_does_not_keep_a_bounded_run_from_ending(kafka: str, tmp_path: Path, unique: str) -> None:
    """The output is compacted and refuses the one record without a key, when all inputs have been read to their ends."""
    output = create_topic(kafka, f"{unique}-compacted", 1, cleanup_policy="compact")
    job = Job(
        kafka, tmp_path, unique, task="Passing", params={"out": output}, stores={},
        inputs=[{"topic": f"{unique}-in", "key": "string", "value": "string"}],
        outputs=[{"topic": output, "key": "string", "value": "string"}],
        on_error={"then": "skip"}, commit={"interval": "5s"},
    )  # fmt: skip
    _with(job, PASSING, "Passing")
    produce(kafka, job.input, [(None if i == 7 else f"k{i}", f"v{i}", i % 4) for i in range(40)])
    done = job.run_to_end()
    assert done.returncode == 0, done.stderr[-2000:]
    assert sorted(f"v{i}" for i in range(40) if i != 7) == sorted((r.value or b"").decode() for r in read_all(kafka, output))
    assert "was aborted" in done.stderr


def test_a_partition_that_moves_away_and_back_while_its_task_bootstraps_is_read(kafka: str, tmp_path: Path, unique: str) -> None:
    boot, go = create_topic(kafka, f"{unique}-boot", 2), tmp_path / "go"
    job = Job(
        kafka, tmp_path, unique, partitions=2, task="SlowAtFirst", params={"out": f"{unique}-out", "go": str(go)}, stores={},
        inputs=[{"topic": f"{unique}-in", "value": "string"}, {"topic": boot, "value": "string", "bootstrap": True}],
        outputs=[{"topic": f"{unique}-out", "key": "string", "value": "string"}],
        containers={"count": 1},
    )  # fmt: skip
    _with(job, SLOW_AT_FIRST, "SlowAtFirst")
    produce(kafka, boot, [(None, "boot", i % 2) for i in range(200)])
    job.feed([f"v{i}" for i in range(200)])
    with job.running("--local") as running:
        running.until(lambda s: _is_in(s, 1, "BOOTSTRAPPING"))
        job.command("scale", str(job.file), "--containers", "2", "--timeout", "0")
        running.until(lambda s: {t["container"] for t in s["tasks"]} == {0, 1})
        go.touch()
        running.until(lambda s: _is_in(s, 2, "RUNNING"))
        assert job.command("scale", str(job.file), "--containers", "1").returncode == 0
        job.feed([f"v{i}" for i in range(200, 400)])
        running.until_caught_up({f"{unique}-in[{p}]": 200 for p in (0, 1)})
        assert 0 == running.stop()
    assert sorted(f"v{i}" for i in range(400)) == sorted((r.value or b"").decode() for r in read_all(kafka, job.output))
