"""What may become of a local store while nobody has it open: gone, damaged, or an old copy put back in its place.

All of it is done to a process that is stopped and will be killed before it runs again: to the files, it is as if they had changed while it was down.
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

from tests.recovery.faults import Proc

FLIPPED = 64


def open_stores(proc: Proc, state: Path) -> set[Path]:
    """The directories of local stores in which a process has files open."""
    found = set()
    for link in Path(f"/proc/{proc.pid}/fd").iterdir():
        with contextlib.suppress(OSError):  # closed, or the process is gone
            target = Path(os.readlink(link))
            if target.is_relative_to(state):
                found.add(target.parent)
    return found


def delete(stores: Iterable[Path]) -> str:
    """All of them; in words."""
    gone = sorted(stores)
    for store in gone:
        shutil.rmtree(store, ignore_errors=True)
    return f"{len(gone)} stores deleted"


def copied(stores: Iterable[Path], into: Path) -> dict[Path, Path]:
    """Copies of these stores as they are now, by store."""
    copies = {}
    for number, store in enumerate(sorted(stores)):
        copies[store] = into / str(number)
        shutil.copytree(store, copies[store])
    return copies


def put_back(copies: Mapping[Path, Path]) -> str:
    """The copies take the place of what is there now; in words."""
    for store, copy in copies.items():
        shutil.rmtree(store, ignore_errors=True)
        shutil.copytree(copy, store)
    return f"{len(copies)} stores put back as they were"


def corrupt(stores: Iterable[Path], chance: random.Random) -> str:
    """Overwrite bytes in the middle of one file of each, or cut it off there; in words: which files."""
    told = []
    for store in sorted(stores):
        files = sorted(f for f in store.iterdir() if f.suffix == ".sst" or f.name.startswith(("MANIFEST", "CURRENT")))
        if not files:
            continue
        victim = chance.choice(files)
        size, at = victim.stat().st_size, victim.stat().st_size // 2
        with victim.open("r+b") as file:
            if chance.random() < 0.3:
                file.truncate(at)
            else:
                file.seek(max(0, at - FLIPPED // 2))
                file.write(chance.randbytes(min(FLIPPED, size)))
        told.append(victim.suffix.removeprefix(".") or victim.name.partition("-")[0])
    return f"damaged: {', '.join(sorted(told)) or 'nothing, no file was there'}"
