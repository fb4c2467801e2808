"""The command line as such: what nobody foresaw, what contradicts itself, and names that cannot be."""

from __future__ import annotations

import io
import json
import logging
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from samzapy.cli import main
from samzapy.cli.main import configure_logging, exit_code
from samzapy.container.process import log_to_stderr


def test_what_nobody_foresaw_is_a_sentence_too(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def app(**_: object) -> None:
        raise KeyError("changelog")

    monkeypatch.setattr(main, "app", app)
    monkeypatch.delenv("SAMZAPY_DEBUG", raising=False)

    assert 1 == exit_code(["status"])

    told = capsys.readouterr().err
    assert "error[SZ900]: KeyError: 'changelog' (test_main.py:" in told
    assert "SAMZAPY_DEBUG=1" in told
    assert "Traceback" not in told


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run", "no.yaml", "--local", "--master", "local[2]"], "--local runs without Spark, --master names one"),
        (["send", "bad topic/name"], "'bad topic/name' is not a topic name"),
        (["scale", "no.yaml", "--containers", "2", "--timeout", "-5"], "--timeout"),
    ],
)
def test_what_cannot_be_is_refused_before_anybody_is_asked(arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert 2 == exit_code(arguments)
    assert words in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "words", "code"),
    [
        ("job: x\n", "missing required key 'inputs'", None),
        ("job: x\ntask: no_such_module:Task\ninputs: [{topic: t}]\nkafka: {bootstrap.servers: 'localhost:1'}\n", "no_such_module", None),
        (None, "this file does not exist", None),
        ("kind: refused", "--inline and --profile exclude each other", "SZ100"),
    ],
)
def test_a_run_that_logs_json_says_as_json_why_it_did_not_begin(
    content: str | None, words: str, code: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "job.yaml"
    if content is not None:
        file.write_text(content)
    options = ["--inline", "--profile", str(tmp_path)] if code else ["--local"]

    assert 2 == exit_code(["run", str(file), "--log-format", "json", *options])

    documents = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert documents[-1]["level"] == "ERROR"
    assert words in documents[-1]["message"]
    assert documents[-1].get("code") == code
    assert 2 == exit_code(["run", str(file), *options])
    assert not capsys.readouterr().err.startswith("{"), "the next command of this process says it as it is"


@pytest.mark.parametrize("command", ["validate", "status"])
def test_a_directory_that_was_deleted_under_the_shell_is_said(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()

    assert 2 == exit_code([command, str(Path(__file__).parents[3] / "config" / "page-views.yaml")])

    told = capsys.readouterr().err
    assert "the directory that this shell is in was deleted" in told
    assert "SZ900" not in told


def test_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert 0 == exit_code(["--version"])
    assert capsys.readouterr().out.startswith("samzapy ")


@pytest.mark.parametrize("configure", [lambda: configure_logging(verbose=False), lambda: log_to_stderr({})], ids=["of a command", "of a container"])
def test_a_log_goes_on_where_standard_error_was_another_stream_for_a_while(
    configure: Callable[[], None], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As in any process in which a command is called as a function."""
    root = logging.getLogger()
    monkeypatch.setattr(root, "handlers", [])
    monkeypatch.setattr(root, "level", root.level)
    with io.StringIO() as stands_in, monkeypatch.context() as within:
        within.setattr(sys, "stderr", stands_in)
        configure()

    logging.getLogger("samzapy.test").warning("a line")

    told = capsys.readouterr().err
    assert ("a line", 1) == (told.splitlines()[-1].rpartition("WARNING")[2].strip(), len(told.splitlines()))
