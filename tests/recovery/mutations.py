"""Bugs that the simulation must catch, planted one at a time: each patches the one place that keeps the protocol's rule.

An oracle that has never failed proves nothing. `BUGS` names them as the protocol does; each is a context manager. The tests
have the first seed that catches each; the search for it is under `make prove`.

Two of the protocol's list have another form here. "Init skipped": Kafka lets nobody begin without an init, so what is skipped is
the init that fences an owner before its tasks go elsewhere. "Swallowed produce error": in a transaction the producer itself keeps the poison,
so what is swallowed is an error of the outputs that at_least_once sends outside it. "Ingest without flush" cannot be planted: samzapy has no
ingest, a restore writes batches that carry their position.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from typing import Any

from samzapy import failpoints
from samzapy.api.errors import InDoubt, LogError, TransactionAborted
from samzapy.container import first_offsets
from samzapy.container.committer import Committer
from samzapy.container.container import Container
from samzapy.container.inputs import Inputs
from samzapy.container.ownership import Ownership
from samzapy.container.processing import Processing
from samzapy.container.restore_end import Barriers
from samzapy.container.spec import ContainerSpec
from samzapy.container.starter import Starter
from samzapy.container.task_start import TaskStart
from samzapy.coordinator.coordinator_log import CoordinatorLog
from samzapy.model.offsets import TopicPartition
from samzapy.model.states import TaskState
from samzapy.plan import local_store
from samzapy.readers import read_ledger
from samzapy.store.committed import CommittedOverlay
from samzapy.store.overlay import OverlayStore
from samzapy.testing.memory_producers import MemoryTransactionalProducer

Mutation = Callable[[], AbstractContextManager[None]]


@contextmanager
def _instead(owner: Any, name: str, replacement: Any) -> Iterator[None]:
    before = getattr(owner, name)
    setattr(owner, name, replacement)
    try:
        yield
    finally:
        setattr(owner, name, before)


@contextmanager
def _together(*mutations: AbstractContextManager[None]) -> Iterator[None]:
    with ExitStack() as stack:
        for one in mutations:
            stack.enter_context(one)
        yield


def offsets_before_outputs() -> AbstractContextManager[None]:
    """at_least_once: the outputs are waited for only after the transaction that says that their inputs are done."""
    apply = Committer._apply

    def late(self: Any, *arguments: Any) -> None:
        if self._outputs is not None:
            self._outputs.flush()
        apply(self, *arguments)

    return _together(_instead(Committer, "_flush", lambda self: self._own.open().flush()), _instead(Committer, "_apply", late))


def store_before_c4() -> AbstractContextManager[None]:
    send, apply = Committer._send_checkpoints, Committer._apply

    def early(self: Any, cuts: Any) -> Any:
        checkpoints = send(self, cuts)
        apply(self, cuts, checkpoints)
        return checkpoints

    return _together(_instead(Committer, "_send_checkpoints", early), _instead(Committer, "_apply", lambda self, *_: None))


def init_skipped() -> AbstractContextManager[None]:
    return _instead(CoordinatorLog, "fence", lambda self, container: None)


def check_before_init() -> AbstractContextManager[None]:
    def take(self: Any) -> Any:
        self.drop()
        self.check()
        failpoints.hit("own.init.before")
        producer = self._log.transactional_producer(self._job.container_transactional_id(self._container))
        producer.init()
        failpoints.hit("own.init.after")
        failpoints.hit("own.checked")
        self.producer = producer
        return producer

    return _instead(Ownership, "take", take)


def epoch_instead_of_incarnation() -> AbstractContextManager[None]:
    """Whoever knows no newer epoch than the topic's believes that it is meant."""

    def check(self: Any) -> None:
        consumer = self._log.restore_consumer("ownership")
        ledger = read_ledger(consumer, self._job.coordinator_topic, self._clock)
        named = ledger.containers.get(self._container)
        if named is None or not named.incarnation or named.epoch < self.epoch:
            raise self._superseded(named)
        self.ledger, self.epoch, self.named = ledger, named.epoch, named.tasks

    return _instead(Ownership, "check", check)


def shared_checkpoint_partition() -> AbstractContextManager[None]:
    send = MemoryTransactionalProducer.send

    def to_the_first(self: Any, topic: str, value: Any, key: Any, partition: int = -1, *rest: Any, **named: Any) -> None:
        send(self, topic, value, key, 0 if topic.startswith("__samza_checkpoint") else partition, *rest, **named)

    return _together(
        _instead(MemoryTransactionalProducer, "send", to_the_first),
        _instead(ContainerSpec, "checkpoint_of", lambda self, task: TopicPartition(self.job.checkpoint_topic, 0)),
    )


def producer_reused_after_slow_commit() -> AbstractContextManager[None]:
    decided = Ownership.decided
    return _instead(Ownership, "decided", lambda self, clean: decided(self, True))


def swallowed_produce_error() -> AbstractContextManager[None]:
    def flush(self: Any) -> None:
        if self._outputs is not None:
            try:
                self._outputs.flush()
            except LogError:
                pass
        self._own.open().flush()

    return _instead(Committer, "_flush", flush)


def silent_offset_reset() -> AbstractContextManager[None]:
    def checked(bounds: Any, spec: Any, partition: Any, mark: Any, is_empty: bool) -> int:
        return int(mark.next_offset if bounds.start <= mark.next_offset <= bounds.end else bounds.start)

    return _instead(first_offsets, "checked_offset", checked)


