"""The hooks of a task object other than `process` and `process_batch`, and what hooks send and ask for.

What a hook put and sent takes effect together when it has returned, or not at all. What it sent then waits in the collector, and goes to the
producer by the batch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from samzapy import failpoints
from samzapy.api.context import JobInfo
from samzapy.api.task import StreamTask
from samzapy.container.collector import Collector
from samzapy.container.context import Context
from samzapy.container.facts import LoopTime
from samzapy.container.failure import is_users, named, refuse_returned
from samzapy.container.forked import end_child, watch
from samzapy.container.ownership import Ownership
from samzapy.container.process_with_time import with_time, with_times
from samzapy.container.requests import Requests
from samzapy.container.spec import ContainerSpec
from samzapy.container.task_instance import TaskInstance
from samzapy.container.transaction import Transaction
from samzapy.own_loggers import keep_on
from samzapy.ports import PlainProducer

A_WINDOW = "a window"
RETURN_NOTHING = ("init", "window", "end_of_stream", "close")
T = TypeVar("T")


class Hooks:
    """Calls hooks, and hands what they sent to the producer.

    Args:
        outputs: of `at_least_once`; None: what is sent goes into the container's transaction.

    Attributes:
        collector, requests: what hooks are given.
        take_batches: whether a task's class defines `process_batch`.
    """

    def __init__(
        self, spec: ContainerSpec, run_id: str, own: Ownership, transaction: Transaction, outputs: PlainProducer | None, loop: LoopTime
    ) -> None:
        self._spec = spec
        self._job = JobInfo(spec.job.name, spec.job.id, run_id)
        self._own = own
        self._transaction = transaction
        self._outputs = outputs
        self._loop = loop
        self.collector = Collector(spec.outputs)
        self._between = {topic: one.partitions for topic, one in spec.between.items()}
        self.requests = Requests()
        self.take_batches = False
        self._together: dict[str, Any] = {}  # what the tasks of a program hold together until a commit; each entry can be cleared
        watch(self.requests)

    def init(self, task: TaskInstance) -> None:
        """A new task object, and its `init`."""
        user = self._call(task, "the constructor", self._spec.make_task)
        context = Context(
            task.model, self._spec.params, self._job, task.stores, task.metrics, time=task.time, counts=task.counts, between=self._between,
            together=self._together,
        )  # fmt: skip
        task.user = user
        task.takes_batches = type(user).process_batch is not StreamTask.process_batch
        task.takes_raw_records = getattr(user, "takes_raw_records", False)
        self.take_batches = self.take_batches or task.takes_batches
        for task_input in task.inputs:
            if task.takes_raw_records:  # it knows the time of its records itself
                task_input.process = user.process_batch
            else:
                task_input.process = with_times(task_input, user.process_batch) if task.takes_batches else with_time(task_input, user.process)
        failpoints.hit("init.before")
        try:
            self._take_effect(task, "init", lambda: user.init(context))
        finally:
            keep_on()
        failpoints.hit("init.after")

    def window(self, task: TaskInstance) -> None:
        user = task.user
        if user is not None:
            self._take_effect(task, "window", lambda: user.window(self.collector, self.requests))

    def fire(self, task: TaskInstance, alone: bool = False) -> None:
        """One unit of a program's windows that are due; or one pane alone. Raises TaskError, whose cause is what was raised."""
        user = task.user
        if user is not None:
            self._take_effect(task, A_WINDOW, lambda: user.fire(self.collector, alone))  # type: ignore[attr-defined]

    def pass_by(self, task: TaskInstance) -> None:
        """The pane that failed alone is not fired."""
        user = task.user
        if user is not None:
            self._take_effect(task, A_WINDOW, lambda: user.windows.pass_by())  # type: ignore[attr-defined]

    def before_commit(self, task: TaskInstance) -> None:
        """What a program has summed up, in all tasks, is sent. Raises TransactionAborted: it cannot be."""
        if task.held:
            try:
                task.user.before_commit(self.collector.send_bytes)  # type: ignore[union-attr]  # a program's
            except BaseException:
                self.collector.drop()
                raise
            self.collector.keep()

    def end_of_stream(self, task: TaskInstance) -> None:
        user = task.user
        if user is not None:
            self._take_effect(task, "end_of_stream", lambda: user.end_of_stream(self.collector, self.requests))

    def close(self, task: TaskInstance) -> None:
        """Its stores refuse writes by now, and nothing is sent any more."""
        if task.user is not None:
            self._call(task, "close", task.user.close)

    def release(self) -> None:
        """Hand what hooks sent to the producer that the guarantee asks for."""
        if self.requests.is_forked:
            end_child(None)
        if self.collector.pending:
            failpoints.hit("release.before")
            producer = self._own.open() if self._outputs is None else self._outputs
            waited_s = producer.waited_s
            if self._outputs is not None and self._between:  # what goes to a following stage is in the transaction, whatever the guarantee
                inside = self.collector.take(self._between)
                if inside:
                    self._own.open().send_all(inside)
            self._transaction.sent_bytes += self.collector.release(producer.send_all)
            if producer.waited_s > waited_s:
                self._loop.waited(producer.waited_s - waited_s)
                self._transaction.waited_s += producer.waited_s - waited_s

    def forget(self) -> None:
        """Drop what hooks sent and asked for, and what is not handed on yet."""
        for held in self._together.values():
            held.clear()
        self.collector.clear()
        self.requests.clear()

    def _take_effect(self, task: TaskInstance, name: str, call: Callable[[], None]) -> None:
        """What the hook put and sent takes effect together, or not at all."""
        try:
            self._call(task, name, call)
        except BaseException:
            task.undo()
            self.collector.drop()
            raise
        task.keep()
        self.collector.keep()
        self.release()

    def _call(self, task: TaskInstance, name: str, call: Callable[[], T]) -> T:
        # A hook may have forked: the copy of the container that returns here, or raises, must end and touch nothing.
        try:
            returned = call()
            if returned is not None and name in RETURN_NOTHING:
                refuse_returned(name, returned)
        except BaseException as error:
            if self.requests.is_forked:
                end_child(error)
            if not is_users(error):
                raise
            raise named(task.name, name, error) from error
        if self.requests.is_forked:
            end_child(None)
        return returned
