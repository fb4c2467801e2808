"""ports.Launcher over child processes of this one."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from typing import IO, Any

END_TIMEOUT_S = 5.0


class ProcessHandle:
    """One container's process."""

    def __init__(self, container: int, process: subprocess.Popen[bytes]) -> None:
        self._container = container
        self._process = process
        self.pid = process.pid
        self._output = threading.Thread(target=self._forward, args=(process.stderr,), name=f"output of container {container}", daemon=True)
        self._output.start()

    def _forward(self, output: IO[bytes] | None) -> None:
        for line in output or ():
            sys.stderr.write(f"container {self._container} | {line.decode('utf-8', 'replace').rstrip()}\n")

    def exited(self) -> str | None:
        code = self._process.poll()
        if code is None:
            return None
        return f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def end(self) -> None:
        """Kill and reap."""
        self.kill()
        self._process.wait(timeout=END_TIMEOUT_S)
        self._output.join(timeout=END_TIMEOUT_S)


class ProcessLauncher:
    """Containers as child processes of this one, each in a session of its own."""

    def __init__(self) -> None:
        self._handles: list[ProcessHandle] = []

    def slots(self) -> int | None:
        return None

    def launch(self, container: int, payload: Mapping[str, Any], preferred_host: str | None) -> ProcessHandle:
        """`preferred_host` does not matter: there is only this one."""
        process = subprocess.Popen(
            [sys.executable, "-m", "samzapy.local.child", str(os.getpid())],
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True,
        )  # fmt: skip
        if process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                process.stdin.write(json.dumps(payload).encode())
                process.stdin.close()
        handle = ProcessHandle(container, process)
        self._handles.append(handle)
        return handle

    def close(self) -> None:
        for handle in self._handles:
            handle.end()
