"""A server process that outlives the command that started it, and is found again by its pid file.

A pid alone proves nothing: after a reboot or a crash another program may have it. The process of a pid file is ours only if its command
line holds the `mark` that we started it with, a path of its own directory. So a stale pid file counts as no process, and nothing is
ever killed that was not started here.
"""

from __future__ import annotations

import ctypes
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from samzapy.api.errors import ClusterUnreachable
from samzapy.dev.ports import PortTaken

_POLL_S = 0.05
_KILLED_S = 20.0
_children: dict[int, subprocess.Popen[bytes]] = {}


@dataclass(frozen=True)
class Server:
    """One server process: where its pid is noted, where it logs, and the argument by which its command line is known."""

    pid_file: Path
    log: Path
    mark: str

    def start(self, command: Sequence[str], *, tied: bool, environment: Mapping[str, str] | None = None) -> int:
        """Start it in a session of its own, so that Ctrl-C in a terminal is not for it.

        `tied`: it ends when the thread that called this ends, however that happens (Linux only; elsewhere it must be stopped).
        `environment`: all of its environment, ours by default.
        """
        with self.log.open("ab") as log:
            child = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                env=environment,
                preexec_fn=_die_with_parent() if tied else None,
            )
        _children[child.pid] = child
        draft = self.pid_file.with_suffix(".draft")
        draft.write_text(f"{child.pid}\n")
        draft.replace(self.pid_file)
        return child.pid

    def pid(self) -> int | None:
        """Its pid if it runs."""
        try:
            noted = int(self.pid_file.read_text())
        except (FileNotFoundError, ValueError):
            return None
        child = _children.get(noted)
        if child is not None and child.poll() is None:
            return noted  # our own and not yet waited for: the pid cannot be another's, and a process just started has no command line yet
        _children.pop(noted, None)
        return noted if self.mark in command_line(noted) else None

    def signal(self, number: signal.Signals) -> None:
        pid = self.pid()
        if pid is not None:
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                return

    def ended(self, within_s: float) -> bool:
        """Wait for its end, which takes its pid file away."""
        deadline = time.monotonic() + within_s
        while self.pid() is not None:
            if time.monotonic() >= deadline:
                return False
            time.sleep(_POLL_S)
        self.pid_file.unlink(missing_ok=True)
        return True

    def log_size(self) -> int:
        """How much it has logged so far, for `said_since`."""
        return self.log.stat().st_size if self.log.exists() else 0

    def said_since(self, size: int) -> list[str]:
        """The lines of its log after its first `size` bytes."""
        with self.log.open(errors="replace") as text:
            text.seek(size)
            return text.read().splitlines()


def end_all(servers: Sequence[Server], within_s: float) -> None:
    """Ask each to end, then kill those that have not within the time."""
    deadline = time.monotonic() + within_s
    for server in servers:
        server.signal(signal.SIGTERM)
    for server in servers:
        if not server.ended(max(0.0, deadline - time.monotonic())):
            server.signal(signal.SIGKILL)
            server.ended(_KILLED_S)


def explain_end(server: Server, log_start: int, what: str) -> NoReturn:
    """Say why it ended while it was starting, from what it logged since then.

    Raises:
        PortTaken: its port was not free. ClusterUnreachable: anything else.
    """
    lines = server.said_since(log_start)
    bind = [line for line in lines if "Address already in use" in line]
    if bind:
        raise PortTaken(bind[0].strip())
    raise ClusterUnreachable(f"{what} ended while starting: {first_complaint(lines)}.", f"See {server.log}.")


def first_complaint(lines: Sequence[str]) -> str:
    """The line of a JVM's output that says what went wrong: the exception without its trace, else what was logged as an error."""
    exceptions = [line for line in lines if re.search(r"(Exception|Error): ", line)]
    errors = [line for line in lines if " ERROR " in line or " FATAL " in line]
    return (exceptions or errors or list(lines) or ["it said nothing"])[0].strip().rstrip(".")


def started_with(variable: str, value: str) -> set[int]:
    """Every process whose environment, as it was when it started, has this value: ours whoever its parent is by now."""
    wanted = f"{variable}={value}"
    listings = list(Path("/proc").glob("[0-9]*/environ"))
    if listings:
        return {int(listing.parent.name) for listing in listings if wanted in _environment_of(listing)} - {os.getpid()}
    table = subprocess.run(["ps", "-A", "-E", "-ww", "-o", "pid=,command="], capture_output=True, text=True, check=False).stdout
    found = (line.strip().partition(" ") for line in table.splitlines())
    return {int(pid) for pid, _, rest in found if f" {wanted} " in f" {rest} "} - {os.getpid()}


def _environment_of(listing: Path) -> list[str]:
    try:
        return listing.read_bytes().decode(errors="replace").split("\0")
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return []


def command_line(pid: int) -> str:
    """The command line of a running process, empty if there is none (or it is a zombie)."""
    listing = Path(f"/proc/{pid}/cmdline")
    try:
        if listing.parent.parent.joinpath("self").exists():
            return listing.read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return ""
    return subprocess.run(["ps", "-ww", "-o", "command=", "-p", str(pid)], capture_output=True, text=True, check=False).stdout


def _die_with_parent() -> Callable[[], None] | None:
    if sys.platform != "linux":
        return None
    libc = ctypes.CDLL(None)
    parent_death_signal = 1

    def ask() -> None:
        libc.prctl(parent_death_signal, signal.SIGTERM, 0, 0, 0)

    return ask
