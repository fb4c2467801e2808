"""The run's token: it gives the right to command the coordinator. Kept in a file that only its owner can read."""

from __future__ import annotations

import os
import secrets
import time
from contextlib import suppress
from pathlib import Path

from samzapy.api.errors import ConfigurationError
from samzapy.private_files import private_directory, read_private

FORGOTTEN_S = 7 * 86_400.0


def token_path(state: Path, cluster_id: str, job: str, run_id: str) -> Path:
    """The file of a run's token."""
    return state / cluster_id / "run" / job / f"{run_id}.token"


def write_token(path: Path, state: Path) -> str:
    """A new token, in a file of mode 0600 below `state`. Those of other runs stay: one of them may be alive.

    Raises:
        ConfigurationError: the way to it is not private, and cannot be made so. OSError: it cannot be written.
    """
    private_directory(path.parent, state)
    token = secrets.token_urlsafe(32)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(token)
    return token


def delete_old_tokens(path: Path) -> None:
    """Delete what other runs of the job left a week ago or earlier. Called once the run of `path` has the lease, so that no other run is alive."""
    for other in path.parent.glob("*.token"):
        with suppress(OSError):
            if other != path and time.time() - other.lstat().st_mtime > FORGOTTEN_S:
                other.unlink()


def delete_token(path: Path) -> str:
    """Delete the token of a run that has ended; what went wrong, or "". It is of no use any more; who can read it learns nothing that still counts."""
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        return f"the token of this run, {path}, could not be deleted: {error.strerror}. It is of no use any more"
    return ""


def read_token(path: Path, is_ours: bool = False) -> str:
    """The token in a file. `is_ours`: it is one that a run of this user's wrote, so it is no link and belongs to nobody else.

    Raises:
        ConfigurationError: it cannot be read.
    """
    try:
        return read_private(path, is_ours).strip()
    except OSError as error:
        raise ConfigurationError(
            f"the run's token cannot be read from {path}: {error.strerror}.",
            "Run this where the job was started, as the same user, with the `state.dir` that the run began with; or name the file with --token-file. If that "
            "directory was renamed or deleted meanwhile, end the run with Ctrl-C or `kill`: it commits as for `stop`.",
        ) from None
