"""What can be wrong with a local store, told apart: in use elsewhere, damaged, no room, something else; and the mark of one set aside.

A local store is a cache of its changelog, so the remedy is nearly always to leave it to samzapy: what is set aside is restored.
"""

from __future__ import annotations

import os
import resource
from pathlib import Path

from samzapy.api.errors import SamzapyError

KEPT = "nothing committed is lost."
MARKER = "SET-ASIDE"  # a file of this name in a generation's directory: not to be used again; its text says why


class StoreProblem(SamzapyError):
    """A local store cannot be opened, read or written."""

    code = "SZ400"


class StoreLocked(StoreProblem):
    """The local store is open in another process, or already in this one."""

    code = "SZ401"


class StoreCorrupt(StoreProblem):
    """A local store has damaged or missing files."""

    code = "SZ402"


class StoreDiskFull(StoreProblem):
    """The disk of a local store is full, or the job may not write more there."""

    code = "SZ403"


def problem(path: Path, doing: str, text: str) -> StoreProblem:
    """The problem that RocksDB's words `text` stand for, met while `doing` something with the store at `path`."""
    where = f"local store {path}: {doing}"
    if "No space left on device" in text:
        return StoreDiskFull(f"{where}: the disk is full.", f"Make room or choose another `state.dir`; {KEPT}")
    if "Disk quota exceeded" in text:
        return StoreDiskFull(
            f"{where}: the disk quota of user {os.getuid()} is used up.",
            f"Make room, raise the quota, or choose another `state.dir`; {KEPT}",
        )
    if "File too large" in text:
        most = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
        limit = "its file system allows" if most == resource.RLIM_INFINITY else f"this process may write: {most} bytes (`ulimit -f`)"
        return StoreDiskFull(
            f"{where}: a file would be larger than {limit}.",
            f"Raise the limit where the job, or Spark's worker, is started (`ulimit -f`), or choose another `state.dir`; {KEPT}",
        )
    if "lock hold by current process" in text or "While lock file" in text:
        return StoreLocked(f"{where}: another process has it open.", "Wait until that process has ended.")
    if text.startswith(("Corruption", "Invalid argument", "NotFound", "Not implemented")) or "No such file" in text or "Is a directory" in text:
        return StoreCorrupt(f"{where}: its files are damaged or missing: {text}", "It is set aside and restored from its changelog.")
    if "Too many open files" in text:
        return StoreProblem(
            f"{where}: this process may not open more files (a store needs about eight).",
            "Raise the hard limit where the job, or Spark's worker, is started (`ulimit -n`), or run in more containers.",
        )
    return StoreProblem(f"{where}: {text}", "Make sure that the directory can be written.")


def mark_set_aside(path: Path, reason: str) -> None:
    """Write the mark. The caller holds the store's lock, or has found that it cannot be opened by anybody.

    Raises:
        StoreDiskFull, StoreProblem: it cannot be written.
    """
    try:
        (path / MARKER).write_text(reason + "\n")
    except FileNotFoundError:
        return  # the directory itself was deleted: there is nothing that could be used again
    except OSError as error:
        raise problem(path, "setting it aside", error.strerror or str(error)) from None


def is_set_aside(path: Path) -> bool:
    return (path / MARKER).exists()
