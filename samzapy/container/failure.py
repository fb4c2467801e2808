"""Failed records: how messages name the record, and its dead letter. What becomes of it is decided in plan/on_error_policy.py.

Words only; processing.py and on_error.py use them. A stack tells files, lines and functions, never values of variables and no message
of an exception, so nothing of the record gets into it.
"""

from __future__ import annotations

import contextlib
import linecache
import logging
import signal
from collections.abc import Awaitable, Callable, Coroutine, Generator
from functools import lru_cache
from pathlib import Path
from typing import Any

from samzapy import failpoints
from samzapy.api.envelope import OutgoingMessageEnvelope, headers_of
from samzapy.api.errors import BatchUnreadable, LogError, RecordTooLarge, SamzapyError, SerdeError, StateUnreadable, TaskError
from samzapy.config.secrets import without_secrets
from samzapy.container.spec import DeadLetterSpec
from samzapy.model.dead_letter import HEADERS_NOT_READ, NOT_READ, WINDOW, DeadLetter, Origin
from samzapy.model.failed_pane import FailedPane
from samzapy.ports import Message
from samzapy.printable import printable
from samzapy.serde.basic import JsonSerde

LOG = logging.getLogger("samzapy.container")
Decode = Callable[[bytes], Any]
MAX_FRAMES = 50
MAX_KEY = 100  # bytes of a key that are shown
PACKAGE = Path(__file__).parents[1]
MAX_CAUSES = 5
RAISED = "-> "  # before the class of an exception, in a stack
TOLD, TOLD_EVERY = 10, 10_000  # of a task's records that are passed by: the first ones, then one in so many
MAX_TOLD = 1000  # characters of an exception's text: it may quote the record, and goes into logs and heartbeats
NO_RECORD = "Fix the task, then run the job again. `on_error` applies to records, and not to `{hook}`: catch there what the job should survive."
AT_START = "Correct that line, then run the job again: it goes on where it was."
PROGRAM = "its program"  # what is said to have failed, of a program
PASS_UNREAD = "To continue past such records, set `on_error: {then: dead_letter}` (or `skip`)."
FIRES_AGAIN = (
    "Fix the function that failed and run the job again: it goes on with this result, and none before it is repeated. "
    "Or set `on_error: {then: dead_letter}` (or `skip`) to continue past such results."
)
PASS_BY = "Fix the {failed}, or set `on_error: {{then: dead_letter}}` (or `skip`) to continue past such records."

_told_of: set[tuple[str, str]] = set()


def is_logged(number: int) -> bool:
    """Whether to log the task's `number`th skipped record."""
    return number <= TOLD or number % TOLD_EVERY == 0


def is_users(error: BaseException) -> bool:
    """Whether an exception is the hook's own: all are but errors of the log, state that cannot be read, a test's end of the process, and a
    person's Ctrl-C (which is switched off in a container's process, so there a KeyboardInterrupt is the task's)."""
    if isinstance(error, KeyboardInterrupt):
        return signal.getsignal(signal.SIGINT) is not signal.default_int_handler
    return not isinstance(error, LogError | StateUnreadable | failpoints.Crash)


def origin_of(message: Message) -> Origin:
    return Origin(message.topic(), message.partition(), message.offset())


def dead_letter_of(message: Message, task: str, error: BaseException, attempts: int, now_ms: int, spec: DeadLetterSpec) -> DeadLetter:
    """The dead letter of a record, shortened if the topic's limit requires it.

    Raises:
        RecordTooLarge: the topic takes less than its origin and a few words.
    """
    origin = origin_of(message)
    truncated = NOT_READ if isinstance(error, BatchUnreadable) else ""
    try:
        headers = headers_of(message)
    except SerdeError:
        headers, truncated = [], truncated or HEADERS_NOT_READ
    letter = DeadLetter(
        origin=origin,
        key=message.key(),
        value=message.value(),
        headers=headers,
        task=task,
        error=described(error),
        stack=stack_of(error),
        attempts=attempts,
        timestamp_ms=message.timestamp()[1],
        time_ms=now_ms,
        truncated=truncated,
    )
    return _fitted(letter, f"record {origin}", spec)


def dead_letter_of_pane(pane: FailedPane, origin: Origin, task: str, error: BaseException, attempts: int, now_ms: int, spec: DeadLetterSpec) -> DeadLetter:
    """The dead letter of a pane: its key as bytes, and the pane as JSON, as far as it was made. `origin`: where the window's state is. Raises as
    `dead_letter_of`."""
    value = pane.value or JsonSerde.encode({"start": pane.start, "end": pane.end})
    letter = DeadLetter(
        origin=origin, key=pane.key, value=value, headers=[(WINDOW, pane.window.encode())], task=task, error=f"{pane}: {described(error)}", stack=stack_of(error),
        attempts=attempts, timestamp_ms=pane.start, time_ms=now_ms,
    )  # fmt: skip
    return _fitted(letter, str(pane), spec)


