"""Which process of which host this is, and whether another one is gone: what a lease says of its holder."""

from __future__ import annotations

import getpass
import os
import resource
import socket
import sys
import uuid
from functools import cache
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


@cache
def process_table() -> str:
    """Within which a process's number names one process: the boot of this machine, and the PID namespace, since a container has one of its own. Host
    names do not say it: containers and machines may share one. "" where it cannot be known."""
    if sys.platform != "linux":
        return f"{uuid.getnode():x}"
    try:
        return f"{Path('/proc/sys/kernel/random/boot_id').read_text().strip()}/{os.stat('/proc/self/ns/pid').st_ino}"
    except OSError:
        return ""


def process_start(pid: int) -> str:
    """When a process began, as the kernel counts ("" where that cannot be known), and in which table it is: start@table."""
    return f"{_ticks(pid)}@{process_table()}"


def _ticks(pid: int) -> str:
    found = _stat(pid)
    return found[19] if len(found) > 19 else ""


def _stat(pid: int) -> list[str]:
    """What the kernel says of a process, from its state on; nothing where it does not say."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except (OSError, IndexError):
        return []


def process_age_s(pid: int) -> float | None:
    """For how many seconds a process that is seen from here is there; None where that cannot be known."""
    try:
        return float(Path("/proc/uptime").read_text().split()[0]) - int(_ticks(pid)) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError):
        return None


def is_seen_here(host: str, start: str) -> bool:
    """Whether a process with this `process_start` would be seen from here, if it were there. Earlier versions did not say in which table it is: it is not known."""
    table = start.partition("@")[2]
    return host == socket.gethostname() and bool(table) and table == process_table()


def is_gone(host: str, pid: int, start: str) -> bool:
    """Whether a process that would be seen from here is provably not there any more; one that has ended and whose parent has not asked how is not."""
    if not pid or not is_seen_here(host, start):
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    ticks = start.partition("@")[0]
    return (bool(ticks) and _ticks(pid) not in ("", ticks)) or _stat(pid)[:1] == ["Z"]


def is_there(host: str, pid: int, start: str) -> bool:
    """Whether a process that would be seen from here is provably there."""
    ticks = start.partition("@")[0]
    return bool(pid and ticks) and is_seen_here(host, start) and _ticks(pid) == ticks and not is_gone(host, pid, start)
