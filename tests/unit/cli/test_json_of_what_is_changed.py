"""`init --json`, and the forms of commands whose runs are tested elsewhere."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from samzapy.cli.chaos import _strike
from samzapy.cli.main import exit_code
from samzapy.testing.chaos_plan import StrikeDone
from tests.json_forms import check


def test_init_tells_what_it_wrote(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert 0 == exit_code(["init", str(tmp_path / "my-job"), "--json"])
    line = capsys.readouterr().out
    check("init", line)
    found = json.loads(line)
    assert sorted(found["files"]) == sorted(path.name for path in Path(found["directory"]).iterdir())


def test_a_fault_of_chaos_has_its_form() -> None:
    done = StrikeDone(1.5, "kill", "container 0", None, True, "it hit nothing")
    check("chaos", json.dumps({"result": "CLEAN", "why": "", "seed": 1, "strikes": [_strike(done)], "differences": []}))
