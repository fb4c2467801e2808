"""A job one of whose containers freezes at a failpoint and goes on when everybody believes that it is dead.

As a process that is paused, or swapped out, on a machine that cannot be reached: its lease runs out, its tasks go to others, and then it
goes on from the very line, with its producer, its consumer and its stores still open. The turns of a container are taken in a thread of its own, and
nobody else does anything meanwhile, so that one can be left hanging in the middle.
"""

from __future__ import annotations

import queue
import threading
from pathlib import Path
from typing import Any

from samzapy.api.errors import StateRefused
from tests.recovery.memory_job import Actor, MemoryJob

ASLEEP, DONE = "asleep", "done"


class FrozenContainerJob(MemoryJob):
    """A callback for failpoints: whoever meets `point` for the `nth` time sleeps there, until `wake_after` turns after it was given up."""

    def __init__(self, folder: Path, point: str, nth: int, wake_after: int, **settings: Any) -> None:
        super().__init__(folder, **settings)
        self.woke_up = False
        self.frozen: Actor | None = None
        self._point, self._nth, self._wake_after = point, nth, wake_after
        self._hits = self._turns = 0
        self._raised: BaseException | None = None
        self._events: queue.Queue[str] = queue.Queue()
        self._alarm = threading.Event()
        self._asked: dict[Actor, queue.SimpleQueue[None]] = {}

    def __call__(self, name: str) -> None:
        if name == self._point:
            self._hits += 1
            if self._hits == self._nth:
                self._events.put(ASLEEP)
                self._alarm.wait()

    def let(self, actor: Actor) -> None:
        asked = self._asked.get(actor)
        if asked is None:
            asked = self._asked[actor] = queue.SimpleQueue()
            threading.Thread(target=self._turns_in, args=(actor, asked), daemon=True).start()
        asked.put(None)
        if self._await_turn() == ASLEEP:
            actor.sleeps, self.frozen = True, actor

    def turn(self) -> None:
        super().turn()
        frozen = self.frozen
        if frozen is None or frozen.ended is None or frozen.is_over:
            return
        self._turns += 1
        if self.woke_up:
            self.let(frozen)
        elif self._turns > self._wake_after:
            self.wake_up()

    def wake_up(self) -> None:
        """It goes on, to the end of its turn."""
        assert self.frozen is not None
        self.frozen.sleeps, self.woke_up = False, True
        self._alarm.set()
        self._await_turn()

    def _await_turn(self) -> str:
        """How the turn that was asked for ended; raises what the container raised."""
        event = self._events.get()
        if self._raised is not None:
            raise self._raised
        return event

    def _turns_in(self, actor: Actor, asked: queue.SimpleQueue[None]) -> None:
        """One thread for all turns of a container: its stores take no other."""
        while True:
            asked.get()
            try:
                actor.turn()
            except StateRefused as error:
                if actor is not self.frozen or not self.woke_up:
                    self._raised = error
                actor.die("failed")  # it read that there was no checkpoint, slept, and finds a store that its successor has used on this disk
            except BaseException as error:  # raised again by whoever asked for the turn
                self._raised = error
            finally:
                self._events.put(DONE)
