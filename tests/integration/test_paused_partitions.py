"""A partition that was held back, given back and assigned anew is read again: after an abort at the inputs' ends."""

from __future__ import annotations

from pathlib import Path

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
