"""What the README tells a newcomer to type works: its files are run, its commands parse, its links lead somewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer

from samzapy.cli.main import ClickException, app
from samzapy.wiring.job_file import load_program
from tests.commands import parse

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
DOCUMENTS = ["README.md", "samzapy/ARCHITECTURE.md", "samzapy/DECISIONS.md", "samzapy/CLUSTERS.md", "samzapy/RELIABILITY.md", "samzapy/STREAMS.md"]
NAMED_BLOCK = re.compile(r"^`(?P<name>[\w.-]+)`[^\n]*:\n\n```\w+\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
BLOCK = re.compile(r"^```(?P<language>\w*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]+\]\(([^)#]+)(?:#[^)]*)?\)")
IN_TEXT = re.compile(r"`(samzapy [^`]+)`")
FILES = {found["name"]: found["text"] for found in NAMED_BLOCK.finditer(README)}
BLOCKS = [(found["language"], found["text"]) for found in BLOCK.finditer(README)]
SHELL_LINES = [line.split("#")[0].strip() for language, text in BLOCKS if language == "sh" for line in text.splitlines()]
OPERATIONS = (ROOT / "docs" / "operations.md").read_text()
COMMANDS = sorted({c for c in [*SHELL_LINES, *IN_TEXT.findall(README + OPERATIONS)] if c.startswith("samzapy ")})
BUILT = {
    "chaos", "checkpoint forget", "checkpoint set", "checkpoint show", "commit", "completion", "debug profile", "debug stack",
    "debug trace", "demo", "dev kafka grant", "dev kafka start",
    "dev kafka status", "dev kafka stop", "dev spark start", "dev spark status", "dev spark stop", "dlq discard", "dlq list",
    "dlq replay", "dlq show", "doctor", "init", "jobs", "lag", "pause", "plan", "reset", "restart", "resume", "run", "scale", "schema", "send",
    "state drop", "state export", "state get", "state restore", "state scan", "state verify", "status", "stop", "tail", "top", "ui",
    "topics", "validate",
}  # fmt: skip


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A directory with the files of the README's first job."""
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def test_the_readme_has_the_three_files_and_no_python_or_yaml_besides() -> None:
    assert {"visits.py", "visits.yaml", "test_visits.py"} == set(FILES)
    assert ["python", "python", "yaml"] == sorted(language for language, _ in BLOCKS if language in ("python", "yaml"))


def test_the_first_job_file_is_valid(directory: Path) -> None:
    loaded = load_program([directory / "visits.yaml"], [], {}, check_classes=True)
    assert "visits" == loaded.settings.job
    assert {"counts"} == set(loaded.settings.stores)


def test_the_first_unit_test_passes(directory: Path) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-W", "error", "-p", "no:cacheprovider", "test_visits.py"]
    result = subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=120, env=_environ())
    assert "1 passed" in result.stdout, result.stdout + result.stderr


@pytest.mark.parametrize("path", sorted((ROOT / "config").glob("*.yaml")), ids=lambda p: p.name)
def test_every_example_job_file_is_valid(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert path.stem == load_program([path], [], {}, check_classes=True).settings.job


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_in_the_text_parses(command: str) -> None:
    assert parse(command.split()[1:]) in BUILT


def test_every_command_that_is_built_is_in_the_text() -> None:
    assert BUILT == set(_leaves(typer.main.get_command(app), []))
    assert BUILT == {parse(command.split()[1:]) for command in COMMANDS} | {"completion"}  # that one is told as a shell takes it


def test_a_command_that_is_not_there_would_be_found() -> None:
    for wrong in ("lags JOB.yaml", "status JOB.yaml --wach", "state get JOB.yaml", "dev kafka begin"):
        with pytest.raises(ClickException):
            parse(wrong.split())


def test_every_make_target_is_there() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = set(re.findall(r"`?\bmake ([a-z]+)\b`?", "\n".join([*SHELL_LINES, *re.findall(r"`make [a-z]+`", README)])))
    assert {"demo", "test"} <= named
    assert set() == named - targets


def test_every_module_that_is_run_is_there() -> None:
    modules = set(re.findall(r"python -m ([\w.]+)", README + (ROOT / "jobs" / "README.md").read_text())) - {"pip"}
    assert {"jobs.feed"} == modules
    for module in modules:
        assert (ROOT / (module.replace(".", "/") + ".py")).is_file()


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_link_leads_somewhere(document: str) -> None:
    path = ROOT / document
    links = [link for link in LINK.findall(path.read_text()) if "://" not in link]
    assert [] == [link for link in links if not (path.parent / link).exists()]


def _leaves(command: Any, path: list[str]) -> list[str]:
    """Every command below this one that does something."""
    if not hasattr(command, "commands"):
        return [" ".join(path)]
    return [leaf for name, below in command.commands.items() for leaf in _leaves(below, [*path, name])]


def _environ() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
