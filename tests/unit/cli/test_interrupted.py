"""Ctrl-C, whenever it comes: one line, 130, no traceback. The signal is sent by a module that is imported, so it comes at one point exactly."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import threading
import tomllib
from collections.abc import Sequence
from pathlib import Path

import pytest

from samzapy.cli.main import was_interrupted

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
    assert {"signal"} >= {name for name in loaded if name in ("signal", "typing", "importlib", "dataclasses", "inspect", "asyncio", "logging", "typer", "click")}


def test_the_command_is_this_one() -> None:
    assert "samzapy.__main__:main" == tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]["samzapy"]


BEFORE_THE_HANDLER = ("samzapy/__init__.py", "samzapy/__main__.py", "samzapy/cli/__init__.py", "samzapy/cli/interrupt.py", "bin/samzapy")


@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM], ids=lambda by: by.name)
@pytest.mark.parametrize("moments", [(0.1, 0.4), pytest.param([n / 50 for n in range(50)], marks=pytest.mark.prove)], ids=["two", "fifty"])
def test_a_signal_at_any_moment_leaves_a_line_at_most(moments: Sequence[float], by: signal.Signals, tmp_path: Path) -> None:
    """Before the handler is there Python is starting; a traceback from there names none of what a command is made of."""
    (tmp_path / "job.yaml").write_text(JOB)
    for after_s in moments:
        process = subprocess.Popen(
            [sys.executable, "-m", "samzapy", "validate", "job.yaml"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path
        )
        threading.Event().wait(after_s)
        process.send_signal(by)
        _, told = process.communicate(timeout=60)
        files = re.findall(r'File "(/[^"]+)"', told)
        if files:
            assert by == signal.SIGINT
            assert all(file.endswith(BEFORE_THE_HANDLER) for file in files if file.startswith(str(ROOT / "samzapy"))), told
        elif process.returncode == 130:
            assert "interrupted\n" == told
        else:
            assert process.returncode in (-by, 1, 2), told  # at once; within the interpreter's own start; or it was done
            assert "SZ900" not in told


@pytest.mark.parametrize("how", ["within C code", "a library's own error", "none"])
def test_what_a_ctrl_c_led_to_is_no_bug(how: str) -> None:
    error: BaseException = RuntimeError("some library's")
    try:
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt as interrupted:
            if how == "within C code":
                raise SystemError("<method 'get'> returned a result with an exception set") from interrupted
            if how == "a library's own error":
                raise OSError("closed") from None
    except (SystemError, OSError) as raised:
        error = raised
    assert (how != "none") == was_interrupted(error)


@pytest.mark.parametrize("command", ["demo", pytest.param("chaos", marks=pytest.mark.prove)])
def test_a_polite_kill_ends_what_a_shell_started_in_its_background(command: str, tmp_path: Path) -> None:
    """There Ctrl-C is ignored, so the command must not make one of the kill. Its folder goes too: it has cleaned up."""
    (tmp_path / "job.yaml").write_text((ROOT / "config" / "word-count.yaml").read_text())
    (tmp_path / "records").write_text('{"value": "a b"}\n')
    words = ["demo", "--local", "--no-open"] if command == "demo" else ["chaos", "job.yaml", "--input", "records"]
    ignoring = f"import signal, sys; signal.signal(signal.SIGINT, signal.SIG_IGN); sys.argv[1:] = {words!r}; from samzapy.__main__ import main; main()"
    process = subprocess.Popen(
        [sys.executable, "-c", ignoring], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path,
        env={**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert process.stderr is not None
    next(line for line in process.stderr if "starting Kafka" in line)
    process.terminate()
    _, told = process.communicate(timeout=60)
    assert (130, "interrupted") == (process.returncode, told.splitlines()[-1])
    assert [] == list(tmp_path.glob(f"samzapy-{command}-*"))


def test_a_run_that_a_script_started_in_its_background_takes_an_interrupt_before_it_has_begun(tmp_path: Path) -> None:
    """Such a shell has the signal ignored. The run is there, and the broker accepts and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        (tmp_path / "job.yaml").write_text(JOB.replace("[in]", "[{topic: in}]").replace("localhost:9", f"127.0.0.1:{silent.getsockname()[1]}"))
        (tmp_path / "my.py").write_text("from samzapy import StreamTask\nclass Task(StreamTask):\n    def process(self, *_): pass\n")
        words = ["run", "job.yaml", "--local"]
        ignoring = f"import signal, sys; signal.signal(signal.SIGINT, signal.SIG_IGN); sys.argv[1:] = {words!r}; from samzapy.__main__ import main; main()"
        process = subprocess.Popen(
            [sys.executable, "-c", ignoring], stderr=subprocess.PIPE, text=True, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)}
        )
        silent.settimeout(60)
        silent.accept()
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=60)
    assert (130, "interrupted") == (process.returncode, told.splitlines()[-1])
