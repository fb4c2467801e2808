"""`samzapy` commands for tests, each in a process of its own, forked from one that has imported samzapy already.

Most of a short command's processor time goes into its imports, and the tests run hundreds of commands. So `run_samzapy` asks a server, which
starts with the first command and ends with the tests' process. The server forks; what it forks goes on as `python -m samzapy` does, in the
folder, with the environment and the arguments that it was given. Which modules a command imports is tested in `tests/unit/cli`.

The command's standard input is empty, and its output goes to files: whatever it has started may outlive it.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import gc
import importlib
import io
import json
import os
import pkgutil
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Protocol

ROOT = Path(__file__).parents[1]
LARGEST_REQUEST = 1 << 17  # bytes: arguments and environment
READ_AT_START = (
    "PYTHONHASHSEED",
    "PYTHONIOENCODING",
    "PYTHONUTF8",
    "LC_ALL",
    "LANG",
)  # variables that a running Python does not look at again
BESIDE_THE_COMMANDS = ("samzapy.coordinator.job_coordinator", "samzapy.local.launcher", "samzapy.wiring.coordinator")


def run_samzapy(
    arguments: Sequence[str], folder: Path, limit_s: float, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """`samzapy` with these arguments, to its end.

    Raises:
        subprocess.TimeoutExpired: it had not ended within `limit_s` seconds, and was killed.
    """
    variables = dict(os.environ if environment is None else environment)
    command = [sys.executable, "-m", "samzapy", *arguments]
    if sys.platform != "linux" or any(variables.get(name) != os.environ.get(name) for name in READ_AT_START):
        return subprocess.run(
            command, capture_output=True, text=True, timeout=limit_s, stdin=subprocess.DEVNULL, cwd=folder, env=variables, check=False
        )
    with tempfile.TemporaryFile() as stdout, tempfile.TemporaryFile() as stderr:
        process = _asked(arguments, folder, variables, (stdout, stderr), own_session=False)
        try:
            code = process.wait(limit_s)
        except subprocess.TimeoutExpired:
            process.kill()
            raise subprocess.TimeoutExpired(command, limit_s, _written(stdout), _written(stderr)) from None
        return subprocess.CompletedProcess(command, code, _written(stdout), _written(stderr))


def start_samzapy(arguments: Sequence[str], folder: Path, log: Path) -> Process:
    """`samzapy` with these arguments, in a session of its own. What it says is added to the log; what it prints goes nowhere."""
    with log.open("ab") as said, open(os.devnull, "ab") as nowhere:
        if sys.platform == "linux":
            return _asked(arguments, folder, dict(os.environ), (nowhere, said), own_session=True)
        return subprocess.Popen(
            [sys.executable, "-m", "samzapy", *arguments],
            stdin=subprocess.DEVNULL, stdout=nowhere, stderr=said, cwd=folder, start_new_session=True,
        )  # fmt: skip


class Process(Protocol):
    """What a `subprocess.Popen` and a `Forked` have in common."""

    pid: int

    def poll(self) -> int | None: ...

    def wait(self, timeout: float | None = None) -> int: ...

    def send_signal(self, sig: int, /) -> None: ...

    def kill(self) -> None: ...


class Forked:
    """A command's process. `answers`: where its pid is told, and how it ended."""

    def __init__(self, answers: io.FileIO) -> None:
        self._answers = answers
        self._code: int | None = None
        self.pid = int(answers.readline())

    def poll(self) -> int | None:
        try:
            return self.wait(0.0)
        except subprocess.TimeoutExpired:
            return None

    def wait(self, timeout: float | None = None) -> int:
        if self._code is None:
            if not select.select([self._answers], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired("samzapy", timeout or 0.0)
            self._code = int(self._answers.readline())
            self._answers.close()
        return self._code

    def send_signal(self, sig: int, /) -> None:
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, sig)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def _asked(
    arguments: Sequence[str], folder: Path, environment: dict[str, str], output: tuple[IO[bytes], IO[bytes]], own_session: bool
) -> Forked:
    request = {"arguments": list(arguments), "folder": str(folder), "environment": environment, "own session": own_session}
    ours, theirs = os.pipe()
    with open(theirs, "wb") as answers:
        socket.send_fds(_server(), [json.dumps(request).encode()], [answers.fileno(), *(file.fileno() for file in output)])
    return Forked(io.FileIO(ours))


def _written(file: IO[bytes]) -> str:
    return os.pread(file.fileno(), os.fstat(file.fileno()).st_size, 0).decode()


@functools.cache
def _server() -> socket.socket:
    """The socket that takes requests. The server ends when nobody holds it any more."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}  # each command brings its own
    with theirs:
        server = subprocess.Popen(
            [sys.executable, "-m", "tests.command_server", str(theirs.fileno())],
            cwd=ROOT, env=environment, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
    atexit.register(_end, ours, server)
    return ours


def _end(requests: socket.socket, server: subprocess.Popen[bytes]) -> None:
    requests.close()
    server.wait()


# -- in the server -----------------------------------------------------------------------------------------------------------------------


def import_what_commands_need() -> None:
    import samzapy.cli

    for module in pkgutil.iter_modules(samzapy.cli.__path__):
        importlib.import_module(f"samzapy.cli.{module.name}")
    for name in BESIDE_THE_COMMANDS:
        importlib.import_module(name)


def next_command(requests: socket.socket) -> list[str] | None:
    """In a command's own process: its arguments. In the server: None, when there will be no more requests."""
    while True:
        request, files, _, _ = socket.recv_fds(requests, LARGEST_REQUEST, 3)
        _reap()
        if not request:
            return None
        if os.fork() == 0:
            requests.close()
            return _guarded(json.loads(request), *files)
        for file in files:
            os.close(file)


def _reap() -> None:
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _guarded(request: dict[str, Any], answers: int, stdout: int, stderr: int) -> list[str]:
    """In a process that waits for the command: does not return. In the command's own: its arguments."""
    pid = os.fork()
    if pid != 0:
        os.write(answers, f"{pid}\n".encode())
        _, status = os.waitpid(pid, 0)
        os.write(answers, f"{os.waitstatus_to_exitcode(status)}\n".encode())
        os._exit(0)
    if request["own session"]:
        os.setsid()
    for number, file in ((1, stdout), (2, stderr)):
        os.dup2(file, number)
    for file in (answers, stdout, stderr):
        os.close(file)
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.path[:1] = [os.getcwd(), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]  # as `python -m` has it
    return list(request["arguments"])


def main() -> None:
    requests = socket.socket(fileno=int(sys.argv[1]))
    import_what_commands_need()
    gc.collect()
    gc.freeze()  # what is there already is not looked through again in each command
    arguments = next_command(requests)
    if arguments is not None:
        sys.argv[1:] = arguments
        runpy.run_module("samzapy", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
