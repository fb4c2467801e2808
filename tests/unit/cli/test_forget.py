"""`samzapy state drop` and `checkpoint forget` of what the job has: what is told can be done."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from samzapy.api.errors import ConfigurationError
from samzapy.cli.forget import _other_changelogs, drop, forget
from samzapy.config.errors import ConfigError
from samzapy.model.ownership import LEASE_KEY, LeaseRecord
from samzapy.wiring.job_file import load_program
from tests.unit.container.bench import JOB
from tests.unit.ops.test_letters_again import stopped

FILE = """
job: job
task: tests.recovery.chain_task:ChainTask
kafka: {bootstrap.servers: "127.0.0.1:1"}
inputs: [{topic: in}]
stores: {s: {key: string, value: string}}
"""


def test_a_store_that_is_in_the_job_file_is_not_dropped(tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    file.write_text(FILE)
    with pytest.raises(ConfigurationError, match="store 's' is in the job file"):
        drop(file, "s", execute=True)


PROGRAM = """
from samzapy.streams import App

app = App()
app.stream("forget-in", key=str, value=str).key_by(lambda v: v, "by-v", key=str).count("counts").to("forget-out")
"""


@pytest.mark.parametrize(
    ("command", "said", "remedy"),
    [
        (lambda file: drop(file, "counts"), "store 'counts' is in the program", "--reset-state`; to drop this one, remove the operator of this name"),
        (lambda file: forget(file, "job-1-by-v"), "is between two stages", "--to-earliest --reset-state`; to forget it, remove the operator that writes it"),
        (lambda file: forget(file, "forget-in"), "is an input", "--to-earliest --keep-state`, for example; to forget it, take its stream"),
    ],
)
def test_of_a_program_it_says_what_is_to_be_changed_in_the_program(tmp_path: Path, command: Callable[[Path], None], said: str, remedy: str) -> None:
    file = job_of(tmp_path, "program_to_forget", PROGRAM)
    with pytest.raises(ConfigurationError, match=said) as refused:
        command(file)
    assert remedy in refused.value.remedy


TABLE = """
from samzapy.streams import App

app = App()
users = app.table("users", key=str, value=str)
app.stream("in", key=str, value=str).lookup(users).map(str, value=str).count("counts").to("out")
"""


def job_of(folder: Path, module: str, program: str) -> Path:
    """The job file of a program, in a module of its own: modules are imported once."""
    (folder / f"{module}.py").write_text(program)
    file = folder / "job.yaml"
    file.write_text(f'{{job: job, app: "{module}:app", kafka: {{bootstrap.servers: "127.0.0.1:1"}}}}')
    return file


class Reached(Exception):
    """The command was not refused, and goes to the cluster."""


def test_a_table_of_a_topic_is_dropped_though_the_program_has_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next run fills it again: test_the_way_out_fills_the_table_again_without_what_was_deleted."""

    def reach(settings: object) -> None:
        raise Reached

    monkeypatch.setattr("samzapy.cli.job.kafka_log", reach)
    file = job_of(tmp_path, "program_with_table", TABLE)
    with pytest.raises(Reached):
        drop(file, "users")
    with pytest.raises(ConfigurationError, match="store 'counts' is in the program"):
        drop(file, "counts")


def test_what_a_drop_of_a_table_left_over_is_no_topic_of_another_store(tmp_path: Path) -> None:
    """The program still has the table, so the same command has to finish what was cut short."""
    settings = load_program([job_of(tmp_path, "program_with_another_table", TABLE)]).settings
    assert ["job-1-counts-changelog"] == _other_changelogs(settings, "users")
    assert ["job-1-counts-changelog", "job-1-users-changelog"] == sorted(_other_changelogs(settings, "gone"))


@pytest.mark.parametrize("program", ['stream("job-1-by-v"', 'stream("in"'])
def test_a_topic_between_stages_is_nobodys_input_or_output(tmp_path: Path, program: str) -> None:
    module = "program_" + str(len(program))
    output = "out" if "job-1" in program else "job-1-by-v"
    app = f"from samzapy.streams import App\napp = App()\napp.{program}, key=str, value=str).key_by(lambda v: v, 'by-v', key=str).to({output!r})\n"
    file = job_of(tmp_path, module, app)
    with pytest.raises(ConfigError, match="'job-1-by-v' is the internal topic of 'by-v' of this job"):
        load_program([file])


def test_forgetting_an_input_tells_of_its_dead_letters_that_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """If the input is added again, their records are read again: sent back as well, they would count twice."""
    bench = stopped(tmp_path / "bench", "other")
    lease = LeaseRecord(run_id="r", url="", host="h", pid=1, process_start="s", renewed_ms=bench.clock.now_ms(), ended=True)
    producer = bench.log.plain_producer("lease")
    producer.send(JOB.coordinator_topic, lease.to_bytes(), LEASE_KEY, 0)
    producer.flush()
    monkeypatch.setattr("samzapy.cli.job.kafka_log", lambda settings: bench.log)
    file = tmp_path / "job.yaml"
    file.write_text(f'{{job: {JOB.name}, id: "{JOB.id}", task: "my:Task", kafka: {{bootstrap.servers: "x:1"}}, inputs: [{{topic: other}}]}}')
    forget(file, "in")
    told = capsys.readouterr().err
    assert "would forget input in" in told
    assert "if in is added again, and read from its start: 2 dead letters wait whose records are read again" in told
    assert f"samzapy dlq discard {file} --all --execute" in told
