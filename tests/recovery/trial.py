"""A trial: a ChainTask job under load and observation, hit by faults, and what is to be said of it at the end.

Open the block, hit, `finish`: load ends, the job catches up with its input and stops as a user would stop it; then the topics are verified, the
owners audited, and the machine is searched for processes that were left behind.
"""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tests.broker import ends, read_all
from tests.recovery.audit import Committed, audit, summary
from tests.recovery.chain import verify
from tests.recovery.faults import (
    Fault,
    JobProcesses,
    Proc,
    containers_below,
    find,
    is_alive,
    marked,
    processes,
    sample_of,
    seconds_until_commit,
    send,
    timed,
)
from tests.recovery.job import ChainJob, Status, all_run, has_reached
from tests.recovery.load import Load
from tests.recovery.observer import Observer
from tests.recovery.report import Report
from tests.recovery.watch import Watch

PATIENCE_S = 120.0


class Trial:
    """Runs a job with `tasks` partitions; arguments as ChainJob and Load take them."""

    def __init__(
        self, servers: str, folder: Path, name: str, tasks: int, containers: int, arguments: tuple[str, ...], rate: float, keys: int, seed: int,
        sections: Mapping[str, Any] | None = None,
    ) -> None:  # fmt: skip
        self.job = ChainJob(servers, folder, name, tasks, containers, arguments, sections)
        self.faults: list[Fault] = []
        self._servers = servers
        self._exactly_once = (sections or {}).get("commit", {}).get("guarantee", "exactly_once") == "exactly_once"
        self._observer = Observer(servers, self.job.topics.job)
        self._load = Load(servers, self.job.topics.input, tasks, rate, keys, seed)
        self._watch = Watch(self.job.status)
        self._blocks = contextlib.ExitStack()
        self._known: set[Proc] = set()
        self._pause = threading.Event()
        self.job.locate = self._observer.url

    def __enter__(self) -> Trial:
        with self._blocks:
            self._blocks.callback(self._kill_all)
            self._blocks.enter_context(self._observer)
            self.job.start()
            self._blocks.enter_context(self._watch)
            self._blocks.enter_context(self._load)
            self.whole()
            self.until(lambda _: len(self._committed()) == self.job.tasks, "a first commit with records of every task")
            self._blocks = self._blocks.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._blocks.close()

    def _committed(self) -> set[str]:
        return {e.checkpoint.task for e in self._observer.events() if isinstance(e, Committed) and e.checkpoint.sequence > 0}

    def _kill_all(self) -> None:
        self.job.kill()
        for proc in self._known:
            send(proc, signal.SIGKILL)

    # -- waiting ---------------------------------------------------------------------------------------------------------------------

    def until(self, condition: Callable[[Status], bool], what: str, limit_s: float = PATIENCE_S) -> Status:
        """The first status that meets the condition; fails if the driver ends or nothing of it comes in time."""
        deadline = time.monotonic() + limit_s
        status: Status | None = None
        while time.monotonic() < deadline:
            code = self.job.exited()
            assert code is None, f"the driver ended with {code} while waiting for {what}:\n{self.job.log_tail()}"
            status = self._watch.next()
            if status is not None and condition(status):
                return status
        raise AssertionError(f"not within {limit_s:.0f} s: {what}; the last status: {status}\n{self.job.log_tail()}")

    def whole(self) -> None:
        """Wait until every task runs."""
        self.until(all_run, "every task running")

    def recovered(self) -> None:
        """Wait until every task runs and the tasks that were hit last have committed."""
        fault = self.faults[-1]
        self.until(
            lambda s: all_run(s) and not sample_of(s, 0).pids & fault.gone, f"every task running after {fault.kind} of {fault.target}"
        )
        self.until(lambda _: seconds_until_commit(self._observer.events(), fault) is not None, f"a commit of {', '.join(fault.tasks)}")

    def passed(self, seconds: float) -> None:
        """Let the job work for a while: the time between faults is part of a scenario."""
        self._pause.wait(seconds)

    # -- faults ----------------------------------------------------------------------------------------------------------------------

    def processes(self) -> JobProcesses:
        """The job's processes now; they are remembered, for the search at the end."""
        found = find(processes(), self.job.driver_pid, self._watch.next())
        self._known |= found.all()
        return found

    def kill(self, kind: str, proc: Proc) -> bool:
        """SIGKILL one process of the job, and with it every container below it; False: it was gone already."""
        return self._strike(kind, proc, signal.SIGKILL) is not None

    def pause(self, kind: str, proc: Proc) -> bool:
        """SIGSTOP one container until the coordinator has taken its tasks away, then SIGCONT; False: it was gone already."""
        fault = self._strike(kind, proc, signal.SIGSTOP)
        if fault is None:
            return False
        self.until(lambda s: not _is_running(s, proc.pid), f"the lease of {fault.target} being over")
        fault.note = "woke up" if send(proc, signal.SIGCONT) else "was ended while stopped"
        return True

    def pause_driver(self, seconds: float) -> None:
        """SIGSTOP the driver, SIGCONT after a while: beyond the lease, every container has given up."""
        driver = self._driver()
        fault = self._strike("pause driver", driver, signal.SIGSTOP)
        assert fault is not None, f"the driver was gone:\n{self.job.log_tail()}"
        self.passed(seconds)
        fault.over_ms, fault.note = _now_ms(), f"for {seconds:.1f} s"
        assert send(driver, signal.SIGCONT), f"the driver did not outlive its pause:\n{self.job.log_tail()}"

    def kill_driver(self) -> None:
        """SIGKILL the driver and start another."""
        assert self.kill("kill driver", self._driver()), f"the driver was gone:\n{self.job.log_tail()}"
        code = self.job.wait()
        assert code == -signal.SIGKILL, f"the driver ended with {code}:\n{self.job.log_tail()}"
        self.job.start()

    def _driver(self) -> Proc:
        driver = self.processes().driver
        assert driver is not None, f"the driver is gone:\n{self.job.log_tail()}"
        return driver

    def _strike(self, kind: str, proc: Proc, number: signal.Signals) -> Fault | None:
        """The signal, and its record; None if there was nobody to take it."""
        fault = self._fault(kind, proc)
        if not send(proc, number):
            return None
        self.faults.append(fault)
        return fault

    def _fault(self, kind: str, proc: Proc) -> Fault:
        status, table = self._watch.next() or {"containers": [], "tasks": []}, processes()
        found = find(table, self.job.driver_pid, status)
        self._known |= found.all()
        hit = containers_below(table, found, proc)
        is_driver = proc == found.driver
        tasks = [t for t in status["tasks"] if is_driver or t["container"] in hit]
        container = next((n for n, c in found.containers.items() if c == proc), None)
        target = (
            "driver"
            if is_driver
            else f"container {container}"
            if container is not None
            else f"{proc.pid} (containers {', '.join(map(str, hit))})"
        )
        phase = ", ".join(sorted({t["state"] for t in tasks}))
        gone = frozenset(found.containers[n].pid for n in hit)
        return Fault(_now_ms(), kind, target, tuple(t["name"] for t in tasks), gone, phase)

    # -- the end ---------------------------------------------------------------------------------------------------------------------

    def finish(self) -> Report:
        """Stop the load, catch up, stop the job; verify, audit, search."""
        self._load.stop()
        places = {f"{self.job.topics.input}[{p}]": end for p, end in ends(self._servers, self.job.topics.input).items()}
        self.until(lambda s: all_run(s) and has_reached(s, places), "every task at its input's end")
        self.processes()
        until_ms = _now_ms()
        code = self.job.stop()
        left = self._left_behind()
        events = self._observer.finish()
        timed(self.faults, self._watch.samples(), events, until_ms)
        return Report(
            tuple(self.faults), verify(self._servers, self.job.topics, self._exactly_once), tuple(audit(events)), summary(events), code,
            tuple(left), self._aborted(self.job.topics.output), self._aborted(self.job.topics.job.checkpoint_topic),
        )  # fmt: skip

    def _left_behind(self, limit_s: float = 30.0) -> list[str]:
        """What still runs of the job; Spark's executors are given some time to end."""
        deadline = time.monotonic() + limit_s
        while True:
            left = {*marked(self.job.name), *(p for p in self._known if is_alive(p))}
            if not left or time.monotonic() > deadline:
                return [f"{p.pid}: {' '.join(p.command)[:200]}" for p in sorted(left, key=lambda p: p.pid)]
            self._pause.wait(0.2)

    def _aborted(self, topic: str) -> int:
        """Records that were written and never committed: work that faults hit in mid-transaction."""
        return len(read_all(self._servers, topic, "read_uncommitted")) - len(read_all(self._servers, topic))


def _is_running(status: Status, pid: int) -> bool:
    return any(c.get("pid") == pid and c["state"] == "RUNNING" for c in status["containers"])


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
