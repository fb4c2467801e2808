"""`samzapy chaos` on a real broker: a job that keeps its word is clean, one that counts in memory is found out, the user's topics are safe."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from samzapy.api.errors import ConfigurationError
from samzapy.cli.main import app
from tests.broker import admin, create_topic, produce, read_all

pytestmark = pytest.mark.kafka

TASK = """
from samzapy import OutgoingMessageEnvelope, StreamTask, SystemStream

class Count(StreamTask):
    def init(self, context):
        self.out = SystemStream("kafka", context.params["out"])
        self.counts = context.get_store("counts")

    def process(self, envelope, collector, coordinator):
        n = (self.counts.get(envelope.key) or 0) + 1
        self.counts.put(envelope.key, n)
        collector.send(OutgoingMessageEnvelope(self.out, n, envelope.key))

class Forgets(Count):
    def init(self, context):
        super().init(context)
        self.counts_here = {}

    def process(self, envelope, collector, coordinator):
        n = self.counts_here[envelope.key] = self.counts_here.get(envelope.key, 0) + 1
        collector.send(OutgoingMessageEnvelope(self.out, n, envelope.key))
"""
KILL_FIRST = 1  # a seed


@pytest.fixture
def job(kafka: str, tmp_path: Path, unique: str) -> Path:
    (tmp_path / f"task_{unique.replace('-', '_')}.py").write_text(TASK)
    document = {
        "job": unique, "task": f"task_{unique.replace('-', '_')}:Count", "params": {"out": f"{unique}-out"},
        "kafka": {"bootstrap.servers": kafka}, "inputs": [{"topic": f"{unique}-in", "key": "string", "value": "json"}],
        "outputs": [{"topic": f"{unique}-out", "key": "string", "value": "integer"}],
        "stores": {"counts": {"key": "string", "value": "integer"}}, "commit": {"interval": "200ms"}, "containers": {"count": 2},
        "state": {"dir": str(tmp_path / "state")},
    }  # fmt: skip
    path = tmp_path / "job.yaml"
    path.write_text(json.dumps(document))
    return path


@pytest.fixture
def records(tmp_path: Path) -> Path:
    path = tmp_path / "records.jsonl"
    path.write_text("".join(json.dumps({"key": f"key-{n % 20}", "value": {"n": n}}) + "\n" for n in range(2000)))
    return path


def becomes(job: Path, unique: str, program: str) -> None:
    """Make the job file that of a program, which finds the beginning of its topics' names in `NAME`."""
    module = f"program_{unique.replace('-', '_')}"
    (job.parent / f"{module}.py").write_text(f"NAME = {unique!r}\n{program}")
    document = json.loads(job.read_text())
    job.write_text(json.dumps({**{key: document[key] for key in ("job", "kafka", "commit", "containers", "state")}, "app": f"{module}:app"}))


def chaos(job: Path, records: Path, *options: str) -> Result:
    return CliRunner().invoke(
        app, ["chaos", str(job), "--input", str(records), "--yes-on-this-cluster", *options], standalone_mode=False
    )  # fmt: skip


@pytest.mark.prove
@pytest.mark.slow
def test_a_job_that_keeps_its_word_is_clean_and_nothing_is_left(kafka: str, job: Path, records: Path, unique: str) -> None:
    told = chaos(job, records, "--seed", str(KILL_FIRST), "--minutes", "0.1", "--partitions", "2", "--ordered")

    assert 0 == told.return_value, told.output + str(told.exception)
    assert "CLEAN: 2000 records and 20 store entries are the same as without faults; " in told.output
    assert re.search(r"[1-9]\d* of \d+ faults hit the job while it was working, [1-9]\d* of them as SIGKILL; seed 1\n", told.output), told.output
    assert [] == [topic for topic in admin(kafka).list_topics(timeout=30).topics if unique in topic]