def _fitted(letter: DeadLetter, what: str, spec: DeadLetterSpec) -> DeadLetter:
    fitted = letter.fitted(spec.max_record_bytes)
    if fitted is None:
        raise RecordTooLarge(
            f"{letter.task}: {what} failed ({letter.error}), and its dead letter cannot be written: even without stack, key, value and headers it is larger than "
            f"the limit of {spec.topic}, {spec.max_record_bytes} bytes.",
            f"Raise max.message.bytes of {spec.topic}, then start the job again.",
        )
    return fitted


def described(error: BaseException) -> str:
    """`class: message`."""
    return f"{type(error).__name__}: {without_secrets(error.message) if isinstance(error, SamzapyError) else _text(error)}"


def tellable(error: BaseException) -> BaseException:
    """The error; or one in its place, if it is of a class whose own code raises when it is asked for what people are to be told."""
    try:
        described(error), stack_of(error), isinstance(error, SamzapyError)
    except Exception as worse:  # noqa: BLE001  whatever a user's exception class does
        kind = type.__dict__["__name__"].__get__(type(error))
        return TaskError(f"it raised {_a(kind)}, which cannot be described: {type.__dict__['__name__'].__get__(type(worse))}.")
    return error


def brief(error: BaseException) -> str:
    return without_secrets(error.message) if isinstance(error, SamzapyError) else described(error)


def named(task: str, hook: str, error: BaseException, where: str = "", attempts: int = 1) -> TaskError:
    """The error with the task, the hook, the record and the line of the user's code that raised."""
    at = f" on record {where}" if where else ""
    often = f" {attempts} times" if attempts > 1 else ""
    pass_by = PASS_BY.format(failed="program" if hook.startswith(PROGRAM) else "task")
    own = pass_by if where else NO_RECORD.format(hook=hook) if hook in ("window", "end_of_stream") else AT_START if hook in ("init", "the constructor") else ""
    remedy = error.remedy if isinstance(error, SamzapyError) and error.remedy else own
    kind = type(error) if isinstance(error, TaskError) else TaskError
    if where and _is_of_reading(error):
        return kind(f"{task}: record {where}: it cannot be read: {brief(error).removesuffix('.')}{_user_line(error)}.", f"{remedy} {PASS_UNREAD}")
    return kind(f"{task}: {hook} failed{often}{at}: {brief(error).removesuffix('.')}{_user_line(error)}.", remedy)


def named_pane(task: str, pane: FailedPane, error: BaseException, attempts: int) -> TaskError:
    """As `named`, of a pane of a window."""
    often = f" {attempts} times" if attempts > 1 else ""
    remedy = error.remedy if isinstance(error, SamzapyError) and error.remedy else ""
    kind = type(error) if isinstance(error, TaskError) else TaskError
    return kind(f"{task}: {pane} failed{often}: {brief(error).removesuffix('.')}{_user_line(error)}.", f"{remedy} {FIRES_AGAIN}".strip())


def _is_of_reading(error: BaseException) -> bool:
    """Whether a serde could not read a record: no code of the task has failed."""
    frame = error.__traceback__ if isinstance(error, SerdeError) else None
    while frame is not None:
        if frame.tb_frame.f_code.co_name.lstrip("_").startswith("decode") and _is_ours(frame.tb_frame.f_code.co_filename):
            return True
        frame = frame.tb_next
    return False


def stack_of(error: BaseException) -> str:
    """The user's frames as `file:line in function: code`, the innermost last; causes before what they led to.

    samzapy's own are left out, wherever they are; they are told only of an exception that has no others and is not one of samzapy's errors.
    """
    parts: list[str] = []
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen and len(seen) < MAX_CAUSES:
        seen.add(id(current))
        part = "\n".join([*_frames(current), f"{RAISED}{type(current).__name__}"])
        if part not in parts:  # an attempt that failed as the one before it did
            parts.insert(0, part)
        current = current.__cause__ or (None if current.__suppress_context__ else current.__context__)
    return without_secrets("\n".join(parts))


def told_stack(error: BaseException) -> list[str]:
    """The lines of `stack_of`; none where no line names a place: the error itself then says where it was."""
    lines = stack_of(error).splitlines()
    return lines if any(not line.startswith(RAISED) for line in lines) else []


