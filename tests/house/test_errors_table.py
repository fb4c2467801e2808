"""The table of error codes says what the code says, and nothing that the code says is missing from it."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import samzapy
from samzapy.api.errors import SamzapyError
from tests import errors_table
from tests.source import tree_of

PACKAGE = Path(samzapy.__file__).parent
CODE = re.compile(r"SZ\d{3}")
CONTRACTS_EXIT_CODES = {1, 2, 4, 5}


def modules() -> Iterator[tuple[Path, ast.Module]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        yield path, tree_of(path)


def test_the_page_is_fresh() -> None:
    page = errors_table.PAGE.read_text(encoding="utf-8")

    assert errors_table.written(page) == page, "run python -m tests.errors_table --write"


def test_a_stale_page_would_be_found() -> None:
    page = f"# Title\n{errors_table.BEGIN}\n| old |\n{errors_table.END}\nThe rest.\n"

    assert f"# Title\n{errors_table.BEGIN}\n{errors_table.markdown()}{errors_table.END}\nThe rest.\n" == errors_table.written(page)
    for broken in ("", errors_table.BEGIN + "\n", page + errors_table.END, page + page):
        with pytest.raises(ValueError, match="once each"):
            errors_table.written(broken)


def codes(tree: ast.Module) -> list[ast.Constant]:
    """Every literal that is a code."""
    literals = [node for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    return [node for node in literals if CODE.fullmatch(str(node.value))]


def given_codes(tree: ast.Module) -> set[str]:
    """Codes that stand elsewhere than in the line of a class that names its own."""
    named = [s.value for s in ast.walk(tree) if isinstance(s, ast.Assign) and [getattr(t, "id", "") for t in s.targets] == ["code"]]
    return {str(node.value) for node in codes(tree) if node not in named}


def test_every_code_written_anywhere_is_in_the_table() -> None:
    known = {row.code for row in errors_table.rows()}
    found = {
        f"{path.relative_to(PACKAGE)}:{node.lineno}: {node.value}"
        for path, tree in modules()
        for node in codes(tree)
        if node.value not in known
    }

    assert set() == found


def test_codes_given_without_their_class_are_listed_as_such() -> None:
    given = {code for path, tree in modules() for code in given_codes(tree)}

    assert {row.code for row in errors_table.AD_HOC} == given


def test_every_class_of_errors_is_in_the_table() -> None:
    """Whoever defines one elsewhere adds its module to DEFINED_IN; the in-memory Kafka's own are never a user's to see."""
    for path, _ in modules():
        name = ".".join(("samzapy", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__")
        if not name.startswith(
            ("samzapy.spark", "samzapy.__main__", "samzapy.local.child")
        ):  # Spark may not be installed; two are programs
            importlib.import_module(name)

    def below(root: type[SamzapyError]) -> Iterator[type[SamzapyError]]:
        yield root
        for one in root.__subclasses__():
            yield from below(one)

    listed = {row.name for row in set(errors_table.rows()) - set(errors_table.AD_HOC)}
    defined = {c.__name__ for c in below(SamzapyError) if c.__module__.startswith("samzapy.") and ".testing." not in c.__module__}
    assert listed == defined


def test_every_row_is_complete() -> None:
    for row in errors_table.rows():
        assert row.exit_code in CONTRACTS_EXIT_CODES, row
        assert row.cause, row
        assert row.remedy, row
        assert not row.cause.endswith("."), row


def test_check_and_write_are_the_only_verbs(capsys: pytest.CaptureFixture[str]) -> None:
    assert 2 == errors_table.main([])
    assert 2 == errors_table.main(["--both"])
    assert "usage" in capsys.readouterr().err
    assert 0 == errors_table.main(["--check"])
