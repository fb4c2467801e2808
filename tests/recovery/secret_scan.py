"""Where on this machine a secret can be read: processes' arguments and environment, files, and what was said; nobody's memory.

A scan that finds nothing proves something only if it would have found it: its own test plants secrets in each of these places.
"""

from __future__ import annotations

import base64
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

Needles = Mapping[str, bytes]  # what it is called in a finding -> what is looked for


def needles(**secrets: str) -> Needles:
    """Each as it is, and as base64 writes it."""
    found = {}
    for name, secret in secrets.items():
        assert len(secret) >= 12, f"{name} is too short to be told from chance"
        found[name] = secret.encode()
        found[f"{name} in base64"] = base64.b64encode(secret.encode()).rstrip(b"=")[:-1]  # what follows it may change the last letter
    return found


def in_text(where: str, text: str | bytes, wanted: Needles) -> list[str]:
    data = text.encode() if isinstance(text, str) else text
    return [f"{name}: {where}" for name, needle in wanted.items() if needle in data]


def in_files(folder: Path, wanted: Needles, allowed: Collection[Path] = ()) -> list[str]:
    """Every file below a folder, and its names; files that come and go meanwhile are looked at if they can be."""
    found = []
    for path in sorted(folder.rglob("*")):
        found += in_text(f"the name {path}", str(path), wanted)
        if path in allowed or path.is_symlink() or not path.is_file():
            continue
        try:
            found += in_text(str(path), path.read_bytes(), wanted)
        except FileNotFoundError:
            continue
    return found


def in_processes(pids: Iterable[int], wanted: Needles, given: Collection[str] = ()) -> list[str]:
    """Arguments and environment of processes; `given`: variables that the user has set to secrets, which children inherit."""
    found = []
    for pid in pids:
        try:
            arguments = Path(f"/proc/{pid}/cmdline").read_bytes()
            environment = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        except (FileNotFoundError, ProcessLookupError):
            continue
        found += in_text(f"the arguments of {pid}: {arguments[:200]!r}", arguments, wanted)
        for entry in environment:
            name, _, value = entry.partition(b"=")
            if name.decode() not in given:
                found += in_text(f"variable {name!r} of {pid}", value, wanted)
    return found
