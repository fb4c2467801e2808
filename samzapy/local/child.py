"""A container's process under `--local`: payload from stdin, then the same entry as on Spark.

It never outlives its parent: on Linux the kernel kills it with the parent; elsewhere a thread looks.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import json
import logging
import os
import signal
import sys
import threading
import time
import traceback
from typing import Any

PR_SET_PDEATHSIG = 1
EXIT_UNEXPECTED = 70
LOOK_S = 1.0


def end_with_parent(parent: int) -> None:
    """Make sure that this process ends when `parent` does."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(EXIT_UNEXPECTED)
    threading.Thread(target=_watch, args=(parent,), name="parent", daemon=True).start()


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(LOOK_S)
    os._exit(EXIT_UNEXPECTED)


def call_entry(payload: dict[str, Any]) -> int:
    """Call `payload["entry"]`, a "module:function", with the payload; its exit code. What nobody foresaw is printed and is 70."""
    module, _, name = str(payload["entry"]).partition(":")
    try:
        return int(getattr(importlib.import_module(module), name)(payload))
    except Exception:  # noqa: BLE001  the last frame of a process
        traceback.print_exc()
        return EXIT_UNEXPECTED


def main() -> None:
    parent = int(sys.argv[1])
    end_with_parent(parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the coordinator's affair
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(levelname)-7s %(message)s", datefmt="%H:%M:%S")
    payload = json.load(sys.stdin)
    code = call_entry(payload)
    sys.stderr.flush()
    os._exit(code)  # threads of client libraries must not hold the process


if __name__ == "__main__":
    main()
