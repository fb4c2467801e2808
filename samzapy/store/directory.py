"""Where local stores lie: `<state.dir>/<cluster>/<host>/<job>-<id>/<task>/<store>/<generation>/`.

A directory that was ever opened is never renamed and never made again under its name: a process that was stopped and wakes later would
write into its successor's files. So every new store is a new generation with a random name, and an old one is *set aside* by a file in it,
written while its LOCK is held. The cleaner takes the LOCK before it deletes, so nothing is deleted under a process that has it open.
RocksDB's own lock is used, never a lock of ours on the same file: closing such a file would release RocksDB's.
"""

from __future__ import annotations

import logging
import re
import secrets
import shutil
from collections.abc import Callable, Collection
from pathlib import Path

from samzapy import failpoints
from samzapy.api.errors import ConfigurationError
from samzapy.ports import Claim, StoreEngine
from samzapy.private_files import check_entries, private_directory
from samzapy.store.memory import MemoryEngine
from samzapy.store.problems import MARKER, StoreCorrupt, StoreLocked, StoreProblem, is_set_aside, mark_set_aside, problem

LOG = logging.getLogger("samzapy.store")
_GENERATION = re.compile(r"[0-9a-f]{16}")
_NAME = re.compile(r"(?!\.{1,2}$)[A-Za-z0-9._\[\]:-][A-Za-z0-9._\[\]: -]{0,249}")


class LocalStoreDirectory:
    """The generations of one store of one task on this host (ports.StoreDirectory). `open_engine` opens or makes one.

    Args:
        base: `state.dir`: from there on every level must be private; None: the store's own directory.
    """

    def __init__(self, root: Path, open_engine: Callable[[Path], StoreEngine], base: Path | None = None) -> None:
        self.root = root
        self._base = root if base is None else base
        self._open_engine = open_engine

    def claims(self) -> list[Claim]:
        """Open every generation that is not set aside. The caller closes the engines that it does not use.

        Raises:
            StoreDiskFull, StoreProblem: a store that may be good cannot be opened now; it is not given up for that.
        """
        claims: list[Claim] = []
        try:
            for path in self._generations():
                if not is_set_aside(path):
                    claim = self._claim(path)
                    if claim is not None:
                        claims.append(claim)
        except StoreProblem:
            for claim in claims:
                if claim.engine is not None:
                    claim.engine.close()
            raise
        return claims

    def create(self) -> tuple[str, StoreEngine]:
        """A new, empty generation: its name and engine."""
        name = secrets.token_hex(8)
        path = self.root / name
        try:
            private_directory(path, self._base)
        except OSError as error:
            raise StoreProblem(
                f"local store {path} cannot be created: {error.strerror}.", "Choose a `state.dir` that can be written."
            ) from None
        failpoints.hit("store.create.made")
        return name, self._open(path)

    def set_aside(self, claim: Claim, reason: str) -> None:
        """Mark a generation as not to be used again, under its lock, and close it. One that is in use elsewhere is left as it is."""
        path = Path(claim.path)
        try:
            engine = claim.engine or self._open(path)
        except StoreLocked:
            LOG.info("local store %s is not set aside (%s): it is in use elsewhere", path, reason)
            return
        except StoreCorrupt:  # nobody has it open: RocksDB takes the lock before it looks at the files
            mark_set_aside(path, reason)
        else:
            mark_set_aside(path, reason)
            failpoints.hit("store.set_aside.marked")
            engine.close()
        LOG.info("local store %s is set aside: %s", path, reason)

    def clean(self) -> None:
        """Remove generations that were set aside and that nobody has open."""
        for path in self._generations():
            if is_set_aside(path):
                try:
                    self._remove(path)
                except OSError as error:  # it is in nobody's way: what is left of it is still set aside
                    LOG.warning("local store %s is set aside and cannot be removed: %s", path, error.strerror)

    def remove_older(self, before_s: float) -> int:
        """Remove generations that nobody has open and nobody has written since `before_s` (seconds since 1970). How many."""
        removed = 0
        for path in self._generations():
            if _written_at(path) >= before_s:
                continue
            try:
                engine = self._open(path)
            except StoreLocked:
                continue
            except StoreCorrupt:
                mark_set_aside(path, "its task moved away")
                _delete(path)
            else:
                mark_set_aside(path, "its task moved away")
                _delete(path)
                engine.close()
            removed += 1
        return removed

    def _open(self, path: Path) -> StoreEngine:
        """Open a generation; a link or a pipe in it would be followed, or waited for without end.

        Raises:
            ConfigurationError: it holds what is no file of ours. StoreProblem: it cannot be opened.
        """
        try:
            private_directory(path, self._base, make=False)
            check_entries(path)
        except OSError as error:
            raise problem(path, "looking into it", error.strerror or str(error)) from None
        return self._open_engine(path)

    def _generations(self) -> list[Path]:
        """What looks like a generation; what a link leads to is somebody else's."""
        try:
            private_directory(self.root, self._base, make=False)
            if not self.root.is_dir():
                return []
            return sorted(p for p in self.root.iterdir() if _GENERATION.fullmatch(p.name) and p.is_dir() and not p.is_symlink())
        except OSError as error:
            raise problem(self.root, "looking for it", error.strerror or str(error)) from None

    def _claim(self, path: Path) -> Claim | None:
        """None: it was set aside between the look and the opening."""
        try:
            engine = self._open(path)
        except StoreLocked as error:
            return Claim(path.name, str(path), None, None, locked=True, problem=error.message)
        except StoreCorrupt as error:
            return Claim(path.name, str(path), None, None, problem=error.message)
        if is_set_aside(path):
            engine.close()
            return None
        return Claim(path.name, str(path), engine, engine.stamp())

    def _remove(self, path: Path) -> None:
        try:
            engine = self._open(path)
        except StoreLocked:
            return
        except StoreCorrupt:
            _delete(path)
        else:
            _delete(path)
            engine.close()


