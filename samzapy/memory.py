"""What the kernel says of memory: how much this process has, and how many were killed for want of it; None and 0 where it does not say. And what
Python need not look through again and again."""

from __future__ import annotations

import gc
import os
from pathlib import Path

CGROUPS = Path("/sys/fs/cgroup")


def resident_bytes() -> int | None:
    """The memory of this process that is not swapped out."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return None


def oom_kills(cgroups: Path = CGROUPS, membership: Path = Path("/proc/self/cgroup")) -> int:
    """How many processes the kernel has killed in this process's cgroup since it was made. Children are in it, unless somebody moved them."""
    try:
        own = next(line.partition("::")[2].strip() for line in membership.read_text().splitlines() if line.startswith("0::"))
        events = (cgroups / own.lstrip("/") / "memory.events").read_text()
        return next(int(line.split()[1]) for line in events.splitlines() if line.startswith("oom_kill "))
    except (OSError, ValueError, IndexError, StopIteration):
        return 0


def exclude_what_is_there() -> None:
    """Leave the objects of the start, which live on, out of every later garbage collection: over them a full one takes 60 ms in which nothing else is
    done, and in a driver no heartbeat is answered."""
    gc.collect()
    gc.freeze()


def collect_rarely() -> None:
    """Garbage collections of a process that handles records: by default several run for each batch of them, and none of them finds anything.
    (Seen once: 13 % of the loop, a third of a restore.)"""
    gc.set_threshold(100_000, 50, 100)
