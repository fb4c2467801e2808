"""A container's life: register, start, run, end in one of four ways, and report that to the coordinator.

    finished    all tasks stopped by themselves (shutdown, or the end of a bounded run)
    stopped     the coordinator asked for it; final commit done
    failed      an error that a restart would not help, or too many that it did not
    superseded  another incarnation owns the tasks: nothing more is written

What leaves the container in doubt (a lost reply to a commit, a fenced producer, a broker that is away) is answered by starting over in
the same process: the same code as the first start, over what Kafka says. When that is done, and which errors end the job: plan/restarts.py.
"""

from __future__ import annotations

import itertools
import logging
import threading
from collections.abc import Callable, Mapping
from typing import Any

from samzapy import failpoints
from samzapy.api import exit_codes
from samzapy.api.errors import ClusterUnreachable, SamzapyError, Superseded, TaskError
from samzapy.clock import start_thread
from samzapy.config.secrets import without_secrets
from samzapy.container.container import Container
from samzapy.container.facts import PROCESS
from samzapy.container.failure import told_stack
from samzapy.container.heartbeat import EXIT, STOP, Heartbeat
from samzapy.container.inside import Doing, Inside
from samzapy.container.lags import Lags, Written
from samzapy.container.long_poll import LongPoll
from samzapy.container.loop_watch import LoopWatch
from samzapy.container.purge import Purge
from samzapy.container.sampling import Sampler
from samzapy.container.stuck_hook import user_frames
from samzapy.ids import random_id
from samzapy.memory import exclude_what_is_there, resident_bytes
from samzapy.model.caution import Piece
from samzapy.model.names import LOCALHOST
from samzapy.model.states import ContainerOutcome, ContainerState
from samzapy.plan import restarts
from samzapy.plan.lag import has_read_checkpoint
from samzapy.plan.transaction_size import NO_LIMIT
from samzapy.ports import Assignment, Clock, Control, Instructions, Log, Spawn, Supervision

LOG = logging.getLogger("samzapy.container")
PUBLISH_S = 0.25
WAITS_S = 5.0
SLOW_S = 1.0  # a hook that runs as long is told of
TELL_AGAIN_S = 60.0

Build = Callable[[Assignment, str, Supervision], Container]


class _StopRequested(Exception):
    """The coordinator asked for a graceful stop."""


