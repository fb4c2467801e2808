"""The pages on the protocol: what they name is there, and what the code proves is named."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from samzapy.failpoints import POINTS
from tests.house.test_reliability import LINK, ROOT, names_in
from tests.house.test_tree import lines_with, tracked
from tests.recovery.mutations import BUGS

ROOM = ROOT / "samzapy"
PROTOCOL, GLOSSARY = ROOM / "PROTOCOL.md", ROOM / "GLOSSARY.md"
PAGES = [ROOT / "README.md", ROOM / "ARCHITECTURE.md", PROTOCOL, GLOSSARY]
PLANTED = re.compile(r'planted bug "([^"]+)"')


def wrong(page: str, folder: Path) -> list[str]:
    """Tests that are named and are not in the file that the link leads to, and links that lead nowhere."""
    found = []
    for name, target in LINK.findall(page):
        path = folder / target.partition("#")[0]
        if "://" in target or not target.partition("#")[0]:
            continue
        if not path.exists():
            found.append(f"{target} is not there")
        elif name.startswith("test_") and name not in names_in(path):
            found.append(f"{name} is not in {path.name}")
    return found


def rows(heading: str) -> list[str]:
    part = PROTOCOL.read_text().partition(f"## {heading}\n")[2].partition("\n## ")[0]
    assert part, f"no section {heading!r}"
    lines = [line for line in part.splitlines() if line.startswith("| ")]
    return lines[1:]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_test_and_file_that_is_named_is_there(page: Path) -> None:
    assert [] == wrong(page.read_text(), page.parent)


def test_one_that_is_not_there_would_be_found() -> None:
    page = "[test_of_nothing](test_protocol.py) [a page](NONE.md) [test_of_nothing](test_none.py) [elsewhere](https://example.org/x)"

    assert ["test_of_nothing is not in test_protocol.py", "NONE.md is not there", "test_none.py is not there"] == wrong(
        page, Path(__file__).parent
    )


def test_every_measured_fact_names_a_test() -> None:
    facts = rows("Measured facts")

    assert len(facts) > 25
    assert [] == [fact for fact in facts if "](../tests/" not in fact]


@pytest.mark.parametrize("heading", ["Owning", "Starting a task", "Processing", "The commit", "When it goes wrong", "Through internal topics"])
def test_every_rule_names_a_test_or_the_bug_that_breaks_it(heading: str) -> None:
    part = PROTOCOL.read_text().partition(f"## {heading}\n")[2].partition("\n## ")[0]
    table = next((t.strip() for t in part.split("\n\n") if t.strip().startswith("| rule | schedule that it forbids")), "")

    assert len(table.splitlines()) > 4
    assert [] == [row for row in table.splitlines()[2:] if "planted bug" not in row and "](../tests/" not in row]


def test_every_planted_bug_breaks_a_rule_of_the_page() -> None:
    named = PLANTED.findall(PROTOCOL.read_text())

    assert set(BUGS) == set(named)


def test_every_crash_point_has_its_row() -> None:
    there = [row.split("|")[1].strip() for row in rows("What each crash point leaves")]

    assert {point.row.partition(":")[0] for point in POINTS.values()} == set(there)


def test_every_term_is_defined_once() -> None:
    lines = [line.split("|")[1] for line in GLOSSARY.read_text().splitlines() if line.startswith("| **")]
    terms = [term for line in lines for term in re.findall(r"\*\*([^*]+)\*\*", line)]

    assert len(terms) > 60
    assert [] == sorted({term for term in terms if terms.count(term) > 1})


def test_every_measured_fact_in_the_code_names_the_test_that_shows_it() -> None:
    """What was measured of Kafka, RocksDB and their clients may change with a version: somebody has to notice."""
    tests = [path for path in tracked() if path.suffix == ".py" and path.is_relative_to(ROOT / "tests")]
    known = {path.stem for path in tests} | {name for path in tests if path.name.startswith("test_") for name in names_in(path)}
    silent = []
    for path in tracked():
        if path.suffix == ".py" and path.is_relative_to(ROOM):
            lines = path.read_text().splitlines()
            for number, line in enumerate(lines):
                named = set(re.findall(r"\btest_\w+", " ".join(lines[number : number + 4])))
                if "measured" in line.lower() and not named & known:
                    silent.append(f"{path.relative_to(ROOT)}:{number + 1}: {line.strip()}")

    assert [] == silent


def test_nothing_is_cited_that_is_not_in_the_tree() -> None:
    pages = [p for p in tracked() if p == ROOT / "README.md" or (p.is_relative_to(ROOM) and p.suffix in (".py", ".md"))]

    assert [] == lines_with(r"(?i)\(contract,|\bthe contract('s| says)|\bthe house('s|\b)|\bthe issue asks|protocol, section", pages)
