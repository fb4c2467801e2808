"""Failpoints: the table is the code, what is asked for is understood or refused, and nothing is armed by accident."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from samzapy import failpoints
from samzapy.api.errors import ConfigurationError
from samzapy.failpoints import Crash, FailpointError, Rule
from tests.source import tree_of

PACKAGE = Path(failpoints.__file__).parent
OK = {"SAMZAPY_FAILPOINTS_OK": "1"}


def calls() -> Iterator[tuple[str, ast.Call]]:
    """Every call of `failpoints.hit` in the package, with its place."""
    for path in sorted(set(PACKAGE.rglob("*.py")) - set(PACKAGE.glob("testing/*.py"))):  # a disk in memory has those of the real one
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and ast.unparse(node.func) == "failpoints.hit":
                yield f"{path.relative_to(PACKAGE)}:{node.lineno}", node


def test_every_point_of_the_table_stands_in_the_code_once_and_every_call_is_in_the_table() -> None:
    names = Counter(ast.literal_eval(call.args[0]) for place, call in calls() if not place.startswith("testing/"))  # twins of what runs

    assert dict.fromkeys(failpoints.POINTS, 1) == dict(names)


def test_every_row_of_what_a_crash_leaves_has_points() -> None:
    rows = {
        failpoints.START, failpoints.OPEN, failpoints.INSIDE_C4, failpoints.DECIDED, failpoints.HANDED_OVER, failpoints.OWNING, failpoints.COPY,
        failpoints.PURGE,
    }  # fmt: skip

    assert rows == {point.row for point in failpoints.POINTS.values()}


def test_a_point_is_called_by_the_module_so_that_arming_reaches_it() -> None:
    """`from samzapy.failpoints import hit` would keep the function that does nothing."""
    imported = [
        str(path.relative_to(PACKAGE))
        for path in sorted(PACKAGE.rglob("*.py"))
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.ImportFrom) and node.module == "samzapy.failpoints" and any(a.name == "hit" for a in node.names)
    ]
    assert [] == imported


def test_no_point_stands_in_the_loop_over_records() -> None:
    tree = ast.parse((PACKAGE / "container" / "processing.py").read_text())
    process = next(n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.name == "_process")
    loops = [n for n in ast.walk(process) if isinstance(n, ast.For | ast.While)]

    assert loops
    assert [] == [ast.unparse(n) for loop in loops for n in ast.walk(loop) if isinstance(n, ast.Call) and "failpoints" in ast.unparse(n)]


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("commit.C4.before=kill", Rule("commit.C4.before", "kill")),
        ("commit.C4.before=kill:0.002@3/1", Rule("commit.C4.before", "kill", 0.002, 3, 1)),
        (" own.checked=exit/0 ", Rule("own.checked", "exit", container=0)),
        ("process.batch=sleep:0.5@2", Rule("process.batch", "sleep", 0.5, 2)),
        ("process.batch=stop", Rule("process.batch", "stop")),
        ("process.batch=raise", Rule("process.batch", "raise")),
    ],
)
def test_what_is_asked_for(text: str, rule: Rule) -> None:
    assert [rule] == failpoints.parsed(text)
    assert [rule] == failpoints.parsed(str(rule)), "as it is logged it can be asked for again"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("commit.C4.befor=kill", "no failpoint 'commit.C4.befor'"),
        ("commit.C4.before", "is not a failpoint"),
        ("commit.C4.before=kill@0", "is not a failpoint"),
        ("commit.C4.before=burn", "no such action"),
        ("commit.C4.before=sleep", "no such action"),
        ("commit.C4.before=exit:1", "no such action"),
        ("commit.C4.before=sleep:1.2.3", "is not a number of seconds"),
    ],
)
def test_what_cannot_be_meant_is_refused(text: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        failpoints.parsed(text)


def test_nothing_is_armed_without_both_variables() -> None:
    inert = failpoints.hit
    failpoints.arm({})
    failpoints.arm({"SAMZAPY_FAILPOINTS": " ", **OK})
    failpoints.arm(OK)
    with pytest.raises(ConfigurationError, match="SAMZAPY_FAILPOINTS_OK=1"):
        failpoints.arm({"SAMZAPY_FAILPOINTS": "own.checked=raise"})
    assert inert is failpoints.hit


@pytest.fixture
def restored() -> Iterator[None]:
    with failpoints.calling(failpoints.hit):
        yield


@pytest.mark.usefixtures("restored")
def test_it_strikes_at_the_nth_hit_and_in_its_container_only() -> None:
    failpoints.arm({"SAMZAPY_FAILPOINTS": "process.batch=raise@3/1,own.checked=raise/0", **OK}, 1)
    failpoints.hit("own.checked")
    failpoints.hit("process.batch")
    failpoints.hit("process.batch")
    with pytest.raises(FailpointError, match=r"process.batch=raise@3/1"):
        failpoints.hit("process.batch")
    failpoints.hit("process.batch")


@pytest.mark.usefixtures("restored")
def test_processes_that_count_in_one_directory_strike_once_in_all(tmp_path: Path) -> None:
    environment = {"SAMZAPY_FAILPOINTS": "process.batch=exit@2", "SAMZAPY_FAILPOINTS_DIR": str(tmp_path), **OK}

    assert [0, failpoints.EXIT_CODE, 0] == [_process(environment) for _ in range(3)]
    assert 3 == failpoints.parsed("process.batch=exit@2")[0].file(tmp_path).stat().st_size


@pytest.mark.parametrize(("action", "code"), [("kill", -9), ("exit", failpoints.EXIT_CODE), ("raise", 1), ("sleep:0.001", 0)])
def test_what_the_actions_do_to_a_process(action: str, code: int) -> None:
    assert code == _process({"SAMZAPY_FAILPOINTS": f"process.batch={action}", **OK})


def test_a_callback_is_called_while_its_block_is_open() -> None:
    seen: list[str] = []

    def strike(name: str) -> None:
        seen.append(name)
        raise Crash

    with failpoints.calling(strike), pytest.raises(Crash):
        failpoints.hit("init.before")
    failpoints.hit("init.after")
    assert ["init.before"] == seen


def _process(environment: dict[str, str]) -> int:
    code = "import os; from samzapy import failpoints as f; f.arm(os.environ, 0); f.hit('process.batch')"
    return subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **environment}, capture_output=True, timeout=60, check=False
    ).returncode
