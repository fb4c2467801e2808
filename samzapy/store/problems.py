"""What can be wrong with a local store, told apart: in use elsewhere, damaged, no room, something else; and the mark of one set aside.

A local store is a cache of its changelog, so the remedy is nearly always to leave it to samzapy: what is set aside is restored.
"""

from __future__ import annotations

from pathlib import Path

from samzapy.api.errors import SamzapyError

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
    """The disk of a local store is full."""

    code = "SZ403"


def problem(path: Path, doing: str, text: str) -> StoreProblem:
    """The problem that RocksDB's words `text` stand for, met while `doing` something with the store at `path`."""
    where = f"local store {path}: {doing}"
    if "No space left on device" in text or "Disk quota exceeded" in text:
        return StoreDiskFull(f"{where}: the disk is full.", "Make room or choose another `state.dir`; nothing committed is lost.")
    if "lock hold by current process" in text or "While lock file" in text:
        return StoreLocked(f"{where}: another process has it open.", "Wait until that process has ended.")
    if text.startswith(("Corruption", "Invalid argument", "NotFound", "Not implemented")) or "No such file" in text or "Is a directory" in text:
        return StoreCorrupt(f"{where}: its files are damaged or missing: {text}", "It is set aside and restored from its changelog.")
    if "Too many open files" in text:
        return StoreProblem(
            f"{where}: this process may not open more files (a store takes some eight).",
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
