"""Containers as child processes (`--local`): ports.Launcher without a JVM.

A child ends with this process, however that ends: the kernel is asked for it by the child itself (`samzapy.container.process`). Since the
kernel counts the death of the *thread* that forked, all children are started from one thread that lives as long as the launcher. A child
leads a process group of its own: a terminal's Ctrl-C does not reach it, and ending the group ends all its processes.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import signal
import subprocess
import sys
import sysconfig
import threading
import time
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import samzapy
from samzapy.api.errors import LauncherError
from samzapy.log_form import JSON, document_of, json_line
from samzapy.model.names import LOCALHOST
from samzapy.model.process_end import ProcessEnd, ended_with, other
from samzapy.relayed_lines import bounded_lines

_REAP_S = 10.0
_LAST_WORDS_S = 1.0
_STACK = b"(most recent call first):"
_CLIENTS = b"/samzapy/kafka/"
NO_CLIENT = (
    "a Kafka client could not be created in time; the container's process may have too little address space or too few threads: raise `ulimit -v` and "
    "`ulimit -u` of the user that starts the job; the last lines of the container's output show the place in the code"
)


@dataclass(slots=True)
class _LastStack:
    """Where the code of a child was when `faulthandler` last wrote a stack of it: the line of the innermost frame."""

    innermost: bytes = b""


class ProcessHandle:
    """A child process. `pid` is its process id; its output goes line by line to the launcher's."""

    def __init__(self, process: subprocess.Popen[bytes], forwarder: threading.Thread, place: _LastStack) -> None:
        self.pid = process.pid
        self._place = place
        self._process = process
        self._forwarder = forwarder
        self._lock = threading.Lock()
        self._ended: ProcessEnd | None = None

    def exited(self) -> ProcessEnd | None:
        with self._lock:
            if self._ended is None:
                code = self._process.poll()
                if code is not None:
                    self._ended = ended_with(code)
                    if -code == signal.SIGALRM and self._made_a_client():
                        self._ended = other(f"{self._ended}: {NO_CLIENT}")  # and no record is the reason
                    self._kill_group()  # what it started and did not end
            return self._ended

    def _made_a_client(self) -> bool:
        """Whether it ended there: an alarm may also be the task's own. The stack is the last of its output."""
        self._forwarder.join(_LAST_WORDS_S)
        return _CLIENTS in self._place.innermost

    def kill(self) -> None:
        with self._lock:
            if self._ended is None:
                self._kill_group()

    def reap(self) -> None:
        """Wait for its end, and for the last of its output."""
        self._process.wait(_REAP_S)
        self.exited()
        self._forwarder.join(_REAP_S)

    def _kill_group(self) -> None:
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):  # macOS says the second of a group of zombies
            return


class Output(Protocol):
    """The stream that gets the children's output."""

    def write(self, data: bytes, /) -> int: ...
    def flush(self) -> None: ...


class OnThisHost:
    """What a launcher says of its hosts if it knows only this one, with room for any number of containers."""

    def hosts(self) -> Mapping[str, int | None]:
        return {LOCALHOST: None}

    def leaving(self) -> Collection[str]:
        return ()

    def slots(self, needed: int) -> int | None:
        return None


class ProcessLauncher(OnThisHost):
    """Starts containers as child processes of this one, on this host."""

    def __init__(self, output: Output | None = None) -> None:
        self._output: Output = output if output is not None else sys.stderr.buffer
        self._output_lock = threading.Lock()
        self._handles: list[ProcessHandle] = []
        self._starter = ThreadPoolExecutor(1, thread_name_prefix="container-starter")
        self._is_closed = False

    def launch(self, container: int, payload: Mapping[str, Any], preferred_host: str | None) -> ProcessHandle:
        """Start one; `preferred_host` is ignored.

        Raises:
            LauncherError: the launcher was closed, or the system starts no more processes.
        """
        if self._is_closed:
            raise LauncherError(f"container {container} was not started: its launcher is closed.", "")
        self._handles = [h for h in self._handles if h.exited() is None]
        text = json.dumps({**payload, "host": LOCALHOST}).encode()
        handle = self._starter.submit(self._start, container, text, payload.get("log_format") == JSON).result()
        self._handles.append(handle)
        return handle

    def close(self) -> None:
        self._is_closed = True
        for handle in self._handles:
            handle.kill()
        for handle in self._handles:
            handle.reap()
        self._handles = []
        self._starter.shutdown()

    def _start(self, container: int, payload: bytes, as_json: bool) -> ProcessHandle:
        try:
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", "samzapy.local.child", str(os.getpid())],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env=child_environment(os.environ),
            )
        except OSError as error:
            raise _not_started(container, error) from error
        form: Callable[[bytes], bytes] = partial(_as_json, container) if as_json else partial(_prefixed, f"container {container} | ".encode())
        place = _LastStack()
        forwarder = threading.Thread(target=self._forward, args=(process, form, place), name=f"container-{container}-output", daemon=True)
        forwarder.start()
        _feed(process, payload)
        return ProcessHandle(process, forwarder, place)

    def _forward(self, process: subprocess.Popen[bytes], form: Callable[[bytes], bytes], place: _LastStack) -> None:
        assert process.stdout is not None
        innermost = False  # the next line is the innermost frame of a stack that faulthandler writes
        with process.stdout as lines:
            for line in bounded_lines(lines):
                if innermost:
                    place.innermost, innermost = line, False
                innermost = line.endswith(_STACK)
                with self._output_lock, contextlib.suppress(OSError):  # a terminal that is gone, a full disk: the container goes on
                    self._output.write(form(line) + b"\n")
                    self._output.flush()


def _not_started(container: int, error: OSError) -> LauncherError:
    remedy = "See the limits: ulimit -a"
    if error.errno in (errno.EACCES, errno.EPERM, errno.ENOENT, errno.ENOEXEC):
        remedy = f"Containers are started with the Python of this run, {sys.executable}: see that this user may execute it (ls -l), and that it is still there."
    return LauncherError(f"container {container} was not started: {error.filename or sys.executable}: {error.strerror}.", remedy)


def _prefixed(prefix: bytes, line: bytes) -> bytes:
    return prefix + line


def _as_json(container: int, line: bytes) -> bytes:
    """A line of the container's log as it is; what a task printed as one more event."""
    if line.startswith(b'{"time": '):
        return line
    document = document_of(line.decode(errors="replace"), time.time(), "INFO", "output")
    return json_line({**document, "container": container}).encode()


def child_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment of a child: it finds this very samzapy, also when it runs from a checkout and another folder is current."""
    home = str(Path(samzapy.__file__).resolve().parent.parent)
    result = dict(environment)
    if home not in (sysconfig.get_path("purelib"), sysconfig.get_path("platlib")):
        result["PYTHONPATH"] = os.pathsep.join(p for p in (home, environment.get("PYTHONPATH", "")) if p)
    return result


def _feed(process: subprocess.Popen[bytes], payload: bytes) -> None:
    assert process.stdin is not None
    try:
        with process.stdin as stdin:
            stdin.write(payload)
    except BrokenPipeError:  # it died already: `exited` tells how
        return
