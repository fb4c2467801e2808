"""Looking at processes, and waiting for what they do, in tests of what starts and ends them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")


def until(found: Callable[[], T | None], what: str, within_s: float = 150.0) -> T:
    """The first answer that is not None or False; fails naming `what` when there is none in time."""
    deadline, pause = time.monotonic() + within_s, threading.Event()
    while time.monotonic() < deadline:
        answer = found()
        if answer is not None and answer is not False:
            return answer
        pause.wait(0.02)
    raise AssertionError(f"not within {within_s:.0f} s: {what}")


def told(file: Path) -> dict[str, Any]:
    """What an entry wrote about itself, waited for."""
    result: dict[str, Any] = json.loads(until(lambda: file.read_text() if file.exists() else None, f"{file.name} written"))
    return result


def is_alive(pid: int) -> bool:
    """Whether it runs; a zombie does not."""
    state = _state_of(pid)
    return bool(state) and not state.startswith("Z")


def _state_of(pid: int) -> str:
    return subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False).stdout.strip()


def is_gone(pid: int) -> bool:
    return not is_alive(pid)


def suspend(pid: int) -> None:
    """SIGSTOP, and wait until it has taken effect: on a busy machine threads of the process run on for a while, and may answer."""
    os.kill(pid, signal.SIGSTOP)
    until(lambda: _state_of(pid).startswith("T"), f"process {pid} is suspended")


def descendants(pid: int) -> set[int]:
    """Every process below `pid`."""
    table = subprocess.run(["ps", "-A", "-o", "pid=,ppid="], capture_output=True, text=True, check=True).stdout
    parents = {int(child): int(parent) for child, parent in (line.split() for line in table.splitlines())}
    found: set[int] = set()
    fresh = {pid}
    while fresh:
        fresh = {child for child, parent in parents.items() if parent in fresh} - found
        found |= fresh
    return found
