"""Runs that have begun on this host, whether they can be asked yet or not.

From the first second of a run until its coordinator has the lease there may be half a minute: the task is imported, Spark starts. A run
keeps a small file below `state.dir` for as long as its process lives; commands of the same user on the same host find it there. A file whose
process is gone means nothing. Before it has written the file, its first second or two, the process is known by its command line, where
the system shows those (Linux). A run that begins on another host is not seen before it has its lease. Once it has that, the file says where
it can be asked, which is also known here if the coordinator topic is lost.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from samzapy.api.errors import ConfigurationError
from samzapy.cli.this_process import is_seen_here, process_age_s, process_start, this_process
from samzapy.config.schema import Settings
from samzapy.model.bounded_json import NOT_UNDERSTOOD, read_object
from samzapy.private_files import private_directory, read_private
from samzapy.wiring.job_topics import job_of

FOLDER = "begun"
MAX_BYTES = 4096
MAX_FILES = 1000
PROGRAM = "samzapy"
KEPT_S = 7 * 86_400.0  # of a process that cannot be seen from here
UNSAID_S = 30.0  # a process that is older has said which job it runs, or does not run one


@dataclass(frozen=True, slots=True)
class Begun:
    """A run's process. `servers`: the Kafka that it means; `began_ms`: milliseconds since 1970; `url`: where it can be asked, "" before it can."""

    run_id: str
    host: str
    pid: int
    process_start: str
    servers: str
    began_ms: int
    url: str = ""

    def __str__(self) -> str:
        return f"process {self.pid}, for {max(0.0, time.time() - self.began_ms / 1000):.0f} s"


@contextmanager
def begin(run_id: str) -> Iterator[Begin]:
    """For the length of a run's process: where it says which job it runs, as soon as it knows."""
    mark = Begin(run_id)
    try:
        yield mark
    finally:
        mark.remove()


class Begin:
    """The file of this process's run."""

    def __init__(self, run_id: str) -> None:
        self._run_id = run_id
        self._path: Path | None = None
        self._begun: Begun | None = None

    def of(self, settings: Settings) -> None:
        """Write it. A state directory that cannot be used is no matter here: the run itself refuses it soon, and says why."""
        folder = _folder(settings)
        me = this_process()
        begun = Begun(self._run_id, me.host, me.pid, me.start, _servers(settings), time.time_ns() // 1_000_000)
        with suppress(OSError, ConfigurationError):
            private_directory(folder, Path(settings.state.dir))
            for path, other in _found(folder):
                if other is None or me.is_gone(other.host, other.pid, other.process_start) or _is_of_old(other):
                    path.unlink(missing_ok=True)
            self._write(folder, begun)
            self._begun = begun

    def listens_at(self, url: str) -> None:
        """Write down where it can be asked, too: its coordinator has the lease now."""
        if self._path is not None and self._begun is not None:
            with suppress(OSError):
                self._write(self._path.parent, replace(self._begun, url=url))

    def _write(self, folder: Path, begun: Begun) -> None:
        draft, path = folder / f"{self._run_id}.draft", folder / f"{self._run_id}.json"
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            json.dump(asdict(begun), file)
        draft.rename(path)
        self._path = path

    def remove(self) -> None:
        if self._path is not None:
            with suppress(OSError):
                self._path.unlink(missing_ok=True)


def begun_here(settings: Settings, job_file: Path) -> list[Begun]:
    """The processes of this host that run this job on this Kafka, whether they can be asked or not; the newest first."""
    me, servers = this_process(), set(_servers(settings).split(","))
    unsaid = _begun_by_command(job_file, _servers(settings))  # first: it may say so in between
    found = [
        begun
        for _, begun in _found(_folder(settings))
        if begun is not None
        and is_seen_here(begun.host, begun.process_start)
        and not me.is_gone(begun.host, begun.pid, begun.process_start)
        and servers & set(begun.servers.split(","))
    ]
    if unsaid is not None and not _has_said(settings, unsaid.pid):
        found.append(unsaid)
    return sorted(found, key=lambda begun: -begun.began_ms)


def _is_of_old(begun: Begun) -> bool:
    """Of a container or a boot of this machine that has probably ended: nothing tells. If it runs after all, its lease still says so."""
    return not is_seen_here(begun.host, begun.process_start) and time.time() - begun.began_ms / 1000 > KEPT_S


def _has_said(settings: Settings, pid: int) -> bool:
    """Whether a process has written its file, for this job or for another one (`--set id=2`)."""
    return any(begun is not None and begun.pid == pid for folder in _folder(settings).parent.glob("*") for _, begun in _found(folder))


def _begun_by_command(job_file: Path, servers: str) -> Begun | None:
    """A `samzapy run` of this job file that has just begun on this host, so that it may not have said yet which job it runs."""
    me = this_process()
    for entry in Path("/proc").glob("[0-9]*"):
        age_s = process_age_s(int(entry.name))
        if age_s is not None and age_s < UNSAID_S and _runs(entry, job_file):
            pid = int(entry.name)
            return Begun("", me.host, pid, process_start(pid), servers, int((time.time() - age_s) * 1000))
    return None


def _runs(process: Path, job_file: Path) -> bool:
    """Whether the command line of a process says that it runs this file."""
    try:
        words = [os.fsdecode(word) for word in (process / "cmdline").read_bytes().split(b"\0")]
        folder = Path(os.readlink(process / "cwd"))
    except OSError:
        return False
    named = next((at for at, word in enumerate(words) if word == PROGRAM or word.endswith(f"/{PROGRAM}")), None)
    if named is None or "run" not in words[named + 1 :]:
        return False
    for word in words[named + 1 :]:
        with suppress(OSError, ValueError):
            if word.endswith(job_file.name) and (folder / word).samefile(job_file):
                return True
    return False


def _folder(settings: Settings) -> Path:
    return Path(settings.state.dir) / FOLDER / str(job_of(settings))


def _servers(settings: Settings) -> str:
    return ",".join(server.strip() for server in str(settings.kafka_client["bootstrap.servers"]).split(","))


def _found(folder: Path) -> Iterator[tuple[Path, Begun | None]]:
    """The files of a folder, and what they say; None if that is nothing."""
    try:
        paths = sorted(folder.glob("*.json"))[:MAX_FILES]
    except OSError:
        return
    for path in paths:
        try:
            yield path, _read(path)
        except (OSError, ConfigurationError):
            continue


def _read(path: Path) -> Begun | None:
    text = read_private(path, is_ours=True, limit_bytes=MAX_BYTES)
    try:
        fields: dict[str, Any] = read_object(text.encode(), MAX_BYTES)
        begun = Begun(**fields)
    except (*NOT_UNDERSTOOD, TypeError):
        return None
    return begun if all(isinstance(getattr(begun, name), int if name in ("pid", "began_ms") else str) for name in asdict(begun)) else None
