"""Warm copies: stores of tasks that another container owns, kept up by reading their changelogs.

A copy is what a restore would build, ahead of time: committed records only, each batch with the position it leads to, in a generation
directory of this host. When the task moves here, its restore uses the copy like any local store and reads the missing changes. So a
copy can lag, or be given up at any time, and is never wrong. It is never on the owner's host: losing that host would lose both.

A copy that has not been at its log's end for long (its process was suspended) may have missed deletions that compaction removed. It is made anew,
by the rule by which a local store is kept or not: half of the topic's delete.retention.ms.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field

from samzapy import failpoints
from samzapy.api.errors import SamzapyError
from samzapy.container.changelog_records import changes_of, runs
from samzapy.container.generations import open_store
from samzapy.container.spec import ContainerSpec, StoreSpec
from samzapy.model.checkpoint import Checkpoint
from samzapy.model.job_model import TaskModel
from samzapy.model.offsets import TopicPartition, next_offset
from samzapy.plan.start_refusals import Refuse
from samzapy.ports import Change, Clock, Consumer, Log, TaskStore
from samzapy.readers import read_checkpoint

LOG = logging.getLogger("samzapy.standby")
BATCH_RECORDS = 2000
FLUSH_S = 10.0
FLUSHES = 8  # at least so many in a changelog's delete.retention.ms
RETRY_S = 1.0
GIVE_UP_S = 5.0


@dataclass(slots=True)
class _Copy:
    """One store of one task. `as_of_ms` as in a restore: since when tombstones may have been missed."""

    task: TaskModel
    spec: StoreSpec
    store: TaskStore
    topic_partition: TopicPartition
    position: int
    sequence: int
    as_of_ms: int
    pending: list[Change] = field(default_factory=list)


class Standbys:
    """The warm copies of one container. Used by the run loop's thread, a batch at a time."""

    def __init__(self, spec: ContainerSpec, log: Log, clock: Clock) -> None:
        self._spec = spec
        self._log = log
        self._clock = clock
        self._stores = {name: s for name, s in spec.stores.items() if s.changelog}
        self._copies: dict[TopicPartition, _Copy] = {}
        self._followed: dict[str, str] = {}  # task -> why it is not followed yet, "" if it is
        self._consumer: Consumer | None = None
        self._retry_at = 0.0
        self._flush_at = 0.0

    def follow(self, tasks: Mapping[str, TaskModel]) -> None:
        """Keep copies of these tasks, and of no others."""
        if not self._stores:
            return
        for name in [n for n in self._followed if n not in tasks]:
            self.leave(name)
        now = self._clock.monotonic()
        waiting = [n for n in tasks if self._followed.get(n) != ""]
        if not waiting or (now < self._retry_at and all(n in self._followed for n in waiting)):
            return
        self._retry_at = now + RETRY_S
        try:
            for name in waiting:
                self._followed[name] = self._open(tasks[name])
        except SamzapyError as error:
            self._give_up(error)

    def leave(self, task: str) -> None:
        """Close a task's copies; their content stays on disk, flushed as far as that is possible."""
        self._followed.pop(task, None)
        for copy in self._taken_out(task):
            try:
                self._write(copy)
                copy.store.flush()
            except SamzapyError as error:  # it does not stop the tasks that run here
                LOG.warning("the warm copy of %s could not be written to its end: %s", task, error)
            with contextlib.suppress(SamzapyError):
                copy.store.close()

    def _taken_out(self, task: str) -> list[_Copy]:
        """A task's copies, which are read for no longer."""
        gone = [partition for partition, copy in self._copies.items() if copy.task.name == task]
        if self._consumer is not None:
            self._consumer.unassign(gone)
        return [self._copies.pop(partition) for partition in gone]

    def step(self) -> bool:
        """Read a batch, without waiting; True: there was one."""
        if self._consumer is None or not self._copies:
            return False
        try:
            return self._take_batch(self._consumer)
        except SamzapyError as error:
            self._give_up(error)
            return False

    def _take_batch(self, consumer: Consumer) -> bool:
        self._leave_old()
        batch = consumer.poll(BATCH_RECORDS, 0.0)
        for partition, run in runs(batch):
            copy = self._copies.get(partition)
            if copy is not None:
                copy.pending.extend(changes_of(run, copy.spec))
                copy.position = next_offset(run[-1].offset())
        for copy in self._copies.values():
            if copy.pending:
                self._write(copy)
                failpoints.hit("standby.batch.applied")
        if self._clock.monotonic() >= self._flush_at:
            self._flush()
        return bool(batch)

    def _leave_old(self) -> None:
        """Copies that may have missed deletions are closed as they are, and opened again: then their age is looked at, and they are made anew."""
        now_ms = self._clock.now_ms()
        old = {copy.task.name for copy in self._copies.values() if now_ms - copy.as_of_ms >= copy.spec.delete_retention_ms // 2}
        for task in sorted(old):
            for copy in self._taken_out(task):
                copy.store.close()
            self._followed[task] = "it was not at the end of its changelog for half of delete.retention.ms, and is made anew"
            LOG.warning("the warm copy of %s: %s", task, self._followed[task])

    def status(self) -> list[dict[str, object]]:
        """Per task: the positions of its copies by changelog partition, and why there are none."""
        passed = {} if self._consumer is None else self._consumer.positions(self._copies)  # also what is no record: markers
        return [
            {
                "task": name,
                "reason": why,
                "positions": {
                    str(partition): max(copy.position, passed[partition])
                    for partition, copy in self._copies.items()
                    if copy.task.name == name
                },
            }
            for name, why in sorted(self._followed.items())
        ]

    def close(self) -> None:
        for task in list(self._followed):
            self.leave(task)
        if self._consumer is not None:
            self._consumer.close()
            self._consumer = None

    def _give_up(self, error: SamzapyError) -> None:
        """An error of a copy does not stop the tasks that run here: forget all copies, begin again a little later."""
        LOG.warning("the warm copies of this container were closed because of an error, and are opened again in %.0f s; its tasks go on: %s", GIVE_UP_S, error)
        for copy in self._copies.values():
            with contextlib.suppress(SamzapyError):  # it says the same again
                copy.store.close()
        self._copies = {}
        self._followed = dict.fromkeys(self._followed, error.message)
        if self._consumer is not None:
            self._consumer.close()
            self._consumer = None
        self._retry_at = self._clock.monotonic() + GIVE_UP_S

    # -- inside ------------------------------------------------------------------------------------------------------------------------

    def _open(self, task: TaskModel) -> str:
        """Choose or make the local stores of a task and continue from them. Returns why that is not possible now, or ""."""
        copies: list[_Copy] = []
        why = ""
        # one of its own: what the other copies wait for must not be read past
        with self._log.restore_consumer("standby-start") as looking:
            checkpoint = read_checkpoint(looking, self._spec.checkpoint_of(task), self._clock)
            try:
                for spec in self._stores.values():
                    copy = self._copy(looking, task, spec, checkpoint)
                    if isinstance(copy, str):
                        why = copy
                        break
                    copies.append(copy)
                if self._consumer is None:
                    self._consumer = self._log.restore_consumer("standby")
            except BaseException:
                for each in copies:  # else their directories stay in use
                    with contextlib.suppress(SamzapyError):
                        each.store.close()
                raise
        if why:
            for copy in copies:
                copy.store.close()
            return why
        self._copies.update({copy.topic_partition: copy for copy in copies})
        self._consumer.assign({copy.topic_partition: copy.position for copy in copies})
        LOG.info("keeps a warm copy of %s, from %s on", task.name, ", ".join(f"{c.topic_partition}@{c.position}" for c in copies))
        return ""

    def _copy(self, consumer: Consumer, task: TaskModel, spec: StoreSpec, checkpoint: Checkpoint | None) -> _Copy | str:
        directory = spec.open_directory(task.name)
        partition = spec.changelog_of(task.partition)
        now_ms = self._clock.now_ms()
        opened = open_store(
            directory, spec.identity(self._spec.job, task.name), checkpoint, spec.facts(partition, *consumer.bounds(partition)), now_ms=now_ms
        )
        if opened is None:
            return "its directory is still in use"
        if isinstance(opened, Refuse):
            return opened.reason
        store = spec.make(task.name, None)
        store.attach(opened.engine)
        failpoints.hit("standby.opened")
        before = store.stamp if opened.is_kept else None
        return _Copy(task, spec, store, partition, opened.position, before.sequence if before else 0, before.as_of_ms if before else now_ms)

    def _write(self, copy: _Copy) -> None:
        stamp = copy.spec.stamp(self._spec.job, copy.task.name, copy.position, copy.sequence, copy.as_of_ms)
        copy.store.load(copy.pending, stamp)
        copy.pending = []

    def _flush(self) -> None:
        """Flush the copies; one at its log's end is as of now."""
        assert self._consumer is not None
        at = self._consumer.positions(self._copies)
        now_ms, bounds = self._clock.now_ms(), self._consumer.bounds_of(self._copies)
        for partition, copy in self._copies.items():
            end = bounds[partition].end
            copy.position = max(copy.position, min(at[partition], end))
            if copy.position >= end:
                copy.as_of_ms = now_ms
            self._write(copy)
            failpoints.hit("standby.flush.before")
            copy.store.flush()
        shortest_s = min((copy.spec.delete_retention_ms for copy in self._copies.values()), default=0) / 1000
        self._flush_at = self._clock.monotonic() + min(FLUSH_S, shortest_s / FLUSHES)
