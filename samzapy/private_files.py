"""Directories that no other user can read or has written to.

Below a *base* (`state.dir`) every level is a directory of this user with mode 0700: created so, tightened if it is wider. A symbolic link,
another owner, a pipe or a device is refused and never followed. A base that exists keeps its mode: others may have directories in it. On the way
to the base links are followed if root or this user made them, and only those two may be able to rename entries of the base and of the
directories above it.
"""

from __future__ import annotations

import errno
import logging
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from samzapy.api.errors import ConfigurationError

LOG = logging.getLogger("samzapy.files")
PRIVATE = 0o700
MAX_LINKS = 40
WIDTH_OF_ALL_USERS = ["0", "0", "4294967295"]


def private_directory(path: Path, base: Path, make: bool = True) -> None:
    """See that `path`, at or below `base`, is private on every level; made if it is not there and `make`.

    Raises:
        ConfigurationError: something on the way is not ours, or could be replaced by somebody else: what, where, and what to do.
        OSError: it cannot be looked at or made.
    """
    base = base.expanduser().absolute()
    _check_way(base)
    if not base.exists():
        if not make:
            return
        _make_all(base)
    here = base
    for part in path.expanduser().absolute().relative_to(base).parts:
        here = here / part
        try:
            found = os.lstat(here)
        except FileNotFoundError:
            if not make:
                return
            _make(here)
            found = os.lstat(here)
        _check_own(here, found)


def check_entries(directory: Path) -> None:
    """See that a directory of ours holds nothing but files of ours.

    Raises:
        ConfigurationError: it holds something else. OSError: it cannot be looked at.
    """
    with os.scandir(directory) as entries:
        for entry in entries:
            found = entry.stat(follow_symlinks=False)
            kind = "" if stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode) else _kind(found)
            if kind or found.st_uid != os.geteuid():
                raise _refused(
                    Path(entry.path), kind or f"belongs to {_owner(found)}", f"Find out who created it, then remove {directory}."
                )


def read_private(path: Path, is_ours: bool, limit_bytes: int = 4096) -> str:
    """The text of a small file. `is_ours`: it must be a file of this user's and no link; else anything that is a file once opened.

    Raises:
        OSError: it cannot be read. ConfigurationError: it is something else.
    """
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (os.O_NOFOLLOW if is_ours else 0)
    if is_ours and path.is_symlink():
        raise _refused(path, "is a symbolic link", "Remove it.")
    with os.fdopen(os.open(path, flags), "rb") as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise _refused(path, _kind(found), "Name a file.")
        if is_ours and found.st_uid != os.geteuid():
            raise _refused(path, f"belongs to {_owner(found)}", "Find out who created it, then remove it.")
        return file.read(limit_bytes).decode("utf-8", "replace")


def read_regular(path: Path, limit_bytes: int) -> bytes:
    """What is in a file, `limit_bytes` at most; links are followed. A pipe or a device, which might never answer or never end, is not waited for.

    Raises:
        OSError: it cannot be read, or is no file.
    """
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, f"it {_kind(found)}")
        return file.read(limit_bytes)


def _check_way(base: Path) -> None:
    """The directories above the base, and the links that lead there: nobody else can put another one in its place."""
    for path, found in _steps(base):
        if found.st_uid not in _trusted():
            raise _refused(
                path, f"belongs to {_owner(found)}", f"Use a directory that you own, or give this one to {_me()} or root (chown)."
            )
        if not stat.S_ISLNK(found.st_mode) and found.st_mode & stat.S_IWOTH and not found.st_mode & stat.S_ISVTX:
            if found.st_uid == 0 and os.path.ismount(path):  # a volume that was mounted for this, for example Kubernetes' emptyDir
                LOG.warning("%s can be written by every user of this host: any of them can replace the job's local state", path)
            else:
                raise _refused(path, "can be written by every user", f"chmod o-w {path}, or name a directory below one that is yours.")


def _steps(base: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """Every directory and link on the way to a path, itself included, as far as they are there."""
    at, left, links = Path("/"), list(base.parts[1:]), 0
    yield at, os.lstat(at)
    while left:
        part = left.pop(0)
        if part == "..":
            at = at.parent
            continue
        here = at / part
        try:
            found = os.lstat(here)
        except FileNotFoundError:
            return
        if not stat.S_ISLNK(found.st_mode) and not stat.S_ISDIR(found.st_mode):
            raise _refused(here, _kind(found), "Name a directory.")
        yield here, found
        if stat.S_ISLNK(found.st_mode):
            links += 1
            if links > MAX_LINKS:
                raise _refused(here, "is in a loop of symbolic links", "Name another directory.")
            target = Path(os.readlink(here))
            at = Path("/") if target.is_absolute() else at
            left = [*(target.parts[1:] if target.is_absolute() else target.parts), *left]
        else:
            at = here


def _check_own(path: Path, found: os.stat_result) -> None:
    if not stat.S_ISDIR(found.st_mode):
        is_device = stat.S_ISCHR(found.st_mode) or stat.S_ISBLK(found.st_mode)
        raise _refused(
            path,
            _kind(found),
            "Name another directory." if is_device else "Find out who created it, then remove it; its stores are restored from Kafka.",
        )
    if found.st_uid != os.geteuid():
        raise _refused(
            path,
            f"belongs to {_owner(found)}",
            f"Run as that user, or remove it; its stores are restored from Kafka. This process runs as {_me()}.",
        )
    if stat.S_IMODE(found.st_mode) & 0o077:
        os.chmod(path, PRIVATE)


def _make_all(path: Path) -> None:
    if path.is_symlink():  # to what is not there
        raise _refused(path, "is a symbolic link that leads nowhere", "Remove it, or make the directory that it names.")
    if not path.parent.exists():
        _make_all(path.parent)
    _make(path)


def _make(path: Path) -> None:
    try:
        os.mkdir(path, PRIVATE)
    except FileExistsError:  # another container of this user has just made it: it is checked like any other
        return


def _trusted() -> set[int]:
    return {0, os.geteuid(), *_unmapped()}


def _unmapped() -> set[int]:
    """Whom the kernel shows as owner where a process sees only some users (in a container without root); none where it sees all."""
    try:
        if Path("/proc/self/uid_map").read_text().split() == WIDTH_OF_ALL_USERS:
            return set()
        return {int(Path("/proc/sys/kernel/overflowuid").read_text())}
    except (OSError, ValueError):
        return set()


def _kind(found: os.stat_result) -> str:
    kinds = {
        stat.S_IFLNK: "is a symbolic link", stat.S_IFIFO: "is a pipe", stat.S_IFSOCK: "is a socket", stat.S_IFCHR: "is a device",
        stat.S_IFBLK: "is a device", stat.S_IFREG: "is a file, not a directory", stat.S_IFDIR: "is a directory, not a file",
    }  # fmt: skip
    return kinds.get(stat.S_IFMT(found.st_mode), "is not a directory")


def _owner(found: os.stat_result) -> str:
    return "root" if found.st_uid == 0 else f"user {found.st_uid}"


def _me() -> str:
    return f"user {os.geteuid()}"


def _refused(path: Path, what: str, remedy: str) -> ConfigurationError:
    return ConfigurationError(f"{path} {what}, so no local state is used from there.", remedy)
