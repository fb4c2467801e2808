"""Carries out what plan/on_error_policy.py says of a record, or a pane of a window, that is given up: the job stops, or it is skipped, set aside in the
dead-letter topic, or ignored.

Nothing is left of what the record put or sent when this is called. A dead letter is sent in the container's transaction, so it is there
exactly if the offset after the record is committed.
"""

from __future__ import annotations

import logging
from typing import NoReturn

from samzapy.api.errors import CodeReplaced, RecordTooLarge, SamzapyError, SerdeError
from samzapy.container.commit_due import RECORD
from samzapy.container.commits import Commits
from samzapy.container.facts import Errors
from samzapy.container.failure import (  # fmt: skip
    brief,
    dead_letter_of,
    dead_letter_of_pane,
    described,
    is_logged,
    named,
    named_pane,
    origin_of,
    place_of,
    place_of_pane,
    stack_of,
    tellable,
    where_of,
)
from samzapy.container.ownership import Ownership
from samzapy.container.spec import ContainerSpec, DeadLetterSpec
from samzapy.container.task_instance import TaskInput, TaskInstance
from samzapy.container.transaction import Transaction
from samzapy.model.dead_letter import DeadLetter, Origin
from samzapy.model.failed_pane import FailedPane
from samzapy.plan.on_error_policy import GivenUp, ends_job, what_becomes
from samzapy.ports import Clock, Message

LOG = logging.getLogger("samzapy.container")


class GivenUpRecords:
    """Applies `on_error`.

    Attributes:
        ends_job: whether a record that is given up ends the job.
    """

    def __init__(
        self, spec: ContainerSpec, own: Ownership, transaction: Transaction, commits: Commits, clock: Clock, errors: Errors
    ) -> None:
        self._on_error, self.ends_job = spec.on_error, ends_job(spec.on_error)
        self._dead_letters, self._job = spec.dead_letters, spec.job
        self._own = own
        self._transaction = transaction
        self._commits = commits
        self._clock = clock
        self._errors = errors
        self._between, self._replaced_files = spec.between, spec.replaced_files

    def apply_on_error(self, task_input: TaskInput, message: Message, error: BaseException, attempts: int) -> None:
        """For one task that reads the record.

        One that comes again (`TaskInput.again_until`) has taken effect, or was given up, when it came first: it is passed by, no letter is sent.

        Raises:
            TaskError: with `on_error: fail`, or where no dead letter fits; all that was done before the record is committed.
            CodeReplaced: the record is not at fault, the code of this container is too old for it.
        """
        error, task = tellable(error), task_input.task
        self._refuse_with_old_code(message, error)
        becomes = what_becomes(self._on_error, comes_again=message.offset() < task_input.again_until)
        place = place_of(error, message, task_input.decode_key, task_input.decode_value)
        self._errors.add(type(error).__name__, place, lambda: _told(message, error, becomes.value), task.name)
        match becomes:
            case GivenUp.STOP:
                self._stop_at(named(task.name, task.hook, error, where_of(message, isinstance(error, SerdeError)), attempts), error)
            case GivenUp.SET_ASIDE:
                topic = self._set_aside(task_input, message, error, attempts)
                what = f"set aside in {topic}"
                task_input.dead_letters += 1
            case GivenUp.SKIP:
                what = "skipped"
                task_input.skipped += 1
            case GivenUp.IGNORE:
                what = "ignored, no dead letter: the record was committed before, and is only read again"
                task_input.skipped += 1

        number = task_input.skipped + task_input.dead_letters
        if is_logged(number):
            LOG.warning("%s: %s: record %s: %s (%s so far in this task)", task.name, what, where_of(message), brief(error), f"{number:,}")

    def apply_to_pane(self, task: TaskInstance, pane: FailedPane, error: BaseException, attempts: int) -> None:
        """For a pane of a window that is given up. It counts as a record of the task's first input.

        Raises:
            TaskError: with `on_error: fail`, or where no dead letter fits; all that was done before the pane is committed.
        """
        error, task_input = tellable(error), task.inputs[0]
        becomes = what_becomes(self._on_error)
        place = place_of_pane(error, pane)
        told = {"record": str(pane), "text": described(error), "stack": stack_of(error), "action": becomes.value}
        self._errors.add(type(error).__name__, place, lambda: told, task.name)
        if becomes is GivenUp.STOP:
            self._stop_at(named_pane(task.name, pane, error, attempts), error)
        if becomes is GivenUp.SET_ASIDE:
            spec = self._dead_letters
            if spec is None:
                raise AssertionError("a container that sets panes aside has a dead-letter topic (container.py)")
            origin = Origin(self._job.changelog_topic(pane.window), task.model.partition, max(0, pane.start))
            try:
                letter = dead_letter_of_pane(pane, origin, task.name, error, attempts, self._clock.now_ms(), spec)
            except RecordTooLarge as too_large:
                self._stop_at(too_large, error)
            self._send(letter, spec, task)
            task_input.dead_letters += 1
            what = f"set aside in {spec.topic}"
        else:
            task_input.skipped += 1
            what = "skipped"
        number = task_input.skipped + task_input.dead_letters
        if is_logged(number):
            LOG.warning("%s: %s: %s: %s (%s so far in this task)", task.name, what, pane, brief(error), f"{number:,}")

    def _set_aside(self, task_input: TaskInput, message: Message, error: BaseException, attempts: int) -> str:
        """Send its dead letter; the topic it goes to."""
        task, spec = task_input.task, self._dead_letters
        if spec is None:
            raise AssertionError("a container that sets records aside has a dead-letter topic (container.py)")
        try:
            letter = dead_letter_of(message, task.name, error, attempts, self._clock.now_ms(), spec)
        except RecordTooLarge as too_large:
            self._stop_at(too_large, error)
        self._send(letter, spec, task)
        return spec.topic

    def _send(self, letter: DeadLetter, spec: DeadLetterSpec, task: TaskInstance) -> None:
        self._own.open().send(spec.topic, letter.value, letter.key, task.model.partition, letter.time_ms, letter.to_headers())
        self._transaction.sent_bytes += letter.size

    def _refuse_with_old_code(self, message: Message, error: BaseException) -> None:
        """While containers restart one by one with new code, those with the old one may meet records of the new one in internal topics."""
        if not isinstance(error, SerdeError) or message.topic() not in self._between:
            return
        files = self._replaced_files()
        if files:
            replaced = CodeReplaced(
                f"record {origin_of(message)} cannot be read by the code that this container runs, and {', '.join(files)} changed since it was imported: "
                "the container is started again with the current code.",
                "You need not do anything. `samzapy restart JOB.yaml` gives all containers the current code.",
            )
            self._stop_at(replaced, error)

    def _stop_at(self, error: SamzapyError, cause: BaseException) -> NoReturn:
        self._commits.commit(RECORD)
        raise error from cause


def _told(message: Message, error: BaseException, action: str) -> dict[str, str]:
    """What people are told of one error of a group."""
    return {"record": str(origin_of(message)), "text": described(error), "stack": stack_of(error), "action": action}
