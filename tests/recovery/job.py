"""A ChainTask job on a real broker, as a user would run it: files in a folder of its own, `samzapy run` as a process, the status over HTTP.

The status is asked of the coordinator itself (`GET /api/v1/status`, what `samzapy status --json` prints): a command per look would cost more
processor time than the job. Where the coordinator is, `locate` tells if somebody set it, else the command is asked once per run of the driver.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Collection, Mapping
from http.client import HTTPException
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

from tests.broker import create_topic
from tests.command_server import run_samzapy
from tests.recovery import chain_task
from tests.recovery.chain import ChainTopics, Verdict, verify
from tests.recovery.chain_task import CHAIN, COUNTS
from tests.recovery.driver import ask
from tests.recovery.faults import MARK

ROOT = Path(__file__).parents[2]
PATIENCE_S = 400.0
COMMAND_S = 400.0
HTTP_S = 5.0

Status = dict[str, Any]


class ChainJob:
    """Topics `<name>-in` and `<name>-out`, the job file, and at most one driver at a time.

    Args:
        arguments: of `samzapy run`, e.g. `--local` or `--master spark://…`.
        sections: of the job file, in place of the default ones.
        links: run through `tests.recovery.driver`, so that `cut` works; else by the command itself.
        client_servers: the brokers as the job's own clients reach them, if not as we do (a proxy's).
    """

    TASK: ClassVar[ModuleType] = chain_task
    TASK_CLASS = "ChainTask"
    STORES: ClassVar[Mapping[str, Any]] = {CHAIN: {"key": "string", "value": "json"}, COUNTS: {"value": "integer"}}

    def __init__(
        self,
        servers: str,
        folder: Path,
        name: str,
        tasks: int,
        containers: int,
        arguments: tuple[str, ...],
        sections: Mapping[str, Any] | None = None,
        links: bool = False,
        client_servers: str = "",
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.servers, self.folder, self.name, self.tasks = servers, folder, name, tasks
        self.topics = self._topics()
        self.containers = containers
        self.sections = dict(sections or {})
        self.log = folder / "run.log"
        self.arguments = arguments
        self._program = ("tests.recovery.driver",) if links else ("samzapy", "run")
        self._driver: subprocess.Popen[bytes] | None = None
        self._url: str | None = None
        self.locate: Callable[[], str | None] | None = None
        self.environment: dict[str, str] = {}  # of the driver, besides ours
        self._create_topics()
        module = "task_" + name.replace("-", "_")
        shutil.copy(str(self.TASK.__file__), folder / f"{module}.py")
        document = {
            "job": name,
            "task": f"{module}:{self.TASK_CLASS}",
            "params": self._params(),
            "kafka": {"bootstrap.servers": client_servers or servers},
            "inputs": [{"topic": self.topics.input}],
            "outputs": [{"topic": self.topics.output, "value": "json"}],
            "stores": dict(self.STORES),
            "commit": {"interval": "200ms"},
            "containers": {"count": containers, "lease": "3s", "heartbeat": "500ms", "max_restarts": 1000, "restart_window": "10s"},
            "state": {"dir": str(folder / "state")},
            **(sections or {}),
        }
        self.file = folder / f"{name}.yaml"
        self.file.write_text(json.dumps(document, indent=1))

    def _topics(self) -> ChainTopics:
        return ChainTopics.of(self.name)

    def _create_topics(self) -> None:
        create_topic(self.servers, self.topics.input, self.tasks)
        create_topic(self.servers, self.topics.output, self.tasks)

    def _params(self) -> dict[str, Any]:
        return {"out": self.topics.output}

    def verify(self) -> Verdict:
        """What its committed topics hold, against the model. For a job that has stopped."""
        return verify(self.servers, self.topics, self.exactly_once)

    @property
    def exactly_once(self) -> bool:
        return bool(self.sections.get("commit", {}).get("guarantee", "exactly_once") == "exactly_once")

    @property
    def own_topics(self) -> tuple[str, ...]:
        """All that it writes to."""
        job = self.topics.job
        return (self.topics.output, *(job.changelog_topic(s) for s in self.STORES), job.checkpoint_topic, job.coordinator_topic)

    # -- the driver ------------------------------------------------------------------------------------------------------------------

    @property
    def driver_pid(self) -> int:
        assert self._driver is not None, "the driver was not started"
        return self._driver.pid

    def start(self, *more: str) -> None:
        """`samzapy run`, with `more` arguments, in a session of its own; its log goes on in run.log."""
        assert self._driver is None, "one driver at a time"
        with self.log.open("ab") as log:
            self._driver = subprocess.Popen(
                [sys.executable, "-m", *self._program, str(self.file), *self.arguments, *more],
                stdout=subprocess.DEVNULL,
                stderr=log,
                stdin=subprocess.DEVNULL,
                cwd=self.folder,
                env={**_environment(self.name), **self.environment},
                start_new_session=True,
            )

    def exited(self) -> int | None:
        """The driver's exit code; None while it runs."""
        assert self._driver is not None, "the driver was not started"
        return self._driver.poll()

    def wait(self, limit_s: float = PATIENCE_S) -> int:
        """The exit code of a driver that was asked to end, or killed."""
        assert self._driver is not None, "the driver was not started"
        code = self._driver.wait(limit_s)
        self._driver, self._url = None, None
        return code

    def stop(self) -> int:
        """Ctrl-C: final commits, then the exit code."""
        self.interrupt()
        return self.wait()

    def interrupt(self) -> None:
        """Ctrl-C."""
        assert self._driver is not None, "the driver was not started"
        self._driver.send_signal(signal.SIGINT)

    def kill(self) -> None:
        """End the driver now, if it runs, with what is in its process group."""
        if self._driver is None:
            return
        try:
            os.killpg(self._driver.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.wait()

    def cut(self, numbers: Collection[int]) -> None:
        """Part exactly these containers from the coordinator; none: all links are whole."""
        ask(self.folder, self.driver_pid, numbers)

    # -- looking ---------------------------------------------------------------------------------------------------------------------

    def status(self) -> Status | None:
        """The coordinator's answer; None where none answers."""
        if self._url is None:
            self._url = self._located() if self.locate is None else self.locate()
        if self._url is None:
            return None
        try:
            with urllib.request.urlopen(f"{self._url}/api/v1/status", timeout=HTTP_S) as answer:
                status: Status = json.load(answer)
        except (OSError, ValueError, HTTPException):
            self._url = None
            return None
        return status if status.get("job") == self.name else None

    def _located(self) -> str | None:
        done = self.command("status", "--json")
        return str(json.loads(done.stdout)["coordinator"]) if done.returncode == 0 else None

    def command(self, *words: str) -> subprocess.CompletedProcess[str]:
        """`samzapy <words> <job file>` to its end; options may be among the words."""
        return run_samzapy([*words, str(self.file)], self.folder, COMMAND_S, _environment(self.name))

    def begin(self, *words: str) -> subprocess.Popen[bytes]:
        """`samzapy <words> <job file>`, begun; what it says goes to commands.log."""
        with (self.folder / "commands.log").open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "samzapy", *words, str(self.file)],
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                cwd=self.folder,
                env=_environment(f"{self.name} {words[0]}"),  # it is none of the job's processes
            )

    def log_tail(self, size: int = 3000) -> str:
        return self.log.read_text(errors="replace")[-size:] if self.log.exists() else ""


def all_run(status: Status) -> bool:
    return bool(status["state"] == "RUNNING" and status["tasks"]) and all(t["state"] == "RUNNING" for t in status["tasks"])


def has_reached(status: Status, ends: dict[str, int]) -> bool:
    """Whether the tasks' positions are at these ends, by `topic[partition]`."""
    at = {place: position for t in status["tasks"] for place, position in t["positions"].items()}
    return all(at.get(place, -1) >= end for place, end in ends.items())


def _environment(job: str) -> dict[str, str]:
    """Ours, with this checkout found whatever folder is current, and the job's mark."""
    path = os.pathsep.join(p for p in (str(ROOT), os.environ.get("PYTHONPATH", "")) if p)
    return {**os.environ, "PYTHONPATH": path, MARK: job}
