"""What a command says of a job file that is in order: how its commands name it, and what its task class has that is not used."""

from __future__ import annotations

import logging
import shlex
from pathlib import Path

import pytest

from samzapy.cli.common import as_called, to_look
from samzapy.cli.loading import load

JOB = "{job: j, task: '%s', kafka: {bootstrap.servers: h}, inputs: [{topic: t, value: string}]}"
TASKS = """
from samzapy import StreamTask

class One(StreamTask):
    def process(self, envelope, collector, coordinator): pass

class Batches(StreamTask):
    def process_batch(self, envelopes, collector, coordinator): pass

class Both(One, Batches):
    pass

class Misspelt(One):
    def end_of_steam(self, collector, coordinator): pass
    def windows(self): pass
    def summarise(self): pass
    def _window(self): pass

class Windowed(One):
    def window(self, collector, coordinator): pass
"""

PROGRAM = """
from samzapy.streams import App

loops, regroups = App(), App()
loops.stream("t", key=str, value=str).filter(lambda text: False).to("t")
regroups.stream("t", key=str, value=str).key_by(lambda text: text, "by-text", key=str).count("texts").to("counts")
"""


@pytest.mark.parametrize(("name", "is_told"), [("One", False), ("Batches", False), ("Both", True)])
def test_a_task_with_both_hooks_is_told_which_one_is_used(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, name: str, is_told: bool
) -> None:
    (tmp_path / "tasks_with_hooks.py").write_text(TASKS)
    file = tmp_path / "job.yaml"
    file.write_text(JOB % f"tasks_with_hooks:{name}")
    with caplog.at_level(logging.INFO, "samzapy"):
        load(file, None, None, classes=True)
    told = [text for text in caplog.messages if "process_batch is used" in text]
    assert [f"task: {name} defines process and process_batch: process_batch is used"] * is_told == [t.partition(", and")[0] for t in told]


@pytest.mark.parametrize(
    ("name", "window", "told"),
    [
        ("One", "", []),
        ("Windowed", ", window: 1s", []),
        ("One", ", window: 1s", ["`window` of the job file has no effect: One defines no method window(collector, coordinator)"]),
        (
            "Misspelt", "",
            [
                "samzapy never calls Misspelt.end_of_steam: if it is a hook, its name is end_of_stream",
                "samzapy never calls Misspelt.windows: if it is a hook, its name is window",
            ],
        ),
    ],
)  # fmt: skip
def test_what_is_never_called_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture, name: str, window: str, told: list[str]) -> None:
    (tmp_path / "tasks_with_hooks.py").write_text(TASKS)
    file = tmp_path / "job.yaml"
    file.write_text((JOB % f"tasks_with_hooks:{name}").removesuffix("}") + window + "}")
    with caplog.at_level(logging.INFO, "samzapy"):
        load(file, None, None, classes=True)
    assert [f"task: {text}" for text in told] == [text for text in caplog.messages if text.startswith("task: ")]


@pytest.mark.parametrize(
    ("outputs", "is_told"), [("", False), (", outputs: [{topic: other}]", False), (", outputs: [{topic: other}, {topic: t}]", True)]
)
def test_a_job_that_reads_what_it_writes_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture, outputs: str, is_told: bool) -> None:
    (tmp_path / "tasks_with_hooks.py").write_text(TASKS)
    file = tmp_path / "job.yaml"
    file.write_text((JOB % "tasks_with_hooks:One").removesuffix("}") + outputs + "}")
    with caplog.at_level(logging.INFO, "samzapy"):
        load(file, None, None, classes=True)
    assert ["t"] * is_told == [text.partition(": an input and an output of this job")[0] for text in caplog.messages]


def test_files_that_are_named_as_modules_of_pythons_own_are_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "tasks_with_hooks.py").write_text(TASKS)
    (tmp_path / "calendar").mkdir()
    (tmp_path / "job.yaml").write_text(JOB % "tasks_with_hooks:One")
    for files in ([], ["uuid.py"], ["calendar/__init__.py", "uuid.py"]):
        for file in files:
            (tmp_path / file).touch()
        caplog.clear()
        with caplog.at_level(logging.INFO, "samzapy"):
            load(tmp_path / "job.yaml", None, None, classes=True)
        named = ", ".join(str(tmp_path / file.removesuffix("/__init__.py")) for file in files)
        assert [f"rename {named}"] * bool(files) == [text.partition("may find the wrong one: ")[2] for text in caplog.messages]


def test_a_program_that_reads_what_it_writes_is_told_and_topics_between_its_stages_are_no_such_topics(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "program_that_loops.py").write_text(PROGRAM)
    for name, told in (("loops", ["t"]), ("regroups", [])):
        caplog.clear()
        file = tmp_path / f"{name}.yaml"
        file.write_text((JOB % "x").replace("task: 'x'", f"app: 'program_that_loops:{name}'").replace(", inputs: [{topic: t, value: string}]", ""))
        with caplog.at_level(logging.INFO, "samzapy"):
            load(file, None, None, classes=True)
        assert told == [text.partition(": an input and an output of this job")[0] for text in caplog.messages]


@pytest.mark.parametrize("name", ["my job.yaml", "-x.yaml", "$HOME.yaml"])
def test_commands_in_messages_name_the_file_as_a_shell_and_a_command_take_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    (tmp_path / name).write_text(JOB % "m:T")
    monkeypatch.chdir(tmp_path)
    load(Path(name), None, None)
    *_, word = shlex.split(as_called("samzapy stop JOB.yaml"))
    assert (tmp_path / name).samefile(word)
    assert not word.startswith("-")


def test_a_command_that_only_looks_is_told_without_settings_of_how_the_job_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader asked whether `status JOB.yaml --set commit.interval=500ms` would change the running job."""
    (tmp_path / "JOB.yaml").write_text(JOB % "m:T")
    monkeypatch.chdir(tmp_path)
    load(Path("JOB.yaml"), None, ["commit.interval=500ms", "id=7"])
    assert "JOB.yaml --set id=7" == to_look()
    told = as_called("see `samzapy dlq list JOB.yaml`, `samzapy debug stack JOB.yaml --container 1`, then `samzapy run JOB.yaml --local`")
    look, run = "JOB.yaml --set id=7", "JOB.yaml --set commit.interval=500ms --set id=7"
    assert f"see `samzapy dlq list {look}`, `samzapy debug stack {look} --container 1`, then `samzapy run {run} --local`" == told
