"""A run of a job as a process, looked at and hit from outside: the driver that `samzapy run --local` is, and the containers below it.

Where its coordinator answers is read from its log. A container is hit only while its process id belongs to a container of samzapy's.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from samzapy.api.errors import LauncherError
from samzapy.dev.process import command_line
from samzapy.http_client import NO_ANSWER, ask
from samzapy.model.states import JobState, TaskState

HTTP_S = 5.0
LOOK_S = 0.1
WHOLE_S = 180.0
STOPPED_S = 10.0  # a task of a container that is just being replaced may look stopped, too
STOP_S = 120.0
GONE_S = 30.0
CHILD = "samzapy.local.child"
_URL = re.compile(r"status: (http://\S+)/api/v1/status")
Status = dict[str, Any]


class JobProcess:
    """At most one driver at a time, with the same job file, log and state each time."""

    def __init__(self, job_file: Path, log: Path, folders: Sequence[Path]) -> None:
        self._job_file, self.log = job_file, log
        self._folder = folders[0] if folders else Path.cwd()
        path = os.pathsep.join([*map(str, folders), *filter(None, [os.environ.get("PYTHONPATH", "")])])
        self._environment = {**os.environ, "PYTHONPATH": path}
        self._driver: subprocess.Popen[bytes] | None = None
        self._log_start = 0

    def start(self, *more: str) -> None:
        """`samzapy run --local`, in a session of its own."""
        self._log_start = self.log.stat().st_size if self.log.exists() else 0
        with self.log.open("ab") as log:
            self._driver = subprocess.Popen(
                [sys.executable, "-m", "samzapy", "run", str(self._job_file), "--local", *more],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self._folder, env=self._environment, start_new_session=True,
            )  # fmt: skip

    def until_end(self) -> None:
        """A run to the inputs' ends as they are now.

        Raises:
            LauncherError: it failed.
        """
        self.start("--until-end")
        self._wait_for(0, None, "the run to the inputs' end")

    def stop(self) -> None:
        """Final commits, as after Ctrl-C.

        Raises:
            LauncherError: it does not end well.
        """
        self._running().send_signal(signal.SIGINT)
        self._wait_for(0, STOP_S, "the job, asked to stop,")

    def kill(self) -> None:
        """SIGKILL the driver; returns when its containers are gone as well."""
        pids = self._pids()
        driver = self._running()
        driver.kill()
        driver.wait()
        self._driver = None
        deadline = time.monotonic() + GONE_S
        while any(CHILD in command_line(pid) for pid in pids):
            if time.monotonic() > deadline:
                raise LauncherError(f"containers still ran {GONE_S:.0f} s after their driver.", "Please report this.")
            time.sleep(LOOK_S)

    def end(self) -> None:
        """Leave nothing running, whatever happened."""
        if self._driver is not None:
            try:
                os.killpg(self._driver.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            self._driver.wait()
            self._driver = None

    def signal(self, pid: int, number: signal.Signals) -> bool:
        """To a container; False: it is none any more."""
        if CHILD not in command_line(pid):
            return False
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            return False
        return True

    # -- looking -----------------------------------------------------------------------------------------------------------------------

    def status(self) -> Status | None:
        """What the coordinator says; None where none answers."""
        with self.log.open(errors="replace") as text:
            text.seek(self._log_start)
            urls = _URL.findall(text.read())
        if not urls:
            return None
        parts = urlsplit(urls[-1])
        try:
            answer = ask("GET", parts.hostname or "", parts.port, "/api/v1/status", HTTP_S)
            return dict(answer.json()) if answer.is_ok else None
        except (*NO_ANSWER, TypeError):
            return None

    def whole(self, without: frozenset[int] = frozenset()) -> Status:
        """The first status in which every task runs, and none of them in these processes.

        Raises:
            LauncherError: the run ended, or it is not whole in time.
        """
        deadline, status = time.monotonic() + WHOLE_S, None
        stopped_since: float | None = None
        while time.monotonic() < deadline:
            code = self._running().poll()
            if code is not None:
                raise LauncherError(f"the job ended by itself with exit code {code}:\n{self.tail()}", "")
            status = self.status()
            if status is not None and _is_whole(status) and not without & {c["pid"] for c in status["containers"]}:
                return status
            stopped = _stopped_by_themselves(status)
            stopped_since = (stopped_since or time.monotonic()) if stopped else None
            if stopped_since is not None and time.monotonic() - stopped_since > STOPPED_S:
                raise LauncherError(
                    f"{', '.join(stopped)} asked to be stopped (`shutdown()`): which records come before that depends on when runs begin, so a run with faults "
                    "cannot be compared with one without.", "",
                )  # fmt: skip
            time.sleep(LOOK_S)
        raise LauncherError(f"not every task ran again within {WHOLE_S:.0f} s{_what_stands(status)}:\n{self.tail()}", "")

    def tail(self) -> str:
        lines = self.log.read_text(errors="replace").splitlines() if self.log.exists() else []
        return "\n".join(f"    {line}" for line in lines[-15:])

    def _pids(self) -> list[int]:
        status = self.status()
        return [c["pid"] for c in status["containers"] if c.get("pid")] if status else []

    def _running(self) -> subprocess.Popen[bytes]:
        if self._driver is None:
            raise LauncherError("the job does not run.", "")
        return self._driver

    def _wait_for(self, wanted: int, limit_s: float | None, what: str) -> None:
        try:
            code = self._running().wait(limit_s)
        except subprocess.TimeoutExpired:
            raise LauncherError(f"{what} did not end within {limit_s:.0f} s:\n{self.tail()}", "") from None
        self._driver = None
        if code != wanted:
            raise LauncherError(f"{what} ended with exit code {code}:\n{self.tail()}", "")


def _is_whole(status: Status) -> bool:
    tasks = status["tasks"]
    return bool(status["state"] == JobState.RUNNING and tasks and all(t["state"] == TaskState.RUNNING for t in tasks))


def _stopped_by_themselves(status: Status | None) -> list[str]:
    """Tasks of a job that runs, which do not any more."""
    if status is None or status["state"] != JobState.RUNNING:
        return []
    return [t["name"] for t in status["tasks"] if t["state"] == TaskState.STOPPED]


def _what_stands(status: Status | None) -> str:
    """How a job that is not whole is."""
    if status is None:
        return "; it does not answer"
    containers = ", ".join(f"container {c['id']} (process {c['pid']}) {c['state']}" for c in status["containers"])
    tasks = ", ".join(f"{t['name']} {t['state']}" for t in status["tasks"] if t["state"] != TaskState.RUNNING)
    return f"; the job is {status['state']}, {containers}; {tasks or 'all tasks run'}"
