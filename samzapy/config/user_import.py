"""Importing the user's modules, whose code may do anything: end the process, or never return.

What ends the process by `os._exit` is an error of the module, as `sys.exit` is: else a command would end there without a word, with that exit
code. An import that takes long is told once, with its place; what has only so much time asks `under_way` how far it has come.
"""

from __future__ import annotations

import importlib
import logging
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType, ModuleType
from typing import NoReturn

from samzapy.clock import if_longer_than
from samzapy.own_loggers import keep_on

LOG = logging.getLogger("samzapy")
LONG_S = 10.0
STDOUT, STDERR = 1, 2
keeps_stdout = False  # whether standard output is for data alone, as that of the command line: what a module prints goes to standard error
LIBRARY = str(Path(os.__file__).parent) + os.sep
ended_by = os._exit  # the function itself, also while an import is under way


class EndsProcess(SystemExit):
    """The module called `os._exit`."""


@dataclass(frozen=True, slots=True)
class _Import:
    name: str
    thread: int
    process: int

    def place(self) -> str:
        """Where its code is now: `file:line`, outside of Python's own library."""
        frame = sys._current_frames().get(self.thread)
        while frame is not None and _is_machinery(frame):
            frame = frame.f_back
        return "" if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno}"


_under_way: list[_Import] = []


def under_way() -> str:
    """The module that is being imported, and where its code is, in words; "" if none is."""
    first = next(iter(_under_way), None)
    return "" if first is None else f"importing {first.name} has not ended: it is at {first.place()}"


def import_module(name: str) -> ModuleType:
    """The module of that name. Raises what it raises; EndsProcess where it calls `os._exit`."""
    with _watched(_Import(name, threading.get_ident(), os.getpid())), _printing_to_stderr() if keeps_stdout else nullcontext():
        return importlib.import_module(name)


@contextmanager
def _printing_to_stderr() -> Iterator[None]:
    """The descriptor itself leads elsewhere, because a module may also write to it directly, or start a program that prints."""
    try:
        sys.stdout.flush()
        kept = os.dup(STDOUT)
        os.dup2(STDERR, STDOUT)
    except (OSError, ValueError):  # one of them is closed
        yield
        return
    try:
        yield
    finally:
        with suppress(OSError, ValueError):
            sys.stdout.flush()
        os.dup2(kept, STDOUT)
        os.close(kept)


@contextmanager
def _watched(one: _Import) -> Iterator[None]:
    def tell() -> None:
        LOG.warning("importing %s has taken %.0f s so far: it is at %s", one.name, LONG_S, one.place())

    def refuse(status: int) -> NoReturn:
        here = any((i.thread, i.process) == (threading.get_ident(), os.getpid()) for i in _under_way)
        if not here:  # of a thread or a process that the module has started; or the module has kept this function for later
            ended_by(status)
        raise EndsProcess(f"os._exit({status})")

    with if_longer_than(LONG_S, tell):
        before, os._exit = os._exit, refuse
        _under_way.append(one)
        try:
            yield
        finally:
            _under_way.remove(one)
            os._exit = before
            keep_on()


def _is_machinery(frame: FrameType) -> bool:
    file = frame.f_code.co_filename
    return file == __file__ or file.startswith((LIBRARY, "<frozen importlib"))
