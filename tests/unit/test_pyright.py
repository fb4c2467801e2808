"""What pyright says of the public interface and of programs: the same as mypy. It runs as pip installed it, and fetches nothing."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.unit.test_public_names import MISSPELT, TYPED

ROOT = Path(__file__).parents[2]
PROGRAMS = Path(__file__).parent / "streams" / "typed"
NOWHERE = "http://127.0.0.1:9"
WANTED = re.compile(r"  # [a-z, -]+$")


pytestmark = pytest.mark.prove  # mypy says the same in every run


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """What pyright says of the snippets, of three programs of the pages, of the examples and of a right and a wrong program of streams."""
    folder = tmp_path_factory.mktemp("pyright")
    texts = {"wrong_names.py": MISSPELT, "typed.py": TYPED}
    for page in ROOT.glob("docs/how-to/*.md"):
        found = re.findall(r"^`(\w+\.py)`[^\n]*:\n\n```python\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)
        texts |= {f"page_{name}": text for name, text in found if "IncomingMessageEnvelope[" in text}
    assert sum(name.startswith("page_") for name in texts) >= 3
    texts |= {file.name: file.read_text() for file in (*PROGRAMS.glob("*.py"), *ROOT.glob("jobs/*.py"))}
    for name, text in texts.items():
        (folder / name).write_text(text)
    environment = {**os.environ, "http_proxy": NOWHERE, "https_proxy": NOWHERE, "PYRIGHT_PYTHON_IGNORE_WARNINGS": "1"}
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, cwd=folder, env=environment)
    document = json.loads(done.stdout)
    assert document["summary"]["filesAnalyzed"] == len(texts), done.stderr
    found_: list[dict[str, Any]] = document["generalDiagnostics"]
    return found_


def lines(said: list[dict[str, Any]], file: str, severity: str = "error") -> list[int]:
    return sorted({one["range"]["start"]["line"] + 1 for one in said if Path(one["file"]).name == file and one["severity"] == severity})


def test_it_sees_the_types_of_keys_and_values_and_finds_what_is_wrong(said: list[dict[str, Any]]) -> None:
    assert [n for n, line in enumerate(TYPED.splitlines(), 1) if "# wrong" in line] == lines(said, "typed.py")
    expected = [line.split("#: ")[1].replace("samzapy.api.store.", "") for line in TYPED.splitlines() if "#: " in line]
    types = [one["message"].rsplit(' is "', 1)[1].rstrip('"') for one in said if one["severity"] == "information"]
    assert expected == types


def test_a_misspelt_name_is_an_error(said: list[dict[str, Any]]) -> None:
    assert [1, 2] == lines(said, "wrong_names.py")


def test_it_finds_each_mistake_of_a_wrong_program(said: list[dict[str, Any]]) -> None:
    wanted = [n for n, line in enumerate((PROGRAMS / "wrong_program.py").read_text().splitlines(), 1) if WANTED.search(line)]
    assert len(wanted) > 10
    assert wanted == lines(said, "wrong_program.py")


def test_it_finds_nothing_in_what_is_right(said: list[dict[str, Any]]) -> None:
    flagged = {Path(one["file"]).name for one in said if one["severity"] == "error"}
    assert {"typed.py", "wrong_names.py", "wrong_program.py"} == flagged
