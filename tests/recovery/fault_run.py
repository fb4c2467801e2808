"""A ChainTask job under load and observation, hit by faults, and what is to be said of it at the end.

Open the block, hit, `finish`: load ends, the job catches up with its input and stops as a user would stop it; then the topics are verified, the
owners audited, and the machine is searched for processes that still run.
"""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from samzapy.dev.spark import LocalSpark
from samzapy.model.names import task_name
from tests.broker import ends
from tests.recovery.audit import audit, summary
from tests.recovery.faults import (
    Fault,
    JobProcesses,
    Proc,
    containers_below,
    find,
    left_behind,
    processes,
    sample_of,
    send,
    timed,
)
from tests.recovery.job import ChainJob, Status, all_run, has_reached
from tests.recovery.load import Load
from tests.recovery.observer import Observer
from tests.recovery.outputs import Outputs, aborted
from tests.recovery.report import Report
from tests.recovery.state import verify_stores
from tests.recovery.watch import Watch

PATIENCE_S = 300.0
AGREED_S = 20.0  # the observer reads two topics, one may be ahead for a moment


class FaultRun:
    """Runs a job.

    Args:
        load: of its input, if nobody else writes there.
        numbered: the output's records are numbered one by one in each partition, so that they can be looked at while the job runs.
        cluster: the Spark that the job runs on, if its workers may be killed and brought back.
        links: the job runs with links between containers and coordinator that can be cut.
    """

    def __init__(
        self, job: ChainJob, load: Load | None, numbered: bool = True, cluster: LocalSpark | None = None, links: bool = False
    ) -> None:
        self.job, self.cluster, self.links = job, cluster, links
        self.most_containers = min(job.tasks, cluster.size.workers * cluster.size.cores if cluster else 2 * job.containers)
        self.outputs = Outputs(job.servers, job.topics.output) if numbered else None
        self.faults: list[Fault] = []
        self.part = ""  # of a run of several: what each fault is noted with
        self.observer = Observer(job.servers, job.topics.job)
        self.watch = Watch(job.status)
        self._servers, self._load = job.servers, load
        self._blocks = contextlib.ExitStack()
        self._known: set[Proc] = set()
        self._pause = threading.Event()
        self._breaks: list[int] = []  # when the job was stopped to be started elsewhere, or hit by what is noted with another job
        self.job.locate = self.observer.url

    @classmethod
    def of(
        cls, servers: str, folder: Path, name: str, tasks: int, containers: int, arguments: tuple[str, ...], rate: float, keys: int, seed: int,
        sections: Mapping[str, Any] | None = None, cluster: LocalSpark | None = None, links: bool = False,
    ) -> FaultRun:  # fmt: skip
        """Of a ChainTask job with `tasks` partitions under a load of its own; arguments as ChainJob and Load take them."""
        job = ChainJob(servers, folder, name, tasks, containers, arguments, sections, links)
        return cls(job, Load(servers, job.topics.input, tasks, rate, keys, seed), job.exactly_once, cluster, links)

    def __enter__(self) -> FaultRun:
        with self._blocks:
            self._blocks.callback(self._kill_all)
            self._blocks.enter_context(self.observer)
            self.job.start()
            self._blocks.enter_context(self.watch)
            if self._load is not None:
                self._blocks.enter_context(self._load)
            self.whole()
            self.until(lambda _: len(self._committed()) == self.job.tasks, "a first commit with records of every task")
            self._blocks = self._blocks.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._blocks.close()

    def _committed(self, after_ms: int = 0) -> set[str]:
        """The tasks that have committed records, after a time."""
        return {task for task, e in self.observer.newest().items() if e.checkpoint.sequence > 0 and e.at.made_ms > after_ms}

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
            status = self.watch.next()
            if status is not None and condition(status):
                return status
        raise AssertionError(f"not within {limit_s:.0f} s: {what}; the last status: {status}\n{self.job.log_tail()}")

    def whole(self) -> None:
        """Wait until every task runs."""
        self.until(all_run, "every task running")

    def recovered(self, fault: Fault | None = None) -> None:
        """Wait until every task runs and the tasks that were hit (last, if no fault is named) have committed."""
        fault = fault or self.faults[-1]
        since_ms = max(fault.at_ms, fault.over_ms)
        self.until(
            lambda s: all_run(s) and not sample_of(s, 0).pids & fault.gone, f"every task running after {fault.kind} of {fault.target}"
        )
        if fault.tasks:
            self.until(lambda _: self._committed(since_ms) >= {*fault.tasks}, f"a commit of {', '.join(fault.tasks)}")

    def look(self) -> None:
        """So far nothing was lost or doubled, and no task had two owners; else the run is broken off here, next to what did it."""
        wrong = self.outputs.look() if self.outputs is not None else []
        assert not wrong, f"the output after {self._last_fault()}: {wrong}\n{self.job.log_tail()}"
        deadline = time.monotonic() + AGREED_S
        while (problems := audit(self.observer.events())) and time.monotonic() < deadline:
            self.watch.next()
        assert not problems, f"owners after {self._last_fault()}: {problems}"

    def _last_fault(self) -> str:
        return f"fault {len(self.faults)} ({self.faults[-1].kind} of {self.faults[-1].target})" if self.faults else "the start"

    def tasks(self) -> tuple[str, ...]:
        return tuple(task_name(p) for p in range(self.job.tasks))

    def status(self) -> Status:
        return self.until(lambda s: bool(s["containers"]), "a status")

    def containers(self) -> int:
        """How many there are now."""
        return len(self.status()["containers"])

    def passed(self, seconds: float) -> None:
        """Let the job work for a while: the time between faults is part of a scenario."""
        self._pause.wait(seconds)

    # -- faults ----------------------------------------------------------------------------------------------------------------------

    def processes(self) -> JobProcesses:
        """The job's processes now; they are remembered, for the search at the end."""
        found = find(processes(), self.job.driver_pid, self.watch.next())
        self._known |= found.all()
        return found

    def kill(self, kind: str, proc: Proc) -> bool:
        """SIGKILL one process of the job, and with it every container below it; False: it had ended already."""
        return self._strike(kind, proc, signal.SIGKILL) is not None

    def pause(self, kind: str, proc: Proc) -> bool:
        """SIGSTOP one container until the coordinator has taken its tasks away, then SIGCONT; False: it had ended already."""
        fault = self._strike(kind, proc, signal.SIGSTOP)
        if fault is None:
            return False
        self.until(lambda s: not _is_running(s, proc.pid), f"the lease of {fault.target} being over")
        fault.note = "woke up" if send(proc, signal.SIGCONT) else "was ended while stopped"
        return True

    def stop_for(self, kind: str, procs: Sequence[Proc], seconds: float, ends_containers: bool) -> bool:
        """SIGSTOP these, SIGCONT after a while, in their order; False: the first was gone already.

        Args:
            ends_containers: the containers below them will be replaced, because they give up meanwhile. One that is stopped together with
                its coordinator may find itself still named when both wake up, and go on; or not.
        """
        faults = [self._fault(kind, proc) for proc in procs]
        widest = max(faults, key=lambda f: len(f.tasks))
        fault = replace(
            widest,
            target=" and ".join(f.target for f in faults),
            gone=widest.gone - {p.pid for p in procs} if ends_containers else frozenset(),
        )
        if not all(send(proc, signal.SIGSTOP) for proc in procs):
            for proc in procs:
                send(proc, signal.SIGCONT)
            return False
        self.faults.append(fault)
        self.passed(seconds)
        fault.over_ms, fault.note = now_ms(), f"for {seconds:.1f} s"
        for proc in procs:
            if not send(proc, signal.SIGCONT):
                fault.note += f"; {proc.pid} was ended meanwhile"
        return True

    def cut(self, kind: str, numbers: Sequence[int], seconds: float) -> None:
        """Part these containers from the coordinator until it has taken their tasks away; both live. Then mend the links."""
        assert self.links, "the driver's links cannot be cut: FaultRun(links=True)"
        fault, found = self._fault(kind, self.driver()), self.processes()
        status = self.watch.next() or {"tasks": []}
        fault.target = "every container" if len(numbers) == len(found.containers) else f"container {', '.join(map(str, numbers))}"
        fault.tasks = tuple(t["name"] for t in status["tasks"] if t["container"] in numbers)
        fault.gone = frozenset(found.containers[n].pid for n in numbers)
        self.faults.append(fault)
        self.job.cut(numbers)
        try:
            self.passed(seconds)
            self.until(lambda s: not any(_is_running(s, pid) for pid in fault.gone), f"the lease of {fault.target} being over")
        finally:
            self.job.cut(())
        fault.over_ms, fault.note = now_ms(), f"for {(now_ms() - fault.at_ms) / 1000:.1f} s"

    def command(self, kind: str, target: str, *words: str) -> None:
        """A command that changes the running job, to its end; 2 (refused) is an answer too."""
        fault = self._fault(kind, self.driver())
        before = self.watch.next() or {"tasks": []}
        fault.target, fault.gone, fault.tasks = target, frozenset(), ()
        self.faults.append(fault)
        done = self.job.command(*words)
        assert done.returncode in (0, 2), f"{' '.join(words)}: exit code {done.returncode}\n{done.stderr}\n{self.job.log_tail()}"
        after = self.until(all_run, f"every task running after {' '.join(words)}")
        were = {t["name"]: (t["container"], t.get("last_move")) for t in before["tasks"]}
        changed = [t for t in after["tasks"] if were.get(t["name"]) != (t["container"], t.get("last_move"))]
        away = [t["last_move"]["seconds"] for t in changed if t.get("last_move")]
        fault.tasks = tuple(t["name"] for t in changed)
        fault.note = f"longest away {max(away):.1f} s" if away else f"exit code {done.returncode}: {done.stderr.strip().splitlines()[-1:]}"

    def lose_worker(self, kind: str, worker: Proc, whole_host: bool) -> bool:
        """SIGKILL a worker, or all of its host; when the job is whole again elsewhere the worker is started again. False: it was gone."""
        assert self.cluster is not None, "the cluster is not this run's: FaultRun(cluster=…)"
        host = worker.command[worker.command.index("--host") + 1]
        fault = self._fault(kind, worker)
        fault.target = host
        self.faults.append(fault)
        if whole_host:
            self.cluster.kill_host(host)
        elif not send(worker, signal.SIGKILL):
            self.faults.remove(fault)
            return False
        self.recovered()
        self.cluster.start_worker(host)
        return True

    def kill_driver(self) -> None:
        """SIGKILL the driver and start another."""
        assert self.kill("kill driver", self.driver()), f"the driver was gone:\n{self.job.log_tail()}"
        code = self.job.wait()
        assert code == -signal.SIGKILL, f"the driver ended with {code}:\n{self.job.log_tail()}"
        self.job.start()

    def driver(self) -> Proc:
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
        status, table = self.watch.next() or {"containers": [], "tasks": []}, processes()
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
        return Fault(now_ms(), kind, target, tuple(t["name"] for t in tasks), gone, phase, part=self.part)

    # -- the end ---------------------------------------------------------------------------------------------------------------------

    def finish(self) -> Report:
        """Stop the load, catch up, stop the job; verify, audit, search."""
        self.stop_load()
        self.caught_up()
        return self.conclude()

    def stop_load(self) -> int:
        """Until the broker has everything; how many records there were."""
        return sum(self._load.stop().values()) if self._load else 0

    def hit_as_well(self, at_ms: int) -> None:
        """A fault that is noted with another job hit this one, too: what follows is not counted to this job's own fault before it."""
        self._breaks.append(at_ms)

    def loaded_s(self) -> float:
        return time.monotonic() - self._load.began if self._load else 0.0

    def caught_up(self) -> None:
        """Wait until every task runs and has committed everything that its input holds now."""
        topic = self.job.topics.input
        places = {f"{topic}[{p}]": end for p, end in ends(self._servers, topic).items()}
        self.until(lambda s: all_run(s) and has_reached(s, places), "every task at its input's end")
        self.until(lambda _: self._positions() >= places.items(), "every task's commit at its input's end")

    def _positions(self) -> set[tuple[str, int]]:
        return {(p, mark.next_offset) for e in self.observer.newest().values() for p, mark in e.checkpoint.inputs.items()}

    def run_elsewhere(self, arguments: tuple[str, ...], cluster: LocalSpark | None = None) -> None:
        """Stop the job as a user would, and start it again with other arguments of `samzapy run`."""
        self.processes()
        self._breaks.append(now_ms())
        code = self.job.stop()
        assert code == 0, f"the driver ended with {code}:\n{self.job.log_tail()}"
        self.job.arguments, self.cluster = arguments, cluster
        self.job.start()
        self.whole()

    def conclude(self, damaged: bool = False) -> Report:
        """Stop the job, which has caught up; verify, audit, search. `damaged`: the run damaged files of its local stores."""
        self.processes()
        until_ms = now_ms()
        code = self.job.stop()
        left = left_behind(self.job.name, self._known)
        events = self.observer.finish()
        timed(self.faults, self.watch.samples(), events, until_ms, self._breaks)
        return Report(
            tuple(self.faults), self.job.verify(), tuple(audit(events)), summary(events), code,
            tuple(left), aborted(self._servers, self.job.topics.output), aborted(self._servers, self.job.topics.job.checkpoint_topic),
            verify_stores(self.job.file, until_ms if damaged else None),
        )  # fmt: skip


def _is_running(status: Status, pid: int) -> bool:
    return any(c.get("pid") == pid and c["state"] == "RUNNING" for c in status["containers"])


def now_ms() -> int:
    return time.time_ns() // 1_000_000
