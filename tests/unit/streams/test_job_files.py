"""Job files with an `app`: what a person wrote wrong in either is told at its place."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from samzapy.api.errors import ConfigurationError
from samzapy.config.document import settings_from_document
from samzapy.config.errors import ConfigError
from samzapy.config.program import as_written
from samzapy.streams import App
from samzapy.testing.harness_job import HarnessJob
from samzapy.testing.memory_registry import MemoryRegistry
from samzapy.wiring.job_file import load_program
from samzapy.wiring.tasks import tasks_of

HEAD = 'job: j\napp: {}\nkafka: {{bootstrap.servers: "x:1"}}\n'
PROGRAM = """
from samzapy.streams import App

app = App()
s = app.stream("a", key=str, value=dict)
s.count("n")
{}
"""


def write(folder: Path, line: str = "", app: str = "", more: str = "") -> Path:
    module = f"program_{abs(hash(folder.name))}"
    (folder / f"{module}.py").write_text(PROGRAM.format(line))
    (folder / "job.yaml").write_text(HEAD.format(app or f"{module}:app") + more)
    return folder / "job.yaml"


@pytest.mark.parametrize(
    ("line", "app", "more", "path", "said"),
    [
        ("s.map(lambda v, other: v).to('x')", "", "", "app", "map: its function asks for 'other'"),
        ("s.map(lambda v: v)", "", "", "app", "map goes nowhere"),
        ("s.to('j-1-n-changelog')", "", "", "app", "outputs.0.topic: 'j-1-n-changelog' is the changelog of store 'n'"),
        ("raise ValueError('no')", "", "", "app", "ValueError: no"),
        ("", "no_such_module:app", "", "app", "there is no module 'no_such_module'"),
        ("", "json:dumps", "", "app", "json:dumps is function, not an App"),
        ("", "", "streams: {b: {topic: x}}\n", "streams.b", "the program has no stream 'b'"),
        ("", "", "inputs: [{topic: x}]\n", "inputs", "is defined by the program"),
        ("", "", "task: m:T\n", "app", "a job has `task` or `app`, not both"),
        ("", "", "stores: {n: {value: json}}\n", "stores.n.value", "cannot be set in the job file"),
    ],
)
def test_it_is_told_at_its_place(tmp_path: Path, line: str, app: str, more: str, path: str, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_program([write(tmp_path, line, app, more)], [], {})
    [problem] = caught.value.problems
    assert (path, True, True) == (problem.path, problem.line > 0, said in problem.message), problem


def test_an_operator_that_does_not_exist_is_told_at_the_program_s_line(tmp_path: Path) -> None:
    file = write(tmp_path, "s.groupby(lambda v: v)")
    with pytest.raises(ConfigError) as caught:
        load_program([file], [], {})
    [problem] = caught.value.problems
    assert re.search(r"failed at .*/program_\d+\.py:7: AttributeError: .*the operator is called 'key_by'", problem.message), problem


def test_a_task_needs_inputs_and_streams_need_a_program(tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text('{job: j, task: "m:T", kafka: {bootstrap.servers: "x:1"}, streams: {}}')
    with pytest.raises(ConfigError, match=r"(?s)missing required key 'inputs'.*`streams` belongs to a job with `app`"):
        load_program([tmp_path / "job.yaml"], [], {})


def test_what_travels_holds_what_the_program_says_and_is_compared_where_it_runs(tmp_path: Path) -> None:
    loaded = load_program([write(tmp_path, more="streams: {a: {topic: prod.a}}\nstores: {n: {engine: memory}}\n")], [], {})
    settings = settings_from_document(loaded.document, {})
    assert (["prod.a"], "memory") == ([i.topic for i in settings.inputs], settings.stores["n"].engine)
    assert {"operator n": "count"} == dict(tasks_of(settings, loaded.folders).operators)
    assert {"job", "app", "kafka", "streams", "stores"} == set(as_written(loaded.document))
    assert {"n": {"engine": "memory"}} == as_written(loaded.document)["stores"]

    other = settings_from_document({**loaded.document, "stores": {"m": {"key": "string", "value": "integer"}}}, {})
    with pytest.raises(ConfigurationError, match="the program on this host has other stores than the one that the run was started with"):
        tasks_of(other, loaded.folders)


def test_streams_take_the_words_of_job_files_for_what_has_no_limit() -> None:
    said = []
    for idle, ahead in ((None, None), ("never", "any")):
        app = App()
        app.stream("in", key=str, value=str, watermark_delay="1s", idle_timeout=idle, max_ahead=ahead).count("n")
        [one] = HarnessJob.of(app, (), {}, MemoryRegistry()).settings.inputs
        assert one.time is not None
        said.append((one.time.idle_timeout_ms, one.time.max_ahead_ms))
    assert [(None, None), (None, None)] == said
    for wrong in ({"idle_timeout": "any"}, {"max_ahead": "never"}, {"watermark_delay": "never"}):
        with pytest.raises(ConfigurationError, match="is no duration"):
            App().stream("in", key=str, value=str, **{"watermark_delay": "1s", **wrong})
