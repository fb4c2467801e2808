"""Tables fit the terminal, have colour where that is wanted, and are plain lines for other programs."""

from __future__ import annotations

import io
import os
import pty
import re
import subprocess
import sys
from collections.abc import Callable

import pytest

from samzapy.cli.folding import folded
from samzapy.cli.output import checked_output
from samzapy.cli.rich_table import rendered
from samzapy.cli.tables import fitting, print_table

HEADER = ("TASK", "STATE", "LAG", "REASON")
ROWS = [("Partition 0", "RUNNING", 12, None), ("Partition 1", "FAILED", 3456, "a long reason " * 12), ("[b]x[/b]", "a\x1b[31mb", 1, "ü")]
Shown = Callable[..., str]


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> Shown:
    """The table as written with these environment variables."""

    def show(**environment: str) -> str:
        for name in ("COLUMNS", "NO_COLOR", "FORCE_COLOR"):
            monkeypatch.delenv(name, raising=False)
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        out = io.StringIO()
        monkeypatch.setattr(sys, "stdout", out)
        with checked_output():
            print_table(HEADER, ROWS)
        return out.getvalue()

    return show


@pytest.mark.parametrize("environment", [{}, {"COLUMNS": "40"}])
def test_other_programs_get_a_line_a_row_and_no_colour(environment: dict[str, str], shown: Shown) -> None:
    text = shown(**environment)
    assert 1 + len(ROWS) == len(text.splitlines())
    assert "\x1b" not in text
    assert "TASK         STATE" in text


@pytest.mark.parametrize("width", [40, 80, 120, 200])
def test_a_table_is_as_wide_as_the_terminal_and_loses_nothing(width: int, shown: Shown) -> None:
    text = shown(COLUMNS=str(width), FORCE_COLOR="1", NO_COLOR="1")
    assert max(map(len, text.splitlines())) <= width
    assert "\x1b" not in text
    words = [word for row in ROWS for cell in row for word in str("" if cell is None else cell).split()]
    assert all("".join(text.split()).count(word[:3]) for word in words if word.isalnum())
    assert 12 == text.count("long")
    assert "[b]x[/b]" in text


def test_a_wide_terminal_is_used(shown: Shown) -> None:
    wide, narrow = (shown(COLUMNS=width, FORCE_COLOR="1").splitlines() for width in ("400", "80"))
    assert len(wide) < len(narrow)


def test_colour_is_forced_and_refused(shown: Shown) -> None:
    forced = shown(FORCE_COLOR="1")
    assert re.search(r"\x1b\[32mRUNNING *\x1b\[0m", forced)
    assert re.search(r"\x1b\[1;31mFAILED *\x1b\[0m", forced)
    assert "a\\x1b[31mb" in forced, "what others wrote is text, also among colours"
    assert "\x1b" not in shown(FORCE_COLOR="1", NO_COLOR="1", COLUMNS="80")


@pytest.mark.parametrize("environment", [{}, {"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_a_terminal_is_seen(environment: dict[str, str]) -> None:
    code = f"from samzapy.cli.tables import print_table\nprint_table({HEADER!r}, {ROWS[:1]!r})"
    primary, secondary = pty.openpty()
    base = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR", "COLUMNS")}
    subprocess.run([sys.executable, "-c", code], stdout=secondary, check=True, timeout=60, env={**base, "TERM": "xterm", **environment})
    os.close(secondary)
    said = os.read(primary, 65536).decode()
    os.close(primary)
    assert ("\x1b[32mRUNNING" in said) == (not environment)


def rendered_at(width: int, spare: tuple[str, ...] = ()) -> list[str]:
    names = ["TOPIC", "ROLE", "EXPECTED", "ACTUAL", "STATE"]
    rows = [["__samza_coordinator_visits_1", "coordinator", "1 partition, compact", "1 partition, compact, replication 1", "ok"]]
    return rendered(*fitting(names, rows, spare, width), [False] * (5 - len(spare)), width, False).splitlines()


def test_where_cells_are_folded_words_stay_whole_and_no_column_goes() -> None:
    lines = rendered_at(80)
    assert max(map(len, lines)) <= 80
    assert "STATE" in lines[0]
    assert "__samza_coordinator_visits_1" in lines[1]
    assert lines[1].endswith("ok")
    assert len(rendered_at(160)) == 2


def test_columns_that_may_be_spared_go_first() -> None:
    assert ["TOPIC", "ROLE", "STATE"] == fitting(["TOPIC", "ROLE", "STATE"], [["t", "r", "s"]], ["ROLE"], 40)[0]
    assert (["TOPIC", "STATE"], [["t" * 30, "s"]]) == fitting(["TOPIC", "ROLE", "STATE"], [["t" * 30, "r", "s"]], ["ROLE", "STATE"], 40)


def test_sentences_are_folded_at_words_and_commands_stay_whole() -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    text = (
        "  Use " + "a word " * 8 + "or `samzapy checkpoint set job.yaml --to-earliest --reset-state --execute` now.\n    kept " + "x " * 40
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", "80")
        lines = folded(text, Terminal(), "    ").split("\n")
        assert text == folded(text, io.StringIO(), "    ")
    assert "  `samzapy checkpoint set job.yaml --to-earliest --reset-state --execute` now." == lines[1]
    assert "    kept " + "x " * 40 == lines[2]
    assert text.split() == " ".join(lines).split()