class MemoryStoreDirectory:
    """The directory of a memory store: nothing is ever there at a start."""

    def claims(self) -> list[Claim]:
        return []

    def create(self) -> tuple[str, StoreEngine]:
        return secrets.token_hex(8), MemoryEngine()

    def set_aside(self, claim: Claim, reason: str) -> None:
        if claim.engine is not None:
            claim.engine.close()

    def clean(self) -> None:
        """There is nothing to remove."""


def store_path(state_dir: Path, cluster_id: str, host: str, job: str, task: str, store: str) -> Path:
    """The directory of a store's generations. `job` is `<name>-<id>`.

    Raises:
        ConfigurationError: a name that could lead elsewhere.
    """
    path = state_dir.expanduser()
    names = {"the cluster's id": cluster_id, "host": host, "job": job, "task": task, "store": store}
    for what, name in names.items():
        path = path / checked_name(what, name)
    return path


def checked_name(what: str, name: str) -> str:
    """
    Raises:
        ConfigurationError: as the name of a directory it could lead elsewhere.
    """
    if not _NAME.fullmatch(name):
        raise ConfigurationError(
            f"{what} {name!r} cannot be a directory's name.",
            "Use letters, digits, '.', '_' and '-' (at most 250), and not '.' or '..'.",
        )
    return name


def tasks_there(job_folder: Path) -> list[str]:
    """The tasks that have a local store below a job's folder, set aside or not."""
    if not job_folder.is_dir():
        return []
    return sorted({p.parents[1].name for p in job_folder.glob("*/*/*") if _GENERATION.fullmatch(p.name) and p.is_dir() and not _by_link(p)})


def _by_link(generation: Path) -> bool:
    return any(path.is_symlink() for path in (generation, *generation.parents[:2]))


def sweep(job_folder: Path, held: Collection[str], before_s: float, open_engine: Callable[[Path], StoreEngine]) -> list[str]:
    """Remove stores of tasks that moved away: not `held` here, not open, not written since `before_s` (seconds since 1970). Whose they were."""
    gone = []
    for task in tasks_there(job_folder):
        if task in held:
            continue
        removed = 0
        for store in sorted((job_folder / task).iterdir()):
            removed += LocalStoreDirectory(store, open_engine).remove_older(before_s)
            _remove_empty(store)
        _remove_empty(job_folder / task)
        if removed:
            gone.append(task)
    return gone


def _remove_empty(folder: Path) -> None:
    if folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()


def _written_at(path: Path) -> float:
    return max((child.stat().st_mtime for child in path.iterdir()), default=path.stat().st_mtime)


def _delete(path: Path) -> None:
    """Remove a generation, its mark last: if this is interrupted, what is left is still set aside."""
    for child in path.iterdir():
        if child.name != MARKER:
            if child.is_dir() and not child.is_symlink():
                shutil.rmtree(child)
            else:
                child.unlink()
    failpoints.hit("store.delete.emptied")
    (path / MARKER).unlink()
    path.rmdir()