class ContainerRunner:
    """Runs one container to its end.

    Args:
        build: makes the container from (assignment, incarnation, supervision).
        facts: what the coordinator should know of this process: host, pid.
        stuck_hook_s: a hook that runs as long as this, in seconds, ends the process; at half of it its stack is logged.
        die: ends the process at once; called when the lease is over and the loop does not react.
        arm: called on the heartbeat's thread with every heartbeat: if it is not called again for long, something holds that thread up.
        before_end: called before the end is reported; after that this process may be killed.
        long_poll: by which it is asked what goes on inside. sampler: of its loop.
        resident: how much memory this process has, in bytes; told with every heartbeat.
        spawn, new_id, settle_memory: what a process has for threads, ids, and to set up its memory when the tasks run.
    """

    def __init__(
        self,
        *,
        number: int,
        build: Build,
        control: Control,
        log: Log,
        clock: Clock,
        facts: Mapping[str, Any],
        heartbeat_s: float,
        lease_s: float,
        stuck_hook_s: float,
        die: Callable[[str], None],
        spawn: Spawn = start_thread,
        new_id: Callable[[], str] = random_id,
        settle_memory: Callable[[], None] = exclude_what_is_there,
        arm: Callable[[], None] = lambda: None,
        resident: Callable[[], int | None] = resident_bytes,
        before_end: Callable[[], None] = lambda: None,
        long_poll: LongPoll | None = None,
        sampler: Sampler | None = None,
    ) -> None:
        self._number = number
        self._build = build
        self._control = control
        self._clock = clock
        self._facts = facts
        self._incarnation = new_id()
        self._settle_memory = settle_memory
        self._container: Container | None = None
        self._status: dict[str, Any] = {}
        self._state = ContainerState.STARTING
        self._last_published = 0.0
        self._under_way: Mapping[str, object] | None = None
        self._reports = itertools.count(1)
        self._stuck_hook_s = stuck_hook_s
        self._die = die
        self._loop_thread = threading.get_ident()
        self._arm, self._resident, self._before_end = arm, resident, before_end
        self._long_poll, self._sampler = long_poll, sampler
        self._told_of, self._ends = ("", 0.0), ""
        self._watch = LoopWatch(number=number, loop_thread=self._loop_thread, stuck_hook_s=stuck_hook_s, clock=clock, end=self._end_process)
        self._over: tuple[str, float, int] = "", 0.0, 0  # why it started over the last time, when, and how many commits there were
        self._uncommitted: SamzapyError | None = None  # why the final commit failed
        purge = Purge(lambda: {} if self._container is None else self._container.consumed, clock)
        self._lags = Lags(log, heartbeat_s, self._places, clock, spawn, self._waits_for, purge.step)
        self._heartbeat = Heartbeat(
            control=control,
            incarnation=self._incarnation,
            heartbeat_s=heartbeat_s,
            lease_s=lease_s,
            clock=clock,
            report=self._report,
            watch=self._look_at_loop,
            die=die,
            spawn=spawn,
        )

    def run(self) -> int:
        """Returns the process's exit code."""
        outcome = ContainerOutcome.FAILED
        error: SamzapyError | None = None
        try:
            assignment = self._control.register(self._incarnation, self._facts)
            self._heartbeat.instructions = Instructions(paused=assignment.paused)
            supervision = Supervision(self._raise_if_stopped, self._publish, lambda: self._heartbeat.instructions, self._announce)
            self._container = container = self._build(assignment, self._incarnation, supervision)
            self._heartbeat.start()
            self._lags.start()
            if self._long_poll is not None:
                self._long_poll.start(self._incarnation, Inside(self._loop_thread, self._doing, lambda: container.tracing, self._sampler), self._heartbeat.beat_now)
            outcome = self._live(container)
        except Superseded as caught:
            outcome, error = ContainerOutcome.SUPERSEDED, caught
        except SamzapyError as caught:
            error = caught
        finally:
            self._before_end()
            self._end(outcome, error)
        return exit_codes.of_container(outcome)

    def _live(self, container: Container) -> ContainerOutcome:
        failures, reached = 0, (0, NO_LIMIT)
        while True:
            try:
                container.own()
                while container.is_starting:
                    container.step()
                self._settle_memory()
                self._state = ContainerState.RUNNING
                self._publish(True)
                while not container.finished:
                    container.step()
                return ContainerOutcome.FINISHED
            except _StopRequested:
                return self._stop(container)
            except restarts.STARTS_OVER as error:
                before, reached = reached, self._reached(container)
                failures = restarts.failures_in_a_row(failures, reached != before)
                if restarts.gives_up(failures, isinstance(error, ClusterUnreachable) or self._lags.cannot_write):
                    raise
                self._state = ContainerState.STARTING
                self._tell_start_over(error)
                container.drop_all()
                self._publish(True)
                self._clock.sleep(min(1.0, 0.05 * 2**failures))
                if self._heartbeat.command == STOP:
                    self._note_uncommitted(error)
                    return ContainerOutcome.STOPPED
            except Superseded:
                raise
            except SamzapyError:
                container.ownership.refuse_if_superseded()
                self._stop_others(container)
                raise

    def _reached(self, container: Container) -> tuple[int, int]:
        """What changes while something gets on: commits succeed, or transactions get smaller, because brokers took too long for larger ones."""
        status = container.status()
        return status["commits"], status["most_records"]

    def _tell_start_over(self, error: SamzapyError) -> None:
        """The same again is said once a minute: Kafka may be away for long."""
        now = self._clock.monotonic()
        self._over = f"it started over from the last commit: {without_secrets(error.message)}", now, self._status.get("commits", 0)
        text = f"{error.code}: {error}"
        if text != self._told_of[0] or now - self._told_of[1] >= TELL_AGAIN_S:
            self._told_of = text, now
            LOG.warning("container %d starts over from the last commit: %s", self._number, text)

    def _stop(self, container: Container) -> ContainerOutcome:
        self._state = ContainerState.STOPPING
        self._publish(True)
        try:
            container.stop()
        except restarts.STARTS_OVER as error:
            self._note_uncommitted(error)
        return ContainerOutcome.STOPPED

    def _note_uncommitted(self, error: SamzapyError) -> None:
        """It stops without a final commit. The coordinator hears it, or it would say that everything is committed."""
        self._uncommitted = error
        what = "container %d: the final commit failed (%s: %s); the next run continues from the commit before it"
        LOG.warning(what, self._number, error.code, error)

    def _stop_others(self, container: Container) -> None:
        """An error stops the job; tasks that it does not concern commit and close first."""
        try:
            container.stop()
        except SamzapyError as error:
            LOG.warning("container %d while stopping: %s: %s", self._number, error.code, error)

    def _end(self, outcome: ContainerOutcome, error: SamzapyError | None) -> None:
        is_fatal = restarts.ends_job(error, outcome)
        is_told_beside = is_fatal and self._facts.get("host") == LOCALHOST  # the coordinator says it in full, on the same terminal
        if error is not None:
            level = logging.WARNING if outcome == ContainerOutcome.SUPERSEDED else logging.ERROR
            cause = error.__cause__ if isinstance(error, TaskError) else None
            stack = [] if cause is None else told_stack(cause)
            if stack or not is_told_beside:
                LOG.log(level, "container %d %s: %s%s", self._number, outcome, error.code, ", raised at" if is_told_beside else f": {error}")
            for line in stack:
                LOG.log(level, "    %s", line)
        if self._container is not None:
            self._status = self._container.status()
            try:
                self._container.close()
            except SamzapyError as closing:  # what is committed stands; it must not hide the last word, which says why this ended
                LOG.warning("container %d while closing: %s: %s", self._number, closing.code, closing)
        self._state = ContainerState.FAILED if outcome in (ContainerOutcome.FAILED, ContainerOutcome.SUPERSEDED) else ContainerState.STOPPED
        report = {**self._report(), "outcome": outcome, "error": None}
        error = error or self._uncommitted
        if error is not None:
            report["error"] = {**error.to_json(), "fatal": is_fatal}
        self._heartbeat.stop()
        self._lags.stop()
        if self._long_poll is not None:
            self._long_poll.stop()
        failpoints.hit("end.report.before")
        if not self._control.report_final(self._incarnation, report) and is_told_beside and error is not None:
            LOG.error("container %d %s: %s: %s", self._number, outcome, error.code, error)

    # -- between the loop and the heartbeat ----------------------------------------------------------------------------------------

    def _raise_if_stopped(self) -> None:
        command = self._heartbeat.command
        if command == EXIT:
            raise Superseded(f"container {self._number} stops: {self._heartbeat.why or 'the coordinator ordered it'}.", "")
        if command == STOP:
            raise _StopRequested

    def _publish(self, urgent: bool) -> None:
        now = self._clock.monotonic()
        if urgent or now - self._last_published >= PUBLISH_S:
            self._last_published = now
            if self._container is not None:
                self._status = self._container.status()
            if urgent:
                self._heartbeat.beat_now()

    def _announce(self, piece: Piece | None) -> None:
        self._under_way = None if piece is None else piece.to_json()
        self._heartbeat.report_now()

    def _places(self) -> list[str]:
        """The partitions whose ends are needed for lags."""
        status = self._status
        return [place for part in (*status.get("tasks", ()), *status.get("standbys", ())) for place in part["positions"]]

    def _waits_for(self) -> Written | None:
        """What the loop may be waiting for, if it has not turned for a while; on the thread of `Lags`."""
        container = self._container
        if container is None or self._clock.monotonic() - container.seen_at < min(WAITS_S, self._stuck_hook_s / 4):
            return None
        return Written(container.written, container.writes)

    def _report(self) -> dict[str, Any]:
        """On the heartbeat's thread, or the loop's: the loop's last status, with the lag of its tasks and copies. A report gets its number
        before it reads the status: of two, the one with the higher number is not the older."""
        number = next(self._reports)
        status = dict(self._status)
        status["news"] = [item for item in status.get("news", ()) if item["n"] > self._heartbeat.told]
        status.update(self._facts, memory_bytes=self._resident(), state=self._state, number=number, under_way=self._under_way, ends=self._ends)
        status["now"] = self._now()
        why, at, commits = self._over
        if commits == status.get("commits", 0) and self._clock.monotonic() - at < TELL_AGAIN_S:
            status["slow"] = status.get("slow") or why
        for part in ("tasks", "standbys"):
            status[part] = [
                {
                    **one, "lag": self._lags.of(one["positions"]) if has_read_checkpoint(one) else None,
                    "reason": one["reason"] or self._lags.why_it_waits(one["positions"]),
                }
                for one in status.get(part, ())
            ]
        return status

    def _doing(self) -> Doing:
        """On the thread of the long poll. A hook goes on since the loop was last seen outside of one."""
        if (container := self._container) is None:
            return Doing(self._state.lower(), 0.0)
        phase, s = container.facts.loop.doing()
        return Doing(phase, self._clock.monotonic() - container.seen_at if phase == PROCESS else s)

    def _now(self) -> dict[str, Any] | None:
        """What the loop does, if that has taken a second already; on the heartbeat's thread."""
        container = self._container
        if container is None or self._state != ContainerState.RUNNING or threading.get_ident() == self._loop_thread:
            return None
        silent_s = self._clock.monotonic() - container.seen_at
        stack, record = user_frames(self._loop_thread) if silent_s >= SLOW_S else ([], "")
        return {"silent_s": round(silent_s, 1), "at": stack[-1], "record": record} if stack else None

    def _look_at_loop(self) -> None:
        """On the heartbeat's thread."""
        self._arm()
        if self._container is not None:
            self._watch.look(self._container.seen_at, is_running=self._state == ContainerState.RUNNING)

    def _end_process(self, why: str, by_record: bool) -> None:
        self._ends = why
        if not by_record:
            self._under_way = None  # no record is suspected
        self._heartbeat.report_now()
        self._die(why)
