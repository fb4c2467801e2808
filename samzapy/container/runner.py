"""A container's life: register, start, run, and end in one of four ways, told to the coordinator.

    finished    all tasks stopped by themselves (shutdown, or the end of a bounded run)
    stopped     the coordinator asked for it; final commit done
    failed      an error that a restart would not help, or too many that it did not
    superseded  another incarnation owns the tasks: nothing more is written

What leaves the container in doubt (a lost reply to a commit, a fenced producer, a broker that is away) is answered by starting over in
the same process: the same code as the first start, over what Kafka says.
"""

from __future__ import annotations

import gc
import logging
import secrets
from collections.abc import Callable, Mapping
from typing import Any

from samzapy.api.errors import ClusterUnreachable, Fenced, InDoubt, LogError, SamzapyError, Superseded, TransactionAborted
from samzapy.container.container import Container
from samzapy.container.heartbeat import EXIT, STOP, Heartbeat
from samzapy.model.offsets import Bounds, TopicPartition, lag
from samzapy.ports import Assignment, Clock, Consumer, Control, Log

LOG = logging.getLogger("samzapy.container")
FINISHED, STOPPED, FAILED, SUPERSEDED = "finished", "stopped", "failed", "superseded"
EXIT_CODES = {FINISHED: 0, STOPPED: 0, FAILED: 1, SUPERSEDED: 5}
MAX_RESTARTS_WITHOUT_COMMIT = 5
PUBLISH_S = 0.25

Build = Callable[[Assignment, str, Callable[[], None], Callable[[], None]], Container]


class _StopRequested(Exception):
    """The coordinator asked for a graceful stop."""


class ContainerRunner:
    """Runs one container to its end.

    Args:
        build: makes the container from (assignment, incarnation, alive, published).
        facts: what the coordinator should know of this process: host, pid.
        die: ends the process at once; called when the lease is over and the loop does not react.
    """

    def __init__(
        self,
        number: int,
        build: Build,
        control: Control,
        log: Log,
        clock: Clock,
        facts: Mapping[str, Any],
        heartbeat_s: float,
        lease_s: float,
        die: Callable[[str], None],
    ) -> None:
        self._number = number
        self._build = build
        self._control = control
        self._log = log
        self._clock = clock
        self._facts = facts
        self._incarnation = secrets.token_hex(8)
        self._container: Container | None = None
        self._status: dict[str, Any] = {}
        self._state = "STARTING"
        self._last_published = 0.0
        self._lags: Consumer | None = None
        self._heartbeat = Heartbeat(control, self._incarnation, heartbeat_s, lease_s, clock, self._report, die)

    def run(self) -> int:
        """Returns the process's exit code: 0 finished or stopped, 1 failed, 5 superseded."""
        outcome = FAILED
        error: SamzapyError | None = None
        try:
            assignment = self._control.register(self._incarnation, self._facts)
            self._container = self._build(assignment, self._incarnation, self._alive, self._published)
            self._heartbeat.start()
            outcome = self._live(self._container)
        except Superseded as caught:
            outcome, error = SUPERSEDED, caught
        except SamzapyError as caught:
            error = caught
        finally:
            self._end(outcome, error)
        return EXIT_CODES[outcome]

    def _live(self, container: Container) -> str:
        failures, commits = 0, 0
        while True:
            try:
                container.start()
                _settle_memory()
                self._state = "RUNNING"
                self._publish_now()
                while not container.finished:
                    container.step()
                    self._published()
                return FINISHED
            except _StopRequested:
                return self._stop(container)
            except (InDoubt, Fenced, TransactionAborted, ClusterUnreachable) as error:
                done = container.status()["commits"]
                failures, commits = (1 if done > commits else failures + 1), done
                if failures > MAX_RESTARTS_WITHOUT_COMMIT and not isinstance(error, ClusterUnreachable):
                    raise
                self._state = "STARTING"
                LOG.warning("container %d starts over from what Kafka says: %s", self._number, error)
                container.let_go()
                self._publish_now()
                self._clock.sleep(min(1.0, 0.05 * 2**failures))
                if self._heartbeat.command == STOP:
                    return STOPPED
            except Superseded:
                raise
            except SamzapyError:
                self._stop_others(container)
                raise

    def _stop(self, container: Container) -> str:
        self._state = "STOPPING"
        self._publish_now()
        try:
            container.stop()
        except (InDoubt, Fenced, TransactionAborted, ClusterUnreachable) as error:
            LOG.warning(
                "container %d: the final commit did not go through (%s); the next run goes on from the last one", self._number, error
            )
        return STOPPED

    def _stop_others(self, container: Container) -> None:
        """An error stops the job; the tasks that it is not about commit and close first."""
        try:
            container.stop()
        except SamzapyError as error:
            LOG.warning("container %d while stopping: %s", self._number, error)

    def _end(self, outcome: str, error: SamzapyError | None) -> None:
        if error is not None:
            LOG.log(logging.WARNING if outcome == SUPERSEDED else logging.ERROR, "container %d %s: %s", self._number, outcome, error)
        if self._container is not None:
            self._status = self._container.status()
            self._container.close()
        self._state = "FAILED" if outcome in (FAILED, SUPERSEDED) else "STOPPED"
        report = {**self._report(), "outcome": outcome, "error": None}
        if error is not None:
            fatal = not isinstance(error, LogError) or outcome == SUPERSEDED
            report["error"] = {
                "code": error.code,
                "message": error.message,
                "remedy": error.remedy,
                "fatal": fatal,
                "exit_code": error.exit_code,
            }
        self._heartbeat.stop()
        self._control.finished(self._incarnation, report)
        if self._lags is not None:
            self._lags.close()

    # -- between the loop and the heartbeat ----------------------------------------------------------------------------------------

    def _alive(self) -> None:
        command = self._heartbeat.command
        if command == EXIT:
            raise Superseded(f"container {self._number} stops: {self._heartbeat.why or 'the coordinator said so'}.", "")
        if command == STOP:
            raise _StopRequested

    def _published(self) -> None:
        if self._clock.monotonic() - self._last_published >= PUBLISH_S:
            self._publish_now()

    def _publish_now(self) -> None:
        self._last_published = self._clock.monotonic()
        if self._container is not None:
            self._status = self._container.status()

    def _report(self) -> dict[str, Any]:
        """On the heartbeat's thread: the loop's last status, with the lag of each task."""
        status = dict(self._status)
        status.update(self._facts, state=self._state)
        tasks = [dict(t) for t in status.get("tasks", ())]
        for task in tasks:
            task["lag"] = self._lag(task)
        status["tasks"] = tasks
        return status

    def _lag(self, task: Mapping[str, Any]) -> int | None:
        """Records still to be read, over all partitions of the task; None while Kafka cannot be asked."""
        if self._lags is None:
            self._lags = self._log.restore_consumer("lag")
        total = 0
        for text, position in task.get("positions", {}).items():
            topic, _, partition = text.rpartition("[")
            try:
                bounds: Bounds = self._lags.bounds(TopicPartition(topic, int(partition.rstrip("]"))))
            except SamzapyError:
                return None
            total += lag(bounds.end, position)
        return total


def _settle_memory() -> None:
    """What start-up made will live: take it out of the collector's way, and let it run less often (measured: some 13 % of the loop)."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 50, 100)
