"""Which process of which host this is, and whether another one is gone: what a lease says of its holder."""

from __future__ import annotations

import getpass
import os
import resource
import socket
from pathlib import Path

from samzapy.api.errors import ConfigurationError
from samzapy.coordinator.settings import Process

ADDRESS_SPACE_BYTES = 2048 << 20  # the driver of a small job had 1230 MiB (VmPeak), mostly what its threads reserve; with 976 MiB it waited for ever


def this_process() -> Process:
    """This one, as the coordinator topic names it."""
    return Process(socket.gethostname(), os.getpid(), process_start(os.getpid()), is_gone)


def this_user() -> str:
    """user@host."""
    try:
        name = getpass.getuser()
    except (OSError, KeyError):  # a container's user that no file names
        name = f"uid {os.getuid()}"
    return f"{name}@{socket.gethostname()}"


def refuse_too_little_address_space(soft_limit_bytes: int | None = None) -> None:
    """Kafka's client, made where a process may not have the address space for its threads, waits for ever in C or aborts, and blames brokers.

    Args:
        soft_limit_bytes: None: this process's own.

    Raises:
        ConfigurationError: this process may have less than the driver of a run takes.
    """
    limit = resource.getrlimit(resource.RLIMIT_AS)[0] if soft_limit_bytes is None else soft_limit_bytes
    if limit != resource.RLIM_INFINITY and limit < ADDRESS_SPACE_BYTES:
        raise ConfigurationError(
            f"this process may use {limit >> 20} MiB of address space (`ulimit -v`); a run's own process takes up to {ADDRESS_SPACE_BYTES >> 20} MiB of it, "
            "of which it uses a small part as memory.",
            f"Raise it where the run is started: ulimit -v {ADDRESS_SPACE_BYTES >> 10}, or unlimited. To limit memory, use the limits of a container or a cgroup.",
        )


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
