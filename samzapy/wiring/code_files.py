"""The files of the user's code as this process imported them, and whether they are others now."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

MAX_NAMED = 3


def watch_files(folders: Iterable[Path]) -> Callable[[], Sequence[str]]:
    """Note the files of the modules that were imported from these folders. What is returned gives the names of those that have changed since, a few at
    most; a file that cannot be looked at, as in an archive, has not changed."""
    noted = {path: sign for path in _imported(tuple(f"{folder.absolute()}{os.sep}" for folder in folders)) if (sign := _sign(path)) is not None}

    def replaced() -> Sequence[str]:
        changed = [path.name for path, before in noted.items() if _sign(path) not in (before, None)]
        return sorted(changed)[:MAX_NAMED]

    return replaced


def _imported(roots: tuple[str, ...]) -> Iterable[Path]:
    files = [getattr(module, "__file__", None) for module in list(sys.modules.values())]
    return [Path(file) for file in files if isinstance(file, str) and file.startswith(roots)]


def _sign(path: Path) -> tuple[int, int, int] | None:
    """What changes when a file is written or replaced."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
