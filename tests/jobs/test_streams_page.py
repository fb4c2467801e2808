"""The tutorial of programs of streams: its files make a job that is tested, each block of Python runs, and its commands parse."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from samzapy.wiring.job_file import load_program
from tests.commands import parse

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "samzapy" / "STREAMS.md").read_text()
FILE = re.compile(r"^`(?P<name>[\w.-]+)`[^\n]*:\n\n```\w+\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
BLOCK = re.compile(r"^```(?P<language>\w*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
IN_TEXT = re.compile(r"`(samzapy [^`]+)`")
FILES = {found["name"]: found["text"] for found in FILE.finditer(PAGE)}
BLOCKS = [(found["language"], found["text"]) for found in BLOCK.finditer(PAGE)]
SNIPPETS = [text for language, text in BLOCKS if language == "python" and text not in FILES.values()]
SHELL = [line.split("  #")[0].strip() for language, text in BLOCKS if language == "sh" for line in text.splitlines()]
COMMANDS = [part for line in SHELL for part in line.split(" | ")] + IN_TEXT.findall(PAGE)


def test_every_block_is_a_file_a_snippet_or_commands() -> None:
    assert {"shop.py", "shop.yaml", "test_shop.py"} == set(FILES)
    assert len(SNIPPETS) >= 3
    assert set() == {language for language, text in BLOCKS if text not in FILES.values()} - {"python", "sh"}


def test_the_files_are_a_job_whose_test_passes(tmp_path: Path) -> None:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    assert ["totals"] == list(load_program([tmp_path / "shop.yaml"], [], {}, check_classes=True).settings.stores)
    command = [sys.executable, "-m", "pytest", "-q", "-W", "error", "-p", "no:cacheprovider", "test_shop.py"]
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, env=environ, check=False)
    assert "1 passed" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize("number", range(len(SNIPPETS)))
def test_a_snippet_runs_and_what_it_asserts_holds(number: int) -> None:
    assert "assert " in SNIPPETS[number]
    exec(compile(SNIPPETS[number], f"snippet-{number}.py", "exec"), {"__name__": f"snippet_{number}"})


@pytest.mark.parametrize("command", sorted({command for command in COMMANDS if command.startswith("samzapy ")}))
def test_its_commands_parse(command: str) -> None:
    assert parse(command.split()[1:])
