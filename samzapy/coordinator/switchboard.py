"""Questions to containers: each has one request parked here, its long poll; questions travel in the replies to it, answers on the next request.

Asked is only the incarnation that the caller names, and only its answers are taken. A question that nobody answers in time is dropped. All of it
is in memory, and bounded.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from samzapy.api.errors import ClusterUnreachable, ConfigurationError, Superseded

MAX_QUESTIONS = 16  # that are waited for: each keeps a thread of the web listener
MAX_CONTAINERS = 100_000
BEAT, HASTE_S = "beat", 2.0
ALONE = ("profile", "trace")  # one of a kind at a time in each container


@dataclass(eq=False, slots=True)
class Question:
    """`until`: monotonic seconds."""

    id: str
    container: int
    incarnation: str
    kind: str
    content: Mapping[str, Any]
    until: float
    answer: Mapping[str, Any] | None = None
    is_over: threading.Event = field(default_factory=threading.Event)


@dataclass(eq=False, slots=True)
class _LongPoll:
    """A container's. `newest`: the number of its newest request; `wake`: ends that one's wait."""

    incarnation: str
    newest: int = 0
    wake: Callable[[], None] = lambda: None
    waiting: list[Question] = field(default_factory=list)


class Switchboard:
    """Used on any thread."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._long_polls: dict[int, _LongPoll] = {}
        self._asked: dict[str, Question] = {}
        self._is_closed = False

    # -- who asks ------------------------------------------------------------------------------------------------------------------------

    def ask(self, container: int, incarnation: str, kind: str, content: Mapping[str, Any], wait_s: float) -> Mapping[str, Any]:
        """The container's answer.

        Raises:
            ConfigurationError: too much is asked at once, or the container refuses. ClusterUnreachable: it did not answer in `wait_s`.
        """
        question = Question(secrets.token_hex(8), container, incarnation, kind, content, self._clock() + wait_s)
        with self._lock:
            self._refuse_too_many(question)
            self._asked[question.id] = question
            poll = self._long_poll(container, incarnation)
            poll.waiting.append(question)
            poll.wake()
        try:
            question.is_over.wait(wait_s)
        finally:
            with self._lock:
                self._asked.pop(question.id, None)
                if question in poll.waiting:
                    poll.waiting.remove(question)
        if question.answer is None:
            remedy = "It may be starting or ending, or its code may hold Python's lock."
            raise ClusterUnreachable(f"container {container} did not answer within {wait_s:.0f} s.", remedy)
        if "error" in question.answer:
            raise ConfigurationError(f"container {container}: {question.answer['error']}", str(question.answer.get("remedy", "")))
        found = question.answer.get("found")
        return found if isinstance(found, Mapping) else {}

    def hasten(self, container: int, incarnation: str) -> None:
        """Let it send its next heartbeat now: there are orders. Nobody waits for an answer; without a long poll it sends one in its time."""
        with self._lock:
            poll = self._long_polls.get(container)
            if poll is not None and poll.incarnation == incarnation and not any(q.kind == BEAT for q in poll.waiting):
                poll.waiting.append(Question(secrets.token_hex(8), container, incarnation, BEAT, {}, self._clock() + HASTE_S))
                poll.wake()

    def _refuse_too_many(self, question: Question) -> None:
        if self._is_closed:
            raise ClusterUnreachable("this run is ending.", "")
        if len(self._asked) >= MAX_QUESTIONS:
            raise ConfigurationError(f"{MAX_QUESTIONS} questions to containers wait for an answer already.", "Ask again when some are answered.")
        alike = (q for q in self._asked.values() if (q.container, q.kind) == (question.container, question.kind))
        if question.kind in ALONE and next(alike, None) is not None:
            raise ConfigurationError(f"a {question.kind} of container {question.container} is under way already.", "Ask again when it is over.")

    # -- containers ----------------------------------------------------------------------------------------------------------------------

    def arrive(self, container: int, incarnation: str, number: int, answers: Sequence[Mapping[str, Any]], wake: Callable[[], None]) -> None:
        """A request of the container's long poll: takes its answers, and parks it. `wake` is called, on any thread, when there are questions.

        Raises:
            Superseded: a request of this number, or a later one, came before: this one is a repetition.
        """
        with self._lock:
            poll = self._long_poll(container, incarnation)
            if number <= poll.newest:
                raise Superseded(f"request {number} of container {container} was received before.", "")
            poll.newest, poll.wake = number, wake
            for answer in answers:
                question = self._asked.get(str(answer.get("id", "")))
                if question is not None and (question.container, question.incarnation) == (container, incarnation):
                    question.answer = dict(answer)
                    question.is_over.set()
            if poll.waiting or self._is_closed:
                wake()

    def take(self, container: int, incarnation: str, number: int) -> list[dict[str, Any]]:
        """The questions for this request, which leaves now; none if a later one has come."""
        with self._lock:
            poll = self._long_polls.get(container)
            if poll is None or poll.incarnation != incarnation or poll.newest != number:
                return []
            poll.wake = lambda: None
            taken, poll.waiting = poll.waiting, []
            return [{**q.content, "id": q.id, "kind": q.kind} for q in taken if self._clock() < q.until]

    def close(self) -> None:
        """The run ends: nobody waits any more, here or there."""
        with self._lock:
            self._is_closed = True
            for poll in self._long_polls.values():
                poll.wake()
            for question in self._asked.values():
                question.is_over.set()

    def _long_poll(self, container: int, incarnation: str) -> _LongPoll:
        poll = self._long_polls.get(container)
        if poll is None or poll.incarnation != incarnation:
            if len(self._long_polls) >= MAX_CONTAINERS:
                self._long_polls.clear()
            if poll is not None:
                poll.wake()  # a request of the process before this one: nobody reads its answer, and it must not hold up the end of the run
            poll = self._long_polls[container] = _LongPoll(incarnation)
        return poll
