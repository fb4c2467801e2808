"""Where things lie on a developer's machine, and how two processes share them.

What can be fetched again lies in the cache, what cannot in the state directory, both as the XDG rules name them. A `locked` directory
belongs to one process at a time; the lock goes with the process, so a crash leaves nothing to clean up.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from samzapy.api.errors import ConfigurationError
from samzapy.private_files import PRIVATE

SHOWN = 200  # characters of a path
Progress = Callable[[str], None]


def cache_dir() -> Path:
    """
    Raises:
        ConfigurationError: nobody knows where it is.
    """
    return _xdg("XDG_CACHE_HOME", ".cache")


def state_dir() -> Path:
    """
    Raises:
        ConfigurationError: nobody knows where it is.
    """
    return _xdg("XDG_STATE_HOME", ".local/state")


def _xdg(variable: str, below_home: str) -> Path:
    named = os.environ.get(variable, "")
    try:
        root = Path(named) if os.path.isabs(named) else Path.home() / below_home
    except RuntimeError:
        raise ConfigurationError(f"the home directory of user {os.getuid()} is not known.", f"Set HOME, or {variable}.") from None
    return root / "samzapy"


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock file `path`, waiting for whoever has it.

    Raises:
        ConfigurationError: its directory cannot be made, or not be written to.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=PRIVATE)
        lock = path.open("a")
    except OSError as error:
        where = "Set XDG_CACHE_HOME to a directory that this user may write to." if path.is_relative_to(cache_dir()) else "Make it writable."
        raise ConfigurationError(f"{path.parent} cannot be written to: {error.strerror}.", where) from error
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def resolved(directory: Path) -> Path:
    """An absolute path without links and without `~`.

    Raises:
        ConfigurationError: it is none.
    """
    try:
        return directory.expanduser().resolve()
    except (RuntimeError, OSError) as error:  # RuntimeError: whose home ~somebody is, is not known; or a circle of links
        why = error.strerror if isinstance(error, OSError) else str(error).rstrip(".")
        raise ConfigurationError(f"{str(directory)[:SHOWN]}: {why}.", "Name another directory with --dir.") from None


def made(directory: Path, what: str) -> Path:
    """The directory for `what`, resolved, made, writable, and private once it is ours: logs and data in it are nobody else's business.

    Raises:
        ConfigurationError: it cannot be.
    """
    directory = resolved(directory)
    try:
        directory.mkdir(parents=True, exist_ok=True, mode=PRIVATE)
        if (directory / "lock").exists() or not any(directory.iterdir()):
            directory.chmod(PRIVATE)
        (directory / "lock").touch()
    except OSError as error:
        why = "it is no directory" if isinstance(error, FileExistsError | NotADirectoryError) else error.strerror
        raise ConfigurationError(f"{directory} cannot hold {what}: {why}.", "Name another directory with --dir.") from error
    return directory


def write_private(path: Path, text: str) -> None:
    """Write a file that only its user can read, from its first byte on; what was there is replaced as a whole."""
    draft = path.with_name(path.name + ".draft")
    draft.unlink(missing_ok=True)
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
    draft.replace(path)


def silent(_: str) -> None:
    """The progress of something that nobody watches."""
    return
