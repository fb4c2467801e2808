"""Tests that share what is costly to start are given to one process."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.side_by_side import GROUPS, group_of

ROOT = Path(__file__).parents[2]
COSTLY = ("LocalKafka.start", "LocalSpark.start", "start_session", "Cluster(")


def shares_what_is_costly(path: Path) -> bool:
    """Whether a fixture of its module starts a broker, a cluster or a session."""
    source = path.read_text()
    shared = [
        node
        for node in ast.parse(source).body
        if isinstance(node, ast.FunctionDef) and any("scope='module'" in ast.unparse(d) for d in node.decorator_list)
    ]
    return any(word in ast.unparse(node) for node in shared for word in COSTLY)


def test_every_file_that_shares_what_is_costly_is_in_a_group() -> None:
    files = {str(path.relative_to(ROOT)) for path in (ROOT / "tests").rglob("test_*.py") if shares_what_is_costly(path)}

    assert len(files) > 2
    assert set() == files - GROUPS.keys()


@pytest.mark.parametrize("file", GROUPS)
def test_a_file_of_a_group_is_there(file: str) -> None:
    assert (ROOT / file).is_file()


def test_a_group_is_a_unit_and_so_is_any_other_test() -> None:
    spark = [group_of(f"tests/integration/{name}.py::test_{name}[spark://x]") for name in ("test_spark_launcher", "test_spark_cluster")]

    assert ["spark", "spark", "tests/a.py::test_b"] == [*spark, group_of("tests/a.py::test_b")]


STAND_IN = """
import os
from collections.abc import Iterator

from tests import conftest
from tests.conftest import pytest_unconfigure, pytest_xdist_setupnodes

def stand_in() -> Iterator[str]:
    yield "stand-in:9092"

conftest._broker = stand_in

def test_of_the_first_process() -> None:
    assert "stand-in:9092" == os.environ["SAMZAPY_TEST_KAFKA"]
"""


def test_all_processes_share_one_broker_the_first_of_them_too(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(STAND_IN)
    (tmp_path / "test_here.py").write_text("from conftest import test_of_the_first_process\n")
    (tmp_path / "pytest.ini").write_text(f"[pytest]\npythonpath = {ROOT} {tmp_path}\n")
    bare = {key: value for key, value in os.environ.items() if key != "SAMZAPY_TEST_KAFKA" and not key.startswith("PYTEST_")}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-n", "1", str(tmp_path)],
        cwd=tmp_path, env=bare, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert (0, True) == (done.returncode, "1 passed" in done.stdout), done.stdout + done.stderr
