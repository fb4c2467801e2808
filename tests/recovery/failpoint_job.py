"""A ChainTask job on a real broker whose processes are ended at failpoints, by the variables of their environment.

Every rule strikes once, whichever process meets it (`SAMZAPY_FAILPOINTS_DIR`). Where local state is to be gone after a crash, a container stops
itself at the point (SIGSTOP), the stores that it has open are deleted, and then it is killed; with a driver, which takes its containers along,
all stores are. A driver that died is started again with the same command.
"""

from __future__ import annotations

import contextlib
import shutil
import signal
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from samzapy.failpoints import KILL, STOP, Rule
from tests.broker import ends
from tests.recovery.audit import audit
from tests.recovery.chain import Verdict, verify
from tests.recovery.damage import delete, open_stores
from tests.recovery.faults import is_alive, marked, processes, send
from tests.recovery.job import PATIENCE_S, ChainJob, Status, all_run, has_reached
from tests.recovery.load import Load
from tests.recovery.observer import Observer

LOOK_S = 0.05
CONTAINERS, TASKS = 2, 4
RATE, KEYS = 200.0, 40
MAX_SCALES, MAX_ROUNDS = 6, 5
STOPPED = "T"


def rule(name: str, nth: int, keep_state: bool, seconds: float = 0.0) -> Rule:
    """What ends the process that meets the point; a driver is always killed at once."""
    return Rule(name, KILL if keep_state or name.startswith("coordinator.") or seconds else STOP, seconds, nth)


class FailpointJob:
    """A life of the job: run, scaled to and fro, stopped, and run to its input's end, until every rule was met.

    Attributes:
        problems: what the audit of the owners found, after `live`.
    """

    def __init__(self, servers: str, folder: Path, name: str, rules: Sequence[Rule], exactly_once: bool, keep_state: bool) -> None:
        self.problems: list[str] = []
        self._servers, self._rules, self._exactly_once, self._keep_state = servers, rules, exactly_once, keep_state
        self._hits = folder / "hits"
        self._hits.mkdir()
        sections = {
            "stores": {
                "chain": {"key": "string", "value": "json"}, "counts": {"value": "integer"}, "scratch": {"changelog": False},
            },
            "commit": {"interval": "200ms", "guarantee": "exactly_once" if exactly_once else "at_least_once"},
            "containers": {
                "count": CONTAINERS, "lease": "3s", "heartbeat": "500ms", "max_restarts": 1000, "restart_window": "1s",
            },
        }  # fmt: skip
        self.job = ChainJob(servers, folder, name, TASKS, CONTAINERS, ("--local",), sections)
        self.job.environment = {
            "SAMZAPY_FAILPOINTS": ",".join(map(str, rules)), "SAMZAPY_FAILPOINTS_OK": "1", "SAMZAPY_FAILPOINTS_DIR": str(self._hits),
        }  # fmt: skip
        self._observer = Observer(servers, self.job.topics.job)
        self.job.locate = self._observer.url
        self._pause = threading.Event()

    def left(self) -> list[str]:
        """The rules that did not strike."""
        return [str(r) for r in self._rules if not (f := r.file(self._hits)).exists() or f.stat().st_size < r.nth]

    def verdict(self) -> Verdict:
        return verify(self._servers, self.job.topics, self._exactly_once)

    def live(self) -> None:
        with contextlib.ExitStack() as blocks:
            blocks.callback(self._kill_all)
            blocks.enter_context(self._observer)
            self._run()
            for number in range(MAX_ROUNDS):
                with Load(self._servers, self.job.topics.input, TASKS, RATE, KEYS, number + 1) as load:
                    self._pause.wait(0.5)
                    load.stop()
                self._run_to_end()
                if not self.left():
                    break
            self.problems = audit(self._observer.finish())

    def _run(self) -> None:
        """Under load, until it has passed the points of a run that goes on for ever."""
        self.job.start()
        with Load(self._servers, self.job.topics.input, TASKS, RATE, KEYS, 0) as load:
            self._until(all_run, "every task running")
            for number in range(MAX_SCALES):
                if number >= 2 and not any(("move" in name or "stop" in name) for name in self.left()):
                    break
                self._scale(1 if number % 2 == 0 else CONTAINERS)
            load.stop()
        places = {f"{self.job.topics.input}[{p}]": end for p, end in ends(self._servers, self.job.topics.input).items()}
        self._until(lambda s: all_run(s) and has_reached(s, places), "every task at its input's end")
        self._stop()

    # -- steps, each of which a strike may interrupt -----------------------------------------------------------------------------------

    def _until(self, condition: Callable[[Status], bool], what: str) -> None:
        deadline = time.monotonic() + PATIENCE_S
        status: Status | None = None
        while time.monotonic() < deadline:
            if self._driver_died():
                self.job.start()
            self._wipe_stopped()
            status = self.job.status()
            if status is not None and condition(status):
                return
            self._pause.wait(LOOK_S)
        raise AssertionError(
            f"not within {PATIENCE_S:.0f} s: {what}; not met: {self.left()}; the last status: {status}\n{self.job.log_tail()}"
        )

    def _scale(self, containers: int) -> None:
        """By the command, again if the driver died meanwhile."""
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            self._until(all_run, "every task running")
            command = self.job.begin("scale", "--containers", str(containers))
            while command.poll() is None and not (died := self._driver_died()):
                self._wipe_stopped()
                self._pause.wait(LOOK_S)
            if command.poll() == 0:
                return
            command.kill()
            command.wait()
            if died:
                self.job.start()
        raise AssertionError(f"not scaled to {containers} within {PATIENCE_S:.0f} s:\n{self.job.log_tail()}")

    def _stop(self) -> None:
        self.job.interrupt()
        while not self._ended():
            self.job.start()
            self._until(all_run, "every task running")
            self.job.interrupt()

    def _run_to_end(self) -> None:
        self.job.start("--until-end")
        while not self._ended():
            self.job.start("--until-end")

    def _ended(self) -> bool:
        """Wait for the driver's end: True: of its own will, False: it died."""
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            if (code := self.job.exited()) is None:
                self._wipe_stopped()
                self._pause.wait(LOOK_S)
            elif code == 0:
                self.job.wait()
                return True
            else:
                return not self._driver_died()
        raise AssertionError(f"the driver did not end within {PATIENCE_S:.0f} s; not met: {self.left()}:\n{self.job.log_tail()}")

    # -- what strikes leave ------------------------------------------------------------------------------------------------------------

    def _driver_died(self) -> bool:
        """Whether a rule struck the driver; then its containers are gone as well, and the state if it is to be."""
        code = self.job.exited()
        if code is None:
            return False
        assert code == -signal.SIGKILL, f"the driver ended with {code}:\n{self.job.log_tail()}"
        self.job.wait()
        deadline = time.monotonic() + PATIENCE_S
        while marked(self.job.name):
            assert time.monotonic() < deadline, f"still running after the driver: {marked(self.job.name)}"
            self._pause.wait(LOOK_S)
        if not self._keep_state:
            shutil.rmtree(self.job.folder / "state", ignore_errors=True)
        return True

    def _wipe_stopped(self) -> None:
        """Containers that stopped themselves: delete what they have open, then end them."""
        if self._keep_state:
            return
        for proc in processes().values():
            if proc.parent == self.job.driver_pid and proc.state == STOPPED:
                delete(open_stores(proc, self.job.folder / "state"))
                send(proc, signal.SIGKILL)

    def _kill_all(self) -> None:
        self.job.kill()
        for proc in marked(self.job.name):
            if is_alive(proc):
                send(proc, signal.SIGKILL)
