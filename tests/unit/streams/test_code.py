"""The code that is made of programs: as it is in the golden files, bounded in depth, without anything that the user wrote."""

from __future__ import annotations

import ast
import os
from pathlib import Path
from typing import Any

import pytest

from samzapy.api.errors import ConfigurationError
from samzapy.cli.main import exit_code
from samzapy.streams import App, agg, picture
from samzapy.streams.compile import MAX_DEPTH, compiled, parts_needed
from samzapy.testing import Harness

GOLDEN = Path(__file__).parent / "golden"
EVIL = "'\n\"\"\"#"


def attribution() -> App:
    """Every operator that there is."""
    app = App()
    users = app.table("users", key=str, value=dict, broadcast=True)
    before = app.table("before", key=str, value=int)
    clicks = app.stream("clicks", key=str, value=dict, time=lambda click: click["at"])
    views = app.stream("views", key=str, value=dict)
    pairs = clicks.filter(lambda click, headers: True).lookup(users, on=lambda click: click["user"])
    nobodys, paid = pairs.branch(lambda pair: pair[1] is None)
    nobodys.map(lambda pair: pair[0]).to("unattributed", timestamps="send")
    paid.flat_map(lambda pair, key, time: [pair, pair]).merge(views).peek(print).count("seen")
    clicks.fold("spent", lambda: 0, lambda total, click: total + click["price"], value=int, initial=before).to("spent")
    clicks.aggregate("sums", n=agg.count(), last=agg.last()).updates().filter_map(lambda sums: sums).to(
        "sums", partition=lambda sums: sums["n"] % 2
    )
    views.lookup(before, how="inner").sink(lambda pair: None)
    views.reduce("newest", lambda old, new: new)
    return app


def test_the_code_is_the_golden_one() -> None:
    file = GOLDEN / "attribution.py.txt"
    made = compiled(attribution().graph).source
    if os.environ.get("WRITE_GOLDEN"):
        file.write_text(made)
    assert file.read_text() == made


@pytest.mark.parametrize("form", picture.FORMS)
def test_the_pictures_are_the_golden_ones(form: str) -> None:
    file = GOLDEN / f"attribution.{form}.txt"
    made = picture.FORMS[form](attribution().graph, {"clicks": "prod.clicks"})
    if os.environ.get("WRITE_GOLDEN"):
        file.write_text(made)
    assert file.read_text() == made


def test_nothing_that_the_user_wrote_is_in_the_code() -> None:
    app = App()
    stream = app.stream("topic-of-mine", key=str, value=dict)
    stream.map(lambda value: value, label=EVIL).aggregate("store-of-mine", **{EVIL: agg.count()}).to("other-topic-of-mine")
    source = compiled(app.graph).source
    assert not [word for word in ("mine", "'", '"', "#", "\\") if word in source]
    with Harness(app) as h:
        h.send("topic-of-mine", {}, key="k")
        h.run()
        assert [("k", {EVIL: 1})] == h.output("other-topic-of-mine")
    assert EVIL not in picture.text(app.graph, {})
    assert EVIL not in picture.code(app.graph)


def depth_of(node: ast.AST) -> int:
    """How many blocks are in each other, from the last function on."""
    below = max((depth_of(child) for child in ast.iter_child_nodes(node)), default=0)
    if isinstance(node, ast.FunctionDef | ast.Module):
        return 0
    return below + isinstance(node, ast.If | ast.For)


def test_a_deep_program_stays_flat() -> None:
    app = App()
    stream: Any = app.stream("in", key=str, value=int)
    for _ in range(60):
        stream = stream.filter(lambda n: n > 0).map(lambda n: n, value=int)
    stream.to("out")
    tree = ast.parse(compiled(app.graph).source)
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    assert len(functions) > 60 // MAX_DEPTH
    assert max(depth_of(child) for function in functions for child in function.body if not isinstance(child, ast.FunctionDef)) <= MAX_DEPTH + 1
    with Harness(app) as h:
        h.send("in", 1, key="k")
        h.run()
        assert [("k", 1)] == h.output("out")


def test_a_long_program_is_cut_into_functions() -> None:
    app = App()
    stream: Any = app.stream("in", key=str, value=int)
    for _ in range(1500):
        stream = stream.map(lambda n: n + 1, value=int)
    stream.to("out")
    with Harness(app) as h:
        h.send("in", 0, key="k")
        h.run()
        assert [("k", 1500)] == h.output("out")


def test_diamonds_do_not_double() -> None:
    app = App()
    stream: Any = app.stream("in", key=str, value=int)
    for _ in range(12):
        stream = stream.map(lambda n: n, value=int).merge(stream)
    stream.count("n")
    assert len(compiled(app.graph).source.splitlines()) < 150
    with Harness(app) as h:
        h.send("in", 1, key="k")
        h.run()
        assert {"k": 2**12} == h.store("n")


def test_what_nobody_uses_is_not_decoded() -> None:
    app = App()
    counted = app.stream("in", key=str, value=dict)
    counted.count("n")
    assert frozenset("k") == parts_needed(app.graph)[counted.node]
    assert "value" not in compiled(app.graph).source


JOB = """
job: shown
app: shown_program:app
kafka: {bootstrap.servers: "nowhere:1"}
streams: {in: {topic: prod.in}}
"""
PROGRAM = """
from samzapy.streams import App

app = App()
app.stream("in", key=str, value=int).map(lambda n: n * 2, label="twice").to("out")
"""


@pytest.fixture
def job(tmp_path: Path) -> Path:
    (tmp_path / "shown_program.py").write_text(PROGRAM)
    (tmp_path / "job.yaml").write_text(JOB)
    return tmp_path / "job.yaml"


def test_plan_shows_the_graph_and_the_code_without_a_cluster(job: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert 0 == exit_code(["plan", str(job), "--graph", "text", "--code"])
    printed = capsys.readouterr().out
    assert printed.startswith("stream in (topic prod.in): str → int  shown_program.py:5\n└─ map twice  shown_program.py:5\n   └─ to out")
    assert "# 1   map twice  shown_program.py:5" in printed
    assert "v1 = f1(v0)" in printed


def test_plan_says_which_pictures_there_are_and_who_has_none(job: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert ConfigurationError.exit_code == exit_code(["plan", str(job), "--graph", "svg"])
    assert "There are: text, mermaid, dot, json." in capsys.readouterr().err
    other = tmp_path / "task.yaml"
    other.write_text("{job: j, task: 'jobs.page_views:PageViewCounter', kafka: {bootstrap.servers: 'x:1'}, inputs: [{topic: a}]}")
    assert ConfigurationError.exit_code == exit_code(["plan", str(other), "--code"])
    assert "has a `task`, not an `app`" in capsys.readouterr().err