PROGRAM = """
from samzapy.streams import App, agg, tumbling

app = App()
numbers = app.stream(f"{NAME}-in", value=dict, time=lambda v: 1_600_000_000_000 + v["n"] * 100, watermark_delay="1s", idle_timeout="2s")
by_rest = numbers.key_by(lambda v: v["n"] % 7, "by-rest", key=int)
by_rest.window(tumbling("10s")).aggregate("sums", n=agg.count(), most=agg.max(lambda v: v["n"])).to(f"{NAME}-sums")
numbers.broadcast("all").count("seen").to(f"{NAME}-seen")
"""


@pytest.mark.prove
@pytest.mark.slow
def test_a_program_of_two_stages_is_clean_and_nothing_is_left(kafka: str, job: Path, records: Path, unique: str) -> None:
    """Its records are years old; how far its windows have fired is another time in each run."""
    becomes(job, unique, PROGRAM)
    told = chaos(job, records, "--seed", str(KILL_FIRST), "--minutes", "0.2", "--partitions", "2")

    assert 0 == told.return_value, told.output + str(told.exception)
    assert "CLEAN: " in told.output
    assert [] == [topic for topic in admin(kafka).list_topics(timeout=30).topics if unique in topic]


TOTALS = """
from samzapy.streams import App

app = App()
numbers = app.stream(f"{NAME}-in", key=str, value=dict)
numbers.map(lambda v: v["n"], value=int).key_by(lambda n: n % 3, "by-rest", key=int).reduce("totals", lambda a, b: a + b).to(f"{NAME}-totals")
"""


@pytest.mark.prove
@pytest.mark.slow
def test_running_totals_over_partitions_differ_without_faults_too_and_prove_nothing(kafka: str, job: Path, records: Path, unique: str) -> None:
    becomes(job, unique, TOTALS)
    many = ("--partitions", "12")  # of four, each read at once, there are few orders, and two runs may well have the same
    told = chaos(job, records, "--seed", str(KILL_FIRST), "--minutes", "0.1", *many)

    assert 1 == told.return_value, told.output + str(told.exception)
    assert f"INVALID: two runs without faults differ in topic {unique}-totals too: " in told.output
    assert [] == [topic for topic in admin(kafka).list_topics(timeout=30).topics if unique in topic]


@pytest.mark.prove
@pytest.mark.slow
def test_a_task_that_counts_in_memory_is_found_out(job: Path, records: Path) -> None:
    job.write_text(job.read_text().replace(":Count", ":Forgets"))

    told = chaos(job, records, "--seed", str(KILL_FIRST), "--minutes", "0.1", "--partitions", "2")

    assert 1 == told.return_value, told.output + str(told.exception)
    assert "missing, the first: partition" in told.output
    assert "DIFFERS" in told.output


def test_topics_that_are_there_are_never_touched(kafka: str, job: Path, records: Path, unique: str) -> None:
    create_topic(kafka, f"{unique}-in")
    produce(kafka, f"{unique}-in", [("k", "theirs")])

    told = chaos(job, records)

    assert isinstance(told.exception, ConfigurationError)
    assert f"{unique}-in: exists already, and this command changes no existing topic." in str(told.exception)
    assert [b"theirs"] == [r.value for r in read_all(kafka, f"{unique}-in")]


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("nonsense", "line 1: Expecting value"),
        ('{"key": "k"}', 'line 1: not a document with "value"'),
        ('{"value": 1, "topic": "other"}', "line 1: topic 'other' is not an input of the job"),
        ('{"key": 7, "value": 1}', "line 1: "),
        ("", "holds no records"),
    ],
)
def test_lines_that_are_no_records_are_told(job: Path, tmp_path: Path, line: str, complaint: str) -> None:
    (tmp_path / "bad").write_text(line + "\n")

    told = chaos(job, tmp_path / "bad")
    assert isinstance(told.exception, ConfigurationError)
    assert complaint in str(told.exception)
