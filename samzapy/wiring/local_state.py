"""Where a job's local stores are on a host."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from samzapy.api.errors import ConfigurationError, StateMismatch
from samzapy.config.schema import Settings
from samzapy.private_files import private_directory
from samzapy.store.problems import StoreProblem
from samzapy.wiring.job_topics import job_of


def local_state(settings: Settings, cluster_id: str, host: str) -> Path:
    """The folder of a job's local stores on this host."""
    return Path(settings.state.dir) / cluster_id / host / str(job_of(settings))


def refuse_unremovable(folder: Path, state: Path) -> None:
    """See that this user may delete a job's local stores. Call it before anything else is changed.

    Raises:
        StateMismatch: the folder is a symbolic link, so what it leads to may be somebody else's. ConfigurationError: so is one above it, or
            something there is not this user's to delete.
    """
    try:
        if folder.is_symlink():
            raise StateMismatch(f"{folder} is a symbolic link.", "Remove it by hand if that is intended.")
        private_directory(folder, state, make=False)
        for directory in _directories(folder):
            if not os.access(directory, os.R_OK | os.W_OK | os.X_OK, effective_ids=os.access in os.supports_effective_ids):
                raise _not_removable(directory, folder)
    except OSError as error:
        if error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise
        raise _not_removable(Path(error.filename or folder), folder) from None


def remove_local_state(folder: Path, state: Path) -> None:
    """Delete a job's local stores. Always safe while the job is stopped.

    Raises:
        StateMismatch, ConfigurationError: as `refuse_unremovable`. StoreProblem: some of them could not be deleted.
    """
    refuse_unremovable(folder, state)
    try:
        if folder.exists():
            shutil.rmtree(folder)
    except OSError as error:
        raise StoreProblem(
            f"{folder}: {error.filename or folder} could not be deleted: {error.strerror} (this is user {os.geteuid()}). All else was done.",
            "Delete the rest by hand when you can; later runs do not use it.",
        ) from None


def _directories(folder: Path) -> Iterator[Path]:
    """Those in which something has to be deleted: the one that holds the folder, it itself, and all below it; a directory comes before what is in it."""
    if not folder.exists():
        return
    yield folder.parent
    yield folder
    for here, names, _ in os.walk(folder):
        yield from (path for path in (Path(here) / name for name in names) if not path.is_symlink())


def _is_read_only(path: Path) -> bool:
    try:
        return bool(os.statvfs(path).f_flag & os.ST_RDONLY)
    except OSError:
        return False


def _not_removable(path: Path, folder: Path) -> ConfigurationError:
    if _is_read_only(path):
        return ConfigurationError(
            f"what is in {path} cannot be deleted: its file system is mounted read-only; nothing was changed.",
            "Mount it so that it can be written (a full or broken disk may have made it read-only: the kernel's log says), then run this again.",
        )
    try:
        owner = f" (it belongs to user {path.stat().st_uid})"
    except OSError:
        owner = ""
    return ConfigurationError(
        f"user {os.geteuid()} may not delete what is in {path}{owner}; nothing was changed.",
        f"Run this as the user that runs the job; or, as root, give all of it to this user: chown -R {os.geteuid()} '{folder}'",
    )