def restore_off_by_one() -> AbstractContextManager[None]:
    """A restore begins after the first record that it should read. (One offset late would do no harm: after a commit comes its marker.)"""
    read = Barriers.read_to

    def late(self: Any, consumer: Any, ranges: Any, take: Any, whose: Any) -> Any:
        begun: set[TopicPartition] = set()

        def take_later(place: TopicPartition, keys: Any, run: Any) -> None:
            first = 0 if place in begun or not whose(place)[1] else 1
            begun.add(place)
            if run[first:]:
                take(place, keys[first:], run[first:])

        return read(self, consumer, ranges, take_later, whose)

    return _instead(Barriers, "read_to", late)


def no_age_rule() -> AbstractContextManager[None]:
    return _instead(local_store, "RULES", local_store.RULES[:-1])


def offsets_at_c3() -> AbstractContextManager[None]:
    """Where the consumer stands when the checkpoint is written, not where the task stood at the cut."""
    positions = Inputs.positions
    return _instead(Inputs, "positions", lambda self, unprocessed: positions(self, ()))


def in_doubt_as_abort() -> AbstractContextManager[None]:
    step = Container.step

    def guessing(self: Any, wait_s: float = 0.1) -> bool:
        try:
            return step(self, wait_s)
        except InDoubt as error:
            self._own.take()
            self._rollback.after(TransactionAborted(error.message, ""))
            return True

    return _instead(Container, "step", guessing)


def bootstrap_gate_not_rearmed() -> AbstractContextManager[None]:
    assign = Inputs.assign
    armed: list[Any] = []

    def once(self: Any, tasks: Any, positions: Any) -> None:
        tasks = list(tasks)
        assign(self, tasks, positions)
        for task in tasks:
            for task_input in task.inputs:
                if any(task_input is one for one in armed):
                    task_input.gate = None
                armed.append(task_input)
            if all(task_input.gate is None for task_input in task.inputs):
                task.state = TaskState.RUNNING
        self._hold()

    return _instead(Inputs, "assign", once)


def end_of_stream_twice() -> AbstractContextManager[None]:
    begin = TaskStart.begin

    def forgetting(self: Any, tasks: Any) -> None:
        for task in tasks:
            task.checkpoint = replace(task.checkpoint, ended_run_id="")
        begin(self, tasks)

    return _instead(TaskStart, "begin", forgetting)


def no_checkpoint_0() -> AbstractContextManager[None]:
    settle = Starter._decide_offsets

    def without(self: Any, task: Any, bounds: Any) -> bool:
        is_first = task.checkpoint is None
        return settle(self, task, bounds) and not is_first

    return _instead(Starter, "_decide_offsets", without)


def committed_dropped_at_abort() -> AbstractContextManager[None]:
    """The next write-out says with its stamp that the engine has what was dropped."""
    discard = OverlayStore.discard

    def all_of_it(self: Any) -> None:
        discard(self)
        self._committed.clear()

    return _instead(OverlayStore, "discard", all_of_it)


def stamp_before_its_changes() -> AbstractContextManager[None]:
    """A crash between two batches leaves a store that claims more than it has."""
    write_part = CommittedOverlay.write_part

    def early(self: Any, engine: Any, stamp: Any, max_entries: Any) -> Any:
        engine.write([], stamp)
        return write_part(self, engine, stamp, max_entries)

    return _instead(CommittedOverlay, "write_part", early)


def dropped_before_the_write() -> AbstractContextManager[None]:
    def dropped(self: Any, engine: Any, stamp: Any, max_entries: Any) -> Any:
        self.clear()
        engine.write([], stamp)
        return {}

    return _instead(CommittedOverlay, "write_part", dropped)


def batch_undone_without_its_sends() -> AbstractContextManager[None]:
    """What a batch that failed had sent stays, and its records come again."""

    def undo(self: Any, task_input: Any) -> None:
        task_input.task.undo()
        self._requests.clear()

    return _instead(Processing, "_undo", undo)


def joins_together_go_on_from_checkpoints() -> AbstractContextManager[None]:
    """Of tasks that join a container together, only the last reads again what it must."""
    assign = Inputs.assign

    def skipping(self: Any, tasks: Any, positions: Any) -> None:
        tasks, shared = list(tasks), set(self.readers)
        assign(self, tasks, positions)
        for task in tasks[:-1]:
            for task_input in task.inputs:
                if (task_input.partition.topic, task_input.partition.partition) in shared:
                    task_input.resume_at = max(task_input.resume_at, task_input.committed_offset)

    return _instead(Inputs, "assign", skipping)


BUGS: Mapping[str, Mutation] = {
    "offsets committed before outputs": offsets_before_outputs,
    "store applied before C4": store_before_c4,
    "init skipped": init_skipped,
    "check before init": check_before_init,
    "epoch instead of incarnation": epoch_instead_of_incarnation,
    "shared checkpoint partition": shared_checkpoint_partition,
    "producer reused after a slow commit": producer_reused_after_slow_commit,
    "swallowed produce error": swallowed_produce_error,
    "silent offset reset": silent_offset_reset,
    "restore off by one": restore_off_by_one,
    "no age rule": no_age_rule,
    "offsets taken at C3": offsets_at_c3,
    "in doubt treated as abort": in_doubt_as_abort,
    "bootstrap gate not re-armed": bootstrap_gate_not_rearmed,
    "end_of_stream twice": end_of_stream_twice,
    "no checkpoint 0": no_checkpoint_0,
    "committed changes dropped at an abort": committed_dropped_at_abort,
    "stamp written before its changes": stamp_before_its_changes,
    "committed changes dropped before the write": dropped_before_the_write,
    "batch undone without its sends": batch_undone_without_its_sends,
    "joins together go on from checkpoints": joins_together_go_on_from_checkpoints,
}
