"""The table of commands: each is there, listed in the words of its own help, and listing them imports none of them."""

from __future__ import annotations

import ast
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from samzapy.cli.commands import COMMANDS, GROUPS, Commands
from samzapy.cli.examples import EXAMPLES
from samzapy.cli.main import exit_code
from tests.commands import parse

CLI = Path(__file__).parents[3] / "samzapy" / "cli"
LARGE = {"confluent_kafka", "pydantic", "pyspark", "rocksdict", "starlette", "uvicorn"}
ON_DEMAND = {"samzapy.cli.validate_connected", "jobs.word_count"}  # what only some runs of a command need: Kafka, the example jobs


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_is_listed_with_the_first_sentence_of_its_help(name: str) -> None:
    help_text = " ".join((Commands()[name].help or "").split("\n\n")[0].split())
    assert help_text.startswith(COMMANDS[name][1])


def test_each_command_is_in_one_group() -> None:
    assert sorted(COMMANDS) == sorted(name for names in GROUPS.values() for name in names)


def _paths(commands: Mapping[str, Any], before: str = "") -> Iterator[str]:
    for name, command in commands.items():
        yield from _paths(command.commands, f"{before}{name} ") if hasattr(command, "commands") else (before + name,)


def test_each_command_has_examples_and_they_are_commands() -> None:
    assert sorted(_paths(Commands())) == sorted(EXAMPLES)
    for path, examples in EXAMPLES.items():
        for example in examples:
            words = shlex.split(re.sub(r'^.*\| (?=samzapy)|^eval "\$\(|\)"$| \| source$', "", example))
            assert path == parse(words[1:]), example


@pytest.mark.parametrize("name", ["-h", "--help"])
@pytest.mark.parametrize("width", [80, 120])
def test_help_fits_the_terminal(name: str, width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("NO_COLOR", "1")
    families = {path.rpartition(" ")[0] for path in EXAMPLES}
    for path in sorted(families | EXAMPLES.keys()):
        assert 0 == exit_code([*path.split(), name])
        text = capsys.readouterr().out
        examples = EXAMPLES.get(path, ())
        assert max(len(line) for line in text.splitlines() if line.strip() not in examples) <= width, path
        assert all(f"\n  {example}\n" in text for example in examples), path
        assert path in families or "Examples:" in text, path
        assert path != "run" or "Changes to the job file:" in text
        assert "\x1b" not in text, path
        assert path not in families or "..." not in text.partition("\n  -h, --help")[2], f"a summary of `{path}` is cut off"


@pytest.mark.parametrize(
    ("path", "usage"),
    [
        ("run", "run [OPTIONS] JOB.yaml"),
        ("doctor", "doctor [OPTIONS] [JOB.yaml]"),
        ("state scan", "state scan [OPTIONS] JOB.yaml STORE [PREFIX]"),
        ("dlq replay", "dlq replay [OPTIONS] JOB.yaml [NUMBER]..."),
    ],
)
def test_the_usage_is_written_as_everywhere(path: str, usage: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert 0 == exit_code([*path.split(), "--help"])
    text = capsys.readouterr().out
    assert f" {usage}\n" in text
    assert "<list" not in text


def test_help_uses_a_wide_terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    lines = []
    for width in ("80", "160"):
        monkeypatch.setenv("COLUMNS", width)
        exit_code(["run", "-h"])
        lines.append(len(capsys.readouterr().out.splitlines()))
    assert lines[1] < lines[0]


def _imported_by(*arguments: str) -> set[str]:
    code = "import sys; from samzapy.cli.main import exit_code; exit_code(sys.argv[1:]); print(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True, timeout=60)
    return set(done.stderr.splitlines()[-1].split())


def test_the_list_of_commands_needs_none_of_them() -> None:
    imported = _imported_by("--help")
    homes = {f"samzapy.cli.{home.partition(':')[0]}" for home, _ in COMMANDS.values()}
    assert set() == imported & (LARGE | homes)


def test_validate_without_connect_needs_nothing_that_runs_a_job(tmp_path: Path) -> None:
    (tmp_path / "my_job.py").write_text("from samzapy import StreamTask\n\n\nclass Task(StreamTask):\n    def process(self, *_):\n        pass\n")
    file = tmp_path / "job.yaml"
    file.write_text("job: j\ntask: my_job:Task\ninputs: [in]\nkafka: {bootstrap.servers: 'localhost:9'}\n")
    imported = _imported_by("validate", str(file))
    assert "samzapy.config.load" in imported
    heavy = {"samzapy.wiring.container", "samzapy.wiring.coordinator", "samzapy.container.container", "rocksdict", "starlette", "uvicorn", "pyspark"}
    assert set() == imported & heavy


def test_a_container_imports_what_it_needs_only() -> None:
    code = "import sys, samzapy.local.child, samzapy.wiring.container; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    imported = set(done.stdout.split())
    assert {"confluent_kafka", "rocksdict"} <= imported
    assert set() == imported & {"fastavro", "ruamel", "samzapy.streams", "samzapy.cli", "samzapy.coordinator", "starlette", "typer", "rich", "pyspark"}


def test_imports_stand_on_top() -> None:
    """A Ctrl-C while a command's modules are imported finds nothing to clean up; and what a command needs is read at its top."""
    inside = {
        (path.name, node.module)
        for path in CLI.glob("*.py")
        for function in ast.walk(ast.parse(path.read_text()))
        if isinstance(function, ast.FunctionDef)
        for node in ast.walk(function)
        if isinstance(node, ast.ImportFrom)
    }
    assert ON_DEMAND == {module for _, module in inside}
