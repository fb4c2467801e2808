"""A partition that was held back, given back and assigned anew is read again: after an abort at the inputs' ends."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.broker import create_topic, ends, produce, read_all
from tests.command_server import Process, start_samzapy
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


JOINING = """
import threading

from samzapy import OutgoingMessageEnvelope, StreamTask, SystemStream

class Joining(StreamTask):
    def init(self, context):
        self.out = SystemStream("kafka", context.params["out"])
        self.users = context.get_store("users")

    def process(self, envelope, collector, coordinator):
        if envelope.stream.endswith("-users"):
            threading.Event().wait(0.01)  # so that the table is still being read when the task is moved
            self.users.put(envelope.key, envelope.message)
        else:
            collector.send(OutgoingMessageEnvelope(self.out, envelope.message, partition=envelope.partition))
"""


def _with(job: Job, module: str, task: str) -> Job:
    (job.folder / f"task_{job.name.replace('-', '_')}.py").write_text(module)
    return job


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
    assert "makes a new Kafka consumer" not in done.stderr, "the watchdog had nothing to mend"


@pytest.mark.slow
def test_an_input_held_back_for_a_table_goes_on_after_its_task_has_left_and_come_back(kafka: str, tmp_path: Path, unique: str) -> None:
    """The container gives the task away while it reads its table, and gets it back when another container has read the rest."""
    users = create_topic(kafka, f"{unique}-users", 2)
    string = {"key": "string", "value": "string"}
    job = Job(
        kafka, tmp_path, unique, partitions=2, task="Joining", stores={"users": string},
        inputs=[{"topic": f"{unique}-in", **string}, {"topic": users, "bootstrap": True, **string}],
        outputs=[{"topic": f"{unique}-out", **string}], containers={"count": 1},
    )  # fmt: skip
    _with(job, JOINING, "Joining")
    produce(kafka, users, [(f"u{i}", "x", i % 2) for i in range(1600)])
    job.feed([f"early {i}" for i in range(20)])

    def scale(containers: int) -> Process:
        return start_samzapy(["scale", str(job.file), "--containers", str(containers)], tmp_path, tmp_path / "scale.log")

    with job.running("--local") as running:
        running.until(lambda s: [t["state"] for t in s["tasks"]] == ["BOOTSTRAPPING"] * 2)
        more = scale(2)
        running.until(lambda s: any((t["container"], t["state"]) == (1, "BOOTSTRAPPING") for t in s["tasks"]))
        running.until(lambda s: [t["state"] for t in s["tasks"]] == ["RUNNING"] * 2)
        assert 0 == more.wait(60)
        less = scale(1)
        running.until(lambda s: [(t["container"], t["state"]) for t in s["tasks"]] == [(0, "RUNNING")] * 2)
        assert 0 == less.wait(60)
        job.feed([f"late {i}" for i in range(20)])
        running.until_caught_up({f"{job.input}[{p}]": end for p, end in ends(kafka, job.input).items()})
        assert 0 == running.stop()
    assert sorted(f"{when} {i}" for when in ("early", "late") for i in range(20)) == sorted((r.value or b"").decode() for r in read_all(kafka, job.output))
    assert "makes a new Kafka consumer" not in (tmp_path / "run.log").read_text(), "the watchdog had nothing to mend"
