"""`samzapy init` and `samzapy schema`: what is written runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from samzapy.api.errors import ConfigurationError
from samzapy.cli.init import job_name, module_name, write_skeleton
from samzapy.cli.main import exit_code
from samzapy.wiring.job_file import load_program

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(
    ("name", "streams"),
    [
        ("json", False),
        ("visits of 2027", True),
        *(pytest.param(name, False, marks=pytest.mark.prove) for name in ("visits-of-a-page", "Page Views.2", "2-fast")),
    ],
)
def test_the_skeleton_is_valid_and_its_own_test_passes(tmp_path: Path, name: str, streams: bool) -> None:
    folder = tmp_path / "new" / name
    files = write_skeleton(folder, streams)
    assert sorted(files) == sorted(p.name for p in folder.iterdir())
    [job] = folder.glob("*.yaml")
    assert job_name(name) == load_program([job], [], {}, check_classes=True).settings.job
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, env=environ, check=False)
    assert f"{1 + streams} passed" in result.stdout, result.stdout + result.stderr


def test_a_directory_with_something_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("x")
    with pytest.raises(ConfigurationError, match=r"is not empty: it has mine\.txt"):
        write_skeleton(tmp_path)
    assert ["mine.txt"] == [p.name for p in tmp_path.iterdir()]


def test_a_file_is_no_directory(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(ConfigurationError, match="cannot be written: File exists"):
        write_skeleton(tmp_path / "file")


@pytest.mark.parametrize(
    ("directory", "job", "module"),
    [
        ("visits-of-2026", "visits-of-2026", "visits_of_2026"),
        ("a b", "a-b", "a_b"),
        ("работа", "my-job", "my_job"),
        ("json", "json", "job_json"),
        ("7", "7", "job_7"),
    ],
)
def test_names_are_made_of_the_directory(directory: str, job: str, module: str) -> None:
    assert (job, module) == (job_name(directory), module_name(job))


def test_the_schema_is_the_one_in_config(capsys: pytest.CaptureFixture[str]) -> None:
    assert 0 == exit_code(["schema"])
    assert json.loads((ROOT / "config" / "job.schema.json").read_text()) == json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("name", ["visits", "my job", 'a"b', "it's", "$HOME", "-x"])
def test_the_next_command_runs_as_it_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert 0 == exit_code(["init", "--", name])
    [command] = [line.removeprefix("next: ") for line in capsys.readouterr().err.splitlines() if line.startswith("next: ")]
    done = subprocess.run(["sh", "-c", f"{command} && ls README.md && pwd -P"], capture_output=True, text=True, timeout=60, check=False)
    assert ["README.md", str((tmp_path / name).resolve())] == done.stdout.splitlines(), done.stderr
