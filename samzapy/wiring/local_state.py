"""Where a job's local stores are on a host."""

from __future__ import annotations

import shutil
from pathlib import Path

from samzapy.api.errors import StateMismatch
from samzapy.config.schema import Settings
from samzapy.private_files import private_directory
from samzapy.wiring.job_topics import job_of


def local_state(settings: Settings, cluster_id: str, host: str) -> Path:
    """The folder of a job's local stores on this host."""
    return Path(settings.state.dir) / cluster_id / host / str(job_of(settings))


def remove_local_state(folder: Path, state: Path) -> None:
    """Delete a job's local stores. Always safe while the job is stopped.

    Raises:
        StateMismatch: the folder is a symbolic link, so what it leads to may be somebody else's. ConfigurationError: so is one above it.
    """
    if folder.is_symlink():
        raise StateMismatch(f"{folder} is a symbolic link.", "Remove it by hand if that is intended.")
    private_directory(folder, state, make=False)
    if folder.exists():
        shutil.rmtree(folder)
