"""A harness given a job file as a dict whose job is a program."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from samzapy.config.errors import ConfigError
from samzapy.testing import Harness

PROGRAM = """
from samzapy.streams import App

app = App()
app.stream("words", key=str, value=str).count("counts").to("out")
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "a_counting_program", raising=False)
    (tmp_path / "a_counting_program.py").write_text(PROGRAM)
    return tmp_path


def job(**more: Any) -> dict[str, Any]:
    return {"job": "j", "app": "a_counting_program:app", "kafka": {"bootstrap.servers": "x:1"}, **more}


def test_its_inputs_stores_and_outputs_are_those_of_the_program(folder: Path) -> None:
    with Harness(job(streams={"words": {"topic": "elsewhere"}})) as h:
        h.send("elsewhere", "hi", key="ada")
        h.run()
        h.crash()
        h.send("elsewhere", "again", key="ada")
        h.run()
        assert [("ada", 1), ("ada", 2)] == h.output("out")


@pytest.mark.parametrize(
    ("more", "path"), [({"app": "a_counting_program:nothing"}, "app"), ({"streams": {"wrong": {"topic": "t"}}}, "streams.wrong")]
)
def test_what_is_wrong_with_it_is_told_at_its_place(folder: Path, more: dict[str, Any], path: str) -> None:
    with pytest.raises(ConfigError) as raised:
        Harness(job(**more)).__enter__()
    assert [path] == [problem.path for problem in raised.value.problems]
