"""What the launcher says and hands down, without starting anything."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import samzapy
from samzapy.container.process import entry_named, run_entry
from samzapy.local.launcher import ProcessLauncher, child_environment


def test_a_child_finds_this_samzapy_first() -> None:
    home = str(Path(samzapy.__file__).resolve().parent.parent)

    assert home == child_environment({})["PYTHONPATH"]
    assert home + os.pathsep + "other" == child_environment({"PYTHONPATH": "other"})["PYTHONPATH"]


def test_an_entry_is_found_by_its_name() -> None:
    assert os.path.join is entry_named("os.path:join")


def test_an_entrys_exit_becomes_the_code(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    module = "an_entry_of_test_launcher"
    (tmp_path / f"{module}.py").write_text("import sys\ndef ends(payload): sys.exit(payload['code'])\n")
    monkeypatch.setattr("sys.path", [str(tmp_path)])

    assert 4 == run_entry({"entry": f"{module}:ends", "code": 4})
    assert 1 == run_entry({"entry": f"{module}:ends", "code": "words"})
    assert 0 == run_entry({"entry": f"{module}:ends", "code": None})


def test_what_an_entry_imports_is_not_looked_for_in_the_users_folders(tmp_path: Path) -> None:
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "an_entry.py").write_text("import colorsys\ndef main(payload): import mine; return int(not hasattr(colorsys, 'rgb_to_hls'))\n")
    (tmp_path / "job").mkdir()
    for name in ("colorsys", "mine"):
        (tmp_path / "job" / f"{name}.py").write_text("")
    payload = {"entry": "an_entry:main", "folders": [str(tmp_path / "job")]}
    program = f"import sys; from samzapy.container.process import run_entry; sys.path.append({str(tmp_path / 'code')!r}); sys.exit(run_entry({payload}))"

    assert 0 == subprocess.run([sys.executable, "-c", program], check=False).returncode


def test_an_entry_that_cannot_be_found_is_said_and_ends_with_70(caplog: pytest.LogCaptureFixture) -> None:
    assert 70 == run_entry({"entry": "no_such_module_of_ours:main"})
    assert "the container's process failed: ModuleNotFoundError: No module named 'no_such_module_of_ours'" in caplog.text


def test_a_container_may_open_as_many_files_as_the_system_allows(tmp_path: Path) -> None:
    (tmp_path / "limits_of_a_test.py").write_text(
        "import resource\ndef told(payload): return int(resource.getrlimit(resource.RLIMIT_NOFILE)[0] != 700)\n"
    )
    program = (
        f"import resource, sys; resource.setrlimit(resource.RLIMIT_NOFILE, (200, 700)); sys.path.append({str(tmp_path)!r});"
        "from samzapy.container.process import run_entry; sys.exit(run_entry({'entry': 'limits_of_a_test:told'}))"
    )

    assert 0 == subprocess.run([sys.executable, "-c", program], check=False).returncode


def test_this_machine_is_the_only_host_and_never_leaves() -> None:
    launcher = ProcessLauncher()

    assert {"localhost": None} == launcher.hosts()
    assert not launcher.leaving()
    launcher.close()
