"""`samzapy run --inline`: the container in this very process, so that a debugger stops in the task. ports.Launcher over a thread.

The coordinator and the container's heartbeats go on in other threads while one is stopped. A thread cannot be killed: what would kill a
container ends the process.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Mapping
from typing import Any

from samzapy.api import exit_codes
from samzapy.container.process import run_entry
from samzapy.local.launcher import OnThisHost
from samzapy.model.names import LOCALHOST
from samzapy.model.process_end import ProcessEnd, exited

LOG = logging.getLogger("samzapy")
JOIN_S = 5.0
KILLED = exit_codes.SIGNALLED + signal.SIGKILL


class InlineHandle:
    """The thread of a container."""

    def __init__(self, payload: Mapping[str, Any]) -> None:
        self.pid = os.getpid()
        self._code: int | None = None
        self.thread = threading.Thread(target=self._run, args=(payload,), name=f"container-{payload['container']}", daemon=True)
        self.thread.start()

    def exited(self) -> ProcessEnd | None:
        return None if self._code is None else exited(self._code)

    def kill(self) -> None:
        if self._code is None:
            LOG.error("--inline: the container is to be killed, and this process with it; only committed work is kept")
            logging.shutdown()
            os._exit(KILLED)

    def _run(self, payload: Mapping[str, Any]) -> None:
        self._code = run_entry(payload)


class InlineLauncher(OnThisHost):
    """Starts containers as threads of this process."""

    def __init__(self) -> None:
        self._handles: list[InlineHandle] = []

    def launch(self, container: int, payload: Mapping[str, Any], preferred_host: str | None) -> InlineHandle:
        self._handles.append(InlineHandle({**payload, "host": LOCALHOST}))
        return self._handles[-1]

    def close(self) -> None:
        for handle in self._handles:
            handle.thread.join(JOIN_S)
