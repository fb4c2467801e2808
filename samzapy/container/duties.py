"""The table of a container's duties: what it does by the clock, between two records.

    name          every                 what
    supervision   walk                  whether this process should go on at all
    instructions  walk                  what the coordinator topic and the coordinator say: release, join, keep warm copies
    orders        walk                  what people say: pause, go on, commit
    restore       walk                  within a long batch: tasks that are being started go on being restored
    condemned     walk                  poison records of partitions that went to another container are forgotten
    window        `window`              the window hook
    commit        `commit.interval`     a commit; also when much waits for one
    partitions    before `commit`   partitions that it will write are added to the transaction
    write out     walk                  a part of what the stores have committed goes to their engines
    expire        walk                  with `ttl`: a part of what has expired is deleted, every ten seconds
    times         second                event time: partitions that have come to stand still, where inputs have a time
    inputs        second                partitions that bring nothing although they have records; consumers that fetch little
    sweep         hour                  local stores of tasks that have been elsewhere for a day are removed
    report        walk                  what people see

A walk is at most LOOK_S seconds after the last one, if no hook takes longer. While the job is paused there is no window, expiry, time or look at inputs.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from samzapy.api.errors import SamzapyError
from samzapy.container.assigned import AssignedTasks
from samzapy.container.commit_due import COMMIT, due
from samzapy.container.commits import Commits
from samzapy.container.committer import Committer
from samzapy.container.early_partitions import EarlyPartitions
from samzapy.container.expiry import Expiry
from samzapy.container.facts import COMMIT as COMMITTING
from samzapy.container.facts import PROCESS, RESTORE
from samzapy.container.flushing import Flushing
from samzapy.container.input_consumer import InputConsumer
from samzapy.container.inputs import Inputs
from samzapy.container.joining import Joining
from samzapy.container.ownership import Ownership
from samzapy.container.pausing import Pausing
from samzapy.container.rollback import WINDOW
from samzapy.container.spec import ContainerSpec
from samzapy.container.standby import Standbys
from samzapy.container.tasks import Tasks
from samzapy.container.timers import NEVER, Duty, Schedule
from samzapy.container.times import Times
from samzapy.container.transaction import Transaction
from samzapy.plan.crowded import SPAN_S, Spent, crowded
from samzapy.plan.refused_record_search import PoisonSearch
from samzapy.ports import Clock, Supervision

LOG = logging.getLogger("samzapy.container")
WATCH_INPUTS_S = 1.0
SWEEP_S = 3600.0  # not at the start: what others on this host have not opened yet must not look abandoned


class Duties:
    """What the rows do, where that is not a call of another part."""

    def __init__(
        self,
        *,
        spec: ContainerSpec,
        supervision: Supervision,
        own: Ownership,
        assigned: AssignedTasks,
        joining: Joining,
        transaction: Transaction,
        tasks: Tasks,
        commits: Commits,
        committer: Committer,
        search: PoisonSearch,
        inputs: Inputs,
        consumer: InputConsumer,
        flushing: Flushing,
        standbys: Standbys,
        schedule: Schedule,
        clock: Clock,
        times: Times,
        pausing: Pausing,
    ) -> None:
        self._spec = spec
        self._supervision = supervision
        self._assigned = assigned
        self._joining = joining
        self._transaction = transaction
        self._tasks = tasks
        self._commits = commits
        self._committer = committer
        self._search = search
        self._inputs = inputs
        self._consumer = consumer
        self._flushing = flushing
        self._standbys = standbys
        self._schedule = schedule
        self._clock = clock
        self._times = times
        self._pausing = pausing
        self._early_partitions = EarlyPartitions(spec, own, transaction, inputs, search)
        self._spent = Spent(clock.monotonic(), 0, {})
        self._crowded = ""
        self._expiry = Expiry(frozenset(name for name, store in spec.stores.items() if store.ttl_ms is not None))

    def table(self) -> list[Duty]:
        """The rows, in the order in which they are done: what may end this process first, what people see last."""
        return [
            Duty("supervision", self._supervision.raise_if_stopped),
            Duty("instructions", self._assigned.apply_instructions),
            Duty("orders", self._pausing.follow),
            Duty("restore", self._restore, phase=RESTORE),
            Duty("condemned", self._forget_condemned),
            Duty(WINDOW, self._unless_paused(self._tasks.window), self._spec.window_s or NEVER, keeps_pace=True, rest=1.0, phase=PROCESS),
            Duty(COMMIT, self._commit, self._spec.commit_interval_s, is_wanted=self._commits.is_full),
            Duty("partitions", self._early_partitions.add, self._early_partitions.lead_s, before=COMMIT, phase=COMMITTING),
            Duty("write out", self._write_out, phase=COMMITTING),
            Duty("expire", self._unless_paused(self._expire), phase=COMMITTING),
            Duty("times", self._unless_paused(self._look_at_times), WATCH_INPUTS_S if self._times.is_on else NEVER, rest=20.0),
            Duty("inputs", self._unless_paused(self._watch_inputs), WATCH_INPUTS_S, rest=20.0),
            Duty("sweep", self._sweep, SWEEP_S, keeps_time=True),
            Duty("report", lambda: self._supervision.report(False)),
        ]

    def _unless_paused(self, do: Callable[[], None]) -> Callable[[], None]:
        return lambda: None if self._pausing.is_on else do()

    def _commit(self) -> None:
        if why := due(is_interval_over=self._schedule.is_over(COMMIT), is_full=self._commits.is_full()):
            self._commits.commit(why)

    def _restore(self) -> None:
        """Between two batches the run loop does this itself, and then it may wait; here only what would wait for the end of a long batch."""
        if self._transaction.unprocessed:
            self._joining.restore()

    def _forget_condemned(self) -> None:
        if self._search.condemned:
            self._search.forget(r for r in self._search.condemned if r[:2] not in self._inputs.readers)

    def _write_out(self) -> None:
        if self._spec.stores:
            stores = (store for task in self._inputs.tasks() for store in task.stores.values())
            self._flushing.step(self._clock.monotonic(), self._committer.changes, stores)

    def _expire(self) -> None:
        if self._expiry.is_needed:
            self._expiry.step(self._clock.monotonic(), (s for task in self._inputs.tasks() for s in task.stores.values()))

    def _look_at_times(self) -> None:
        self._times.look(self._transaction.unprocessed)

    def _watch_inputs(self) -> None:
        now = self._clock.monotonic()
        if self._search.suspects and self._inputs.do_suspects_stand(now):
            self._search.no_suspects()
            self._inputs.read_only({})
        self._inputs.look_for_open_transactions(now)
        self._consumer.stalled += self._inputs.look_for_stalls(now)
        self._consumer.check_size()
        self._watch_time(now)
        for task in self._inputs.tasks():
            task.reason = self._inputs.why_it_waits(task) or self._crowded

    def _watch_time(self, now: float) -> None:
        """Whether tasks hardly get on because the container is busy with other things."""
        if now - self._spent.at_s >= SPAN_S:
            before, self._spent = self._spent, Spent(now, self._inputs.drained, dict(self._schedule.spent_s))
            was, self._crowded = self._crowded, crowded(before, self._spent)
            if self._crowded and not was:
                LOG.warning("container %d: %s", self._spec.number, self._crowded)

    def _sweep(self) -> None:
        held = {*self._tasks.held, *(str(c["task"]) for c in self._standbys.status())}
        try:
            gone = self._spec.sweep(held)
        except (OSError, SamzapyError) as error:
            LOG.warning("stores of tasks that moved away could not be removed: %s", error)
            return
        if gone:
            LOG.info("removed the local stores of %s, which have been elsewhere for a day", ", ".join(gone))
