"""Tests that share what is costly to start are given to one process."""

from __future__ import annotations

import ast
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
