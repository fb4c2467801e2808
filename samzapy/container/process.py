"""What every container's process does around its container, under any launcher: end with its parent, log, call the entry.

A container whose parent is gone has nobody who knows of it, so it must not live: where the kernel can tell (Linux), it kills us the
moment the parent dies, even if we are stopped or busy in C; elsewhere a thread looks every half second. The parent may die before the
kernel has been asked, so it is looked at once more right after. What is started is named in the payload ("entry"), so neither launcher
knows what a container is made of.
"""

from __future__ import annotations

import ctypes
import importlib
import logging
import os
import resource
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from samzapy.api import exit_codes
from samzapy.api.errors import SamzapyError
from samzapy.config.secrets import SecretsHidden
from samzapy.log_form import JSON, JsonLines
from samzapy.printable import StandardError, printable_lines

LOG = logging.getLogger("samzapy")
_PR_SET_PDEATHSIG = 1
_WATCH_S = 0.5


def end_with_parent(parent: int) -> None:
    """Make this process end when its parent, process `parent`, does."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    else:
        threading.Thread(target=_watch, args=(parent,), name="parent-watch", daemon=True).start()
    if os.getppid() != parent:
        os._exit(exit_codes.ORPHANED)


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_WATCH_S)
    os._exit(exit_codes.ORPHANED)


def open_files_limit() -> int:
    """How many files this process may have open, after raising its soft limit to the hard one.

    A store takes up to some ten files, a Kafka client a few for each broker; a shell's usual soft limit of 1024 is no measure of that.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == hard:
        return soft
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (OSError, ValueError):  # macOS calls the hard limit endless, and takes no more than OPEN_MAX
        return soft
    return hard


class _PrefixedLines(logging.Formatter):
    """Every line of an event, those of a traceback too, begins with the prefix."""

    def __init__(self, prefix: str) -> None:
        super().__init__("%(asctime)s %(levelname)s %(message)s", "%H:%M:%S")
        self._prefix = prefix

    def format(self, record: logging.LogRecord) -> str:
        return "\n".join(self._prefix + line for line in printable_lines(super().format(record)).split("\n"))


def log_to_stderr(payload: Mapping[str, Any], prefix: str = "") -> None:
    """One line per event, from INFO on; as text, or as JSON if the container's payload says so."""
    handler = StandardError()
    as_json = payload.get("log_format") == JSON
    facts = {"job": payload.get("job", ""), "container": payload.get("container")}
    handler.setFormatter(JsonLines(**facts) if as_json else _PrefixedLines(prefix))
    handler.addFilter(SecretsHidden())
    logging.basicConfig(handlers=[handler], level=logging.INFO, force=True)


def entry_named(name: str) -> Callable[[Mapping[str, Any]], int]:
    """The function that `module:function` names."""
    module, _, function = name.partition(":")
    found: Callable[[Mapping[str, Any]], int] = getattr(importlib.import_module(module), function)
    return found


def run_entry(payload: Mapping[str, Any]) -> int:
    """Call the function that `payload["entry"]` names; returns its exit code. An exception is logged with its traceback; the code is 70."""
    open_files_limit()
    try:
        entry = entry_named(payload["entry"])  # before the user's folders are looked into: a file there may have the name of one of Python's own modules
        for folder in reversed(payload.get("folders", [])):
            if folder not in sys.path:
                sys.path.insert(0, folder)
        return entry(payload)
    except SystemExit as error:
        return error.code if isinstance(error.code, int) else int(error.code is not None)
    except SamzapyError as error:
        LOG.error("%s: %s", error.code, error, exc_info=os.environ.get("SAMZAPY_DEBUG") == "1")
        return error.exit_code
    except Exception as error:  # shown in full, and the exit code says so
        LOG.critical("the container's process failed: %s: %s", type(error).__name__, error, exc_info=True)
        return exit_codes.CRASHED
