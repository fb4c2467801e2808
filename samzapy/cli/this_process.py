"""Which process of which host this is, and whether another one is gone: what a lease says of its holder."""

from __future__ import annotations

import os
import socket
from pathlib import Path

from samzapy.coordinator.settings import Process


def this_process() -> Process:
    """This one, as the coordinator topic names it."""
    return Process(socket.gethostname(), os.getpid(), process_start(os.getpid()), is_gone)


def process_start(pid: int) -> str:
    """When a process of this host began, as the kernel counts; "" where that cannot be known."""
    found = _stat(pid)
    return found[19] if len(found) > 19 else ""


def _stat(pid: int) -> list[str]:
    """What the kernel says of a process, from its state on; nothing where it does not say."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except (OSError, IndexError):
        return []


def process_age_s(pid: int) -> float | None:
    """For how many seconds a process of this host is there; None where that cannot be known."""
    try:
        return float(Path("/proc/uptime").read_text().split()[0]) - int(process_start(pid)) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError):
        return None


def is_gone(host: str, pid: int, start: str) -> bool:
    """Whether a process of this very host is provably not there any more; one that has ended and whose parent has not asked how is not."""
    if host != socket.gethostname() or not pid:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return (bool(start) and process_start(pid) not in ("", start)) or _stat(pid)[:1] == ["Z"]


def is_there(host: str, pid: int, start: str) -> bool:
    """Whether a process of this very host is provably there."""
    return bool(pid and start) and host == socket.gethostname() and process_start(pid) == start and not is_gone(host, pid, start)
