"""The reliability page: every test that it names is there, every link leads somewhere, and it does not grow without end."""

from __future__ import annotations

import ast
import functools
import re
from pathlib import Path

import pytest

from tests.source import tree_of

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "samzapy" / "RELIABILITY.md"
LINK = re.compile(r"\[([^\]]+)\]\(([^)\s]+)\)")
MAX_LINES = 255


@functools.cache
def names_in(path: Path) -> set[str]:
    """The tests of a module."""
    return {node.name for node in tree_of(path).body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")}


def named(page: str) -> list[tuple[str, Path]]:
    """(what is named, the file that the link leads to), of all links into tests."""
    return [(name, PAGE.parent / target) for name, target in LINK.findall(page) if target.startswith("../tests/")]


def wrong(page: str) -> list[str]:
    return [f"{name} in {path.name}" for name, path in named(page) if not path.is_file() or name not in names_in(path)]


def test_every_test_that_is_named_is_there() -> None:
    assert [] == wrong(PAGE.read_text())


def test_one_that_is_not_there_would_be_found() -> None:
    here = "../tests/house/test_reliability.py"
    page = f"| a fault | [test_of_nothing]({here}) [test_every_test_that_is_named_is_there]({here}) [test_x](../tests/house/test_none.py) |"

    assert ["test_of_nothing in test_reliability.py", "test_x in test_none.py"] == wrong(page)


def test_every_fault_names_a_test() -> None:
    faults = PAGE.read_text().partition("## Faults")[2].partition("## Figures")[0]
    rows = [line for line in faults.splitlines() if line.startswith("| ") and "| shown by |" not in line]

    assert len(rows) > 30
    assert [] == [row for row in rows if not named(row)]


def test_every_other_link_leads_somewhere() -> None:
    links = [target for _, target in LINK.findall(PAGE.read_text()) if "://" not in target]

    assert [] == [link for link in links if not (PAGE.parent / link).exists()]


def test_it_can_be_read_in_one_go() -> None:
    assert len(PAGE.read_text().splitlines()) <= MAX_LINES


@pytest.mark.parametrize("mark", ["<!-- figures: begin", "<!-- figures: end -->"])
def test_the_place_for_figures_is_marked(mark: str) -> None:
    assert 1 == PAGE.read_text().count(mark)