def _frames(error: BaseException) -> list[str]:
    places: list[tuple[str, int, str]] = []
    trace = error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        places.append((code.co_filename, trace.tb_lineno, code.co_name))
        trace = trace.tb_next
    users = [place for place in places if not _is_ours(place[0]) and not _is_of_with(place[0])]
    told = users if users or isinstance(error, SamzapyError) else places
    return [_frame(*place) for place in told[-MAX_FRAMES:]]


@lru_cache(maxsize=1000)
def _frame(path: str, line: int, function: str) -> str:
    return f"{path.rsplit('/', 1)[-1]}:{line} in {function}: {linecache.getline(path, line).strip()}"


def _text(error: BaseException) -> str:
    """The exception's message; a user's exception may raise even in `__str__`."""
    try:
        text = without_secrets(str(error))
    except BaseException as worse:  # it is told instead: SystemExit would end the container before the record is named
        if not is_users(worse):
            raise
        return f"(its message cannot be shown: {type(worse).__name__})"
    return printable(text if len(text) <= MAX_TOLD else text[:MAX_TOLD] + "…")


def where_of(message: Message, with_key: bool = True) -> str:
    """The record's name, with its key as bytes."""
    key = message.key() if with_key else None
    shown = "" if key is None else f", key {key[:MAX_KEY]!r}" + (f"… ({len(key)} bytes)" if len(key) > MAX_KEY else "")
    return f"{origin_of(message)}{shown}"


def refuse_returned(hook: str, returned: object) -> None:
    """A hook's return value, which is ignored: an error if the user must have meant something by it, else a warning, once.

    Raises:
        TaskError: an envelope, or a generator or coroutine, which has not even run.
    """
    kind = type(returned).__name__
    if isinstance(returned, Generator):
        raise TaskError(f"{hook} is a generator: none of its code has run.", "Use no `yield` in it; send with `collector.send(…)`.")
    if isinstance(returned, Awaitable):
        if isinstance(returned, Coroutine):
            returned.close()
        raise TaskError(f"{hook} returned {_a(kind)}, which nobody awaits.", "Define it without `async`.")
    first = returned[0] if isinstance(returned, list | tuple) and returned else returned
    if isinstance(first, OutgoingMessageEnvelope):
        raise TaskError(f"{hook} returned {_a(kind)}, which is not sent.", "Send it: `collector.send(envelope)`, and return nothing.")
    if (hook, kind) not in _told_of and len(_told_of) < MAX_TOLD:
        _told_of.add((hook, kind))
        LOG.warning("%s returned %s: the return value is ignored (logged once); send records with collector.send(…)", hook, _a(kind))


def _a(kind: str) -> str:
    return f"{'an' if kind[:1].lower() in 'aeiou' else 'a'} {kind}"


@lru_cache(maxsize=1000)
def _is_ours(path: str) -> bool:
    return Path(path).is_relative_to(PACKAGE)


def _is_of_with(path: str) -> bool:
    """Whether it is the standard library's code for `with`, through which ours and the user's raise."""
    return path == contextlib.__file__


def place_of(error: BaseException, message: Message, decode_key: Decode, decode_value: Decode) -> str:
    """What errors of records are counted by, beside their class. It tells nothing of a record: the topic whose key or value cannot be read, else
    `file:line` of the innermost of the user's frames, else the operator, else the topic."""
    if isinstance(error, SerdeError):
        for part, data, decode in (("key", message.key(), decode_key), ("value", message.value(), decode_value)):
            if data is not None and _fails_so(decode, data, error):
                return f"{part} of {message.topic()}"
    where = error.where if isinstance(error, SamzapyError) else ""
    return _user_line(error).strip(" ()") or where or f"record of {message.topic()}"


def place_of_pane(error: BaseException, pane: FailedPane) -> str:
    """As `place_of`, of a pane of a window."""
    where = error.where if isinstance(error, SamzapyError) else ""
    return _user_line(error).strip(" ()") or where or f"window {pane.window}"


def _fails_so(decode: Decode, data: bytes, error: SerdeError) -> bool:
    """Whether it was this that could not be read: it fails again, in the same words."""
    try:
        decode(data)
    except SerdeError as again:
        return again.message in error.message
    return False


def _user_line(error: BaseException) -> str:
    frame = error.__traceback__
    last = ""
    while frame is not None:
        name = frame.tb_frame.f_code.co_filename
        if not _is_ours(name) and not _is_of_with(name):
            last = f" ({name.rsplit('/', 1)[-1]}:{frame.tb_lineno})"
        frame = frame.tb_next
    return last
