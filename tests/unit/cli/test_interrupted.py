"""Ctrl-C, whenever it comes: one line, 130, no traceback. The signal is sent by a module that is imported, so it comes at one point exactly."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
STRIKE = "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n"
JOB = "job: j\ntask: my:Task\ninputs: [in]\nkafka: {bootstrap.servers: 'localhost:9'}\n"


@pytest.mark.parametrize(
    ("module", "content"),
    [
        ("typer", STRIKE),  # while the command line is imported
        ("ruamel", "try:\n    import os, signal\n    os.kill(os.getpid(), signal.SIGINT)\nexcept BaseException:\n    raise ImportError\n"),
        ("my", STRIKE),  # the task's module, while the command runs
    ],
)
def test_a_ctrl_c_during_imports_is_a_line_and_130(module: str, content: str, tmp_path: Path) -> None:
    (tmp_path / f"{module}.py").write_text(content)
    (tmp_path / "job.yaml").write_text(JOB)
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(tmp_path)!r}); from samzapy.__main__ import main; main()", "validate", "job.yaml"],
        capture_output=True, text=True, cwd=tmp_path, timeout=60, check=False, env={"PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert ("interrupted\n", 130) == (done.stderr, done.returncode)


def test_what_comes_before_the_handler_is_small() -> None:
    code = "import sys; before = set(sys.modules); import samzapy.__main__; print(*sorted(set(sys.modules) - before))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60).stdout.split()
    own = [name for name in loaded if name.startswith("samzapy")]
    assert ["samzapy", "samzapy.__main__", "samzapy.cli", "samzapy.cli.interrupt"] == own
    assert {"signal"} >= {name for name in loaded if name in ("signal", "dataclasses", "inspect", "asyncio", "logging", "typer", "click")}


def test_the_command_is_this_one() -> None:
    assert "samzapy.__main__:main" == tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]["samzapy"]
