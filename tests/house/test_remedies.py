"""What samzapy tells people to run can be run as it is printed: no command without its arguments, none that is not there.

In the source a remedy names the job file as JOB.yaml; the command line puts the user's own file, and what was laid over it, in its place.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.commands import commands_in, what_does_not_run
from tests.source import tree_of

ROOT = Path(__file__).parents[2]
PROSE = {"help", "description", "metavar"}  # of options and of keys: there a command is named, not told to be run


def texts(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Every text of a module with its line: no docstrings, no help; what is put in when it runs is a 1."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            continue
        if isinstance(node, ast.keyword) and node.arg in PROSE:
            continue
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value
        elif isinstance(node, ast.JoinedStr):
            yield node.lineno, "".join(str(part.value) if isinstance(part, ast.Constant) else "1" for part in node.values)
        else:
            yield from texts(node)


def test_every_command_that_is_told_to_be_run_can_be() -> None:
    modules = {path: tree_of(path) for path in sorted((ROOT / "samzapy").rglob("*.py"))}
    found = {f"{path.relative_to(ROOT)}:{line}": what_does_not_run(text) for path, tree in modules.items() for line, text in texts(tree)}
    assert {} == {where: wrong for where, wrong in found.items() if wrong}, "in full: JOB.yaml is replaced by the user's job file"


def test_what_could_not_be_run_would_be_found() -> None:
    for wrong in (
        "Stop it first: `samzapy stop`.", "`samzapy reset … --execute`", "samzapy topics --create", "run `samzapy stopp JOB.yaml`", "samzapy tail TOPIC --json",
        "kafka-topics.sh --alter", "pip install 'samzapy[spark]'",
    ):  # fmt: skip
        assert 1 == len(what_does_not_run(wrong)), wrong
    for right in ("Stop it first: `samzapy stop JOB.yaml`.", "`samzapy send --help`", "see samzapy, and `samzapy.model`"):
        assert [] == what_does_not_run(right)
    assert ["samzapy stop JOB.yaml", "samzapy topics JOB.yaml"] == commands_in("`samzapy stop JOB.yaml`, or: samzapy topics JOB.yaml")


def test_texts_are_found_where_they_are() -> None:
    module = '"""`samzapy stop`"""\nERROR = f"{a}: `samzapy stop {b}`" "."\nopt(help="`samzapy stop`")\n'
    assert [(2, "1: `samzapy stop 1`.")] == list(texts(ast.parse(module)))
