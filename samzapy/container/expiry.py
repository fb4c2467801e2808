"""When entries of stores with a `ttl` are deleted: every ten seconds, in parts, so that the loop is not delayed."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from samzapy.ports import TaskStore

INTERVAL_S = 10.0
PART = 1000  # entries a turn


class Expiry:
    """The deletions of a container's stores.

    Args:
        names: the stores with a `ttl`.
    """

    def __init__(self, names: Collection[str]) -> None:
        self._names = names
        self._next_at = 0.0
        self._waiting: list[TaskStore] = []

    @property
    def is_needed(self) -> bool:
        return bool(self._names)

    def step(self, now: float, stores: Iterable[TaskStore]) -> None:
        """A turn: a part of what is due. `now`: monotonic seconds; `stores`: those that are open now.

        Raises:
            InDoubt, StoreProblem: an engine failed.
        """
        is_open = dict.fromkeys(store for store in stores if store.name in self._names)
        if now >= self._next_at and not self._waiting:
            self._next_at = now + INTERVAL_S
            self._waiting = list(is_open)
        while self._waiting:
            store = self._waiting[-1]
            if store in is_open and not store.expire(PART):
                return
            self._waiting.pop()
