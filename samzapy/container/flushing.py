"""When stores are written out and flushed: on time, so that a crash leaves little to restore, and in parts, so that the loop is not delayed.

Without a write-ahead log a crash loses what was not flushed, and a restart reads that again from the changelog. So every `interval_s`, or after
`max_changes` committed changes, each store writes what it has committed to its engine, a part a turn, and starts a flush that nobody waits for.
A store whose committed changes take too much memory is written out at once.
"""

from __future__ import annotations

from collections.abc import Iterable

from samzapy.ports import TaskStore

MIN_PART = 2000  # entries a turn; some milliseconds of a write, which holds the interpreter's lock
TURNS = 40  # a write-out takes at most so many turns, of at most a tenth of a second each
FLUSH_COSTS = 50  # what starting a flush counts for, in entries


class Flushing:
    """The write-outs and flushes of a container's stores.

    Args:
        interval_s: seconds between flushes.
        max_changes: committed changes after which stores are flushed before that.
    """

    def __init__(self, interval_s: float, max_changes: int) -> None:
        self._interval_s = interval_s
        self._max_changes = max_changes
        self._next_at = 0.0
        self._changes_then = 0
        self._waiting: list[TaskStore] = []  # to be written out and flushed
        self._part = MIN_PART

    def begin(self, now: float) -> None:
        """The container's tasks were started again: the next flush is an interval away."""
        self._next_at = now + self._interval_s
        self._waiting = []

    def step(self, now: float, changes: int, stores: Iterable[TaskStore]) -> None:
        """A turn: do what is due. `changes`: how many were committed since the container was made; `stores`: those that are open now.

        Raises:
            InDoubt, StoreProblem: an engine could not take it.
        """
        is_open = dict.fromkeys(stores)
        for store in is_open:
            if store.must_write_out:
                store.write_out()
        if now >= self._next_at or changes - self._changes_then >= self._max_changes:
            for store in self._waiting:  # still not done after a whole interval: done at once
                if store in is_open:
                    store.write_out()
            self._next_at = now + self._interval_s
            self._changes_then = changes
            self._waiting = list(is_open)
            self._part = max(MIN_PART, sum(store.unwritten + FLUSH_COSTS for store in is_open) // TURNS)
        room = self._part
        while self._waiting and room > 0:
            store = self._waiting[-1]
            if store in is_open:
                before = store.unwritten
                is_done = store.write_out(room)
                room -= before - store.unwritten + FLUSH_COSTS
                if not is_done:
                    return
                store.start_flush()
            self._waiting.pop()
