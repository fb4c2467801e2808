"""What a container answers to whoever looks inside: its threads' stacks, a profile of its loop, a trace of a task's next records.

It is given what can be looked at, and nothing by which anything could be changed: no container, no producer, no committer, no store.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import FrameType
from typing import Any, Protocol

from samzapy.api.errors import ConfigurationError, SamzapyError
from samzapy.config.secrets import without_secrets
from samzapy.container.profile import folded
from samzapy.container.sampling import Sampler, Samples
from samzapy.container.stuck_hook import line_of, user_frames

MAX_THREADS, MAX_FRAMES, MAX_LINE = 64, 60, 240
MAX_STACKS = 2000
MAX_ANSWER_BYTES = 1 << 20
MAX_SECONDS = 40.0
Answer = dict[str, Any]


class Traced(Protocol):
    """A trace of a task's records, as container/tracing.py makes it."""

    def ask(self, task: str, records: int, seconds: float) -> None: ...

    def over(self) -> list[dict[str, Any]] | None: ...


@dataclass(frozen=True, slots=True)
class Doing:
    """What the loop does, and for how many seconds."""

    phase: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Later:
    """A question that takes its time. `look`: its answer, once there is one."""

    id: str
    look: Callable[[], Answer | None]


class Inside:
    """Used on the thread of the long poll.

    Args:
        loop_thread: the loop's, as threading.get_ident gives it.
        doing: what the loop does.
        traced: None: nothing is traced, it has no tasks yet.
        sampler: None: the loop's thread cannot be sampled.
    """

    def __init__(self, loop_thread: int, doing: Callable[[], Doing], traced: Callable[[], Traced | None], sampler: Sampler | None) -> None:
        self._loop_thread = loop_thread
        self._doing = doing
        self._traced = traced
        self._sampler = sampler
        self._later: list[Later] = []

    @property
    def is_busy(self) -> bool:
        """Whether an answer is still to come."""
        return bool(self._later)

    def take(self, questions: list[Mapping[str, Any]]) -> list[Answer]:
        """The answers that there are now, to these questions and to those before."""
        answers = [answer for question in questions if (answer := self._answered(question)) is not None]
        for later in list(self._later):
            found = self._look(later)
            if found is not None:
                self._later.remove(later)
                answers.append(found)
        return [_bounded(answer) for answer in answers]

    def _answered(self, question: Mapping[str, Any]) -> Answer | None:
        number = str(question.get("id", ""))
        try:
            seconds = max(0.1, min(float(question.get("seconds", 0.0)), MAX_SECONDS))
            match question.get("kind"):
                case "stack":
                    return {"id": number, "found": self.stack()}
                case "profile":
                    self._later.append(Later(number, self._profile(seconds)))
                case "trace":
                    self._later.append(Later(number, self._trace(str(question["task"]), int(question["records"]), seconds)))
                case other:
                    return {"id": number, "error": f"this container is of another version, and does not know the request {str(other)[:50]!r}"}
        except SamzapyError as error:
            return {"id": number, "error": error.message, "remedy": error.remedy}
        except Exception as error:  # noqa: BLE001  a question must never end the long poll
            return {"id": number, "error": f"the question failed: {type(error).__name__}: {error}"}
        return None

    @staticmethod
    def _look(later: Later) -> Answer | None:
        try:
            found = later.look()
        except Exception as error:  # noqa: BLE001  as above
            return {"id": later.id, "error": f"the question failed: {type(error).__name__}: {error}"}
        return None if found is None else {"id": later.id, "found": found}

    # -- the answers ---------------------------------------------------------------------------------------------------------------------

    def stack(self) -> dict[str, Any]:
        """What the loop does, its record, and the stacks of all threads, the loop's first; each outermost first."""
        doing, (hook, record) = self._doing(), user_frames(self._loop_thread)
        names = {thread.ident: thread.name for thread in threading.enumerate()}
        frames = sorted(sys._current_frames().items(), key=lambda one: one[0] != self._loop_thread)
        threads = [
            {"name": names.get(ident, f"thread {ident}"), "is_loop": ident == self._loop_thread, "frames": _frames(frame)}
            for ident, frame in frames[:MAX_THREADS]
        ]
        at = without_secrets(hook[-1])[:MAX_LINE] if hook else ""
        now = {"phase": doing.phase, "seconds": round(doing.seconds, 3), "at": at, "record": record.removeprefix(" on record ")}
        return {"pid": os.getpid(), "now": now, "threads": threads}

    def _profile(self, seconds: float) -> Callable[[], Answer | None]:
        sampler, samples = self._sampler, Samples()
        if sampler is None:
            raise ConfigurationError(
                "the loop of this container does not run in its process's main thread, and only that can be profiled.",
                "`samzapy debug stack JOB.yaml` shows where it is; without --inline it can be profiled.",
            )
        began = time.monotonic()
        sampler.begin(samples)

        def look() -> Answer | None:
            if time.monotonic() - began < seconds:
                return None
            sampler.end(samples)
            return {"seconds": round(time.monotonic() - began, 2), "samples": samples.count, "folded": folded(samples.microseconds.copy(), MAX_STACKS)}

        return look

    def _trace(self, task: str, records: int, seconds: float) -> Callable[[], Answer | None]:
        traced = self._traced()
        if traced is None:
            raise ConfigurationError("this container has no tasks yet.", "Ask again when it runs.")
        traced.ask(task, records, seconds)

        def look() -> Answer | None:
            found = traced.over()
            return None if found is None else {"task": task, "records": found}

        return look


def _frames(frame: FrameType | None) -> list[str]:
    """The innermost frames of a stack, outermost first."""
    found: list[str] = []
    while frame is not None and len(found) < MAX_FRAMES:
        found.append(without_secrets(line_of(frame))[:MAX_LINE])
        frame = frame.f_back
    return found[::-1]


def _bounded(answer: Answer) -> Answer:
    size = len(json.dumps(answer))
    return answer if size <= MAX_ANSWER_BYTES else {"id": answer["id"], "error": f"the answer has {size} bytes, more than {MAX_ANSWER_BYTES}"}
