"""Spark's temporary directories, kept from cleaners of old files.

Spark makes them at its start, often below /tmp, and hardly touches them again. systemd-tmpfiles deletes there what nobody touched for ten days;
after that Spark can start no task, and so no container. Cleaners look at the times of files and directories, so these are set anew each hour.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

from samzapy.clock import start_thread

if TYPE_CHECKING:
    from pyspark import SparkContext

EVERY_S = 3600.0
MAX_ENTRIES = 100_000
STARTS_S = 60.0  # the JVM made its first directories so long before its context at most
NAMES = ("blockmgr-", "spark-")


class KeptDirectories:
    """These directories, and what is below them, are touched each hour until `close`."""

    def __init__(self, directories: Iterable[str], every_s: float = EVERY_S) -> None:
        self._directories = sorted({directory for directory in directories if directory})
        self._every_s = every_s
        self._is_closed = threading.Event()
        start_thread("spark-directories", self._work)

    def close(self) -> None:
        self._is_closed.set()

    def _work(self) -> None:
        while not self._is_closed.wait(self._every_s):
            for directory in self._directories:
                touch(directory)


def touch(directory: str) -> None:
    """Set the times of a directory, and of all that is in it, to now."""
    for number, entry in enumerate(_entries(directory)):
        if number >= MAX_ENTRIES:
            return
        with suppress(OSError):  # it has gone, or is another user's
            os.utime(entry, follow_symlinks=False)


def _entries(directory: str) -> Iterator[str]:
    yield directory
    for folder, folders, files in os.walk(directory):
        for name in (*folders, *files):
            yield os.path.join(folder, name)


def of_driver(context: SparkContext) -> list[str]:
    """Where this driver's JVM keeps blocks and files. It does not say so to Python; these are those of its user that are as old as it is."""
    jvm = context._jvm
    assert jvm is not None
    places = os.environ.get("SPARK_LOCAL_DIRS") or context.getConf().get("spark.local.dir") or str(jvm.java.lang.System.getProperty("java.io.tmpdir"))
    return made_since(places.split(","), context.startTime / 1000 - STARTS_S)


def made_since(places: Iterable[str], then: float) -> list[str]:
    """Directories in these places with names as Spark gives, of this user, made since then (seconds since 1970)."""
    found = []
    for place in places:
        with suppress(OSError), os.scandir(place) as entries:
            for entry in entries:
                if entry.name.startswith(NAMES) and entry.is_dir(follow_symlinks=False):
                    facts = entry.stat(follow_symlinks=False)
                    if facts.st_uid == os.getuid() and facts.st_mtime >= then:
                        found.append(entry.path)
    return found


def of_executor() -> list[str]:
    """Where the executor that this process runs for keeps blocks, and, if `spark.python.worker.faulthandler.enabled` is set, stacks: it starts no
    worker any more if that directory has gone."""
    return [*os.environ.get("SPARK_LOCAL_DIRS", "").split(","), os.environ.get("PYTHON_FAULTHANDLER_DIR", "")]
