"""`Table`: the newest value of each key."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar

from samzapy.streams.graph import Keeps
from samzapy.streams.stream import Stream

if TYPE_CHECKING:
    from samzapy.streams.app import App

K = TypeVar("K")
V = TypeVar("V")


class Table(Generic[K, V]):
    """The newest value of each key: of a topic, or of what `count`, `reduce`, `fold` or `aggregate` made of a stream."""

    def __init__(self, app: App, node: Keeps) -> None:
        self.app = app
        self.node = node

    def updates(self) -> Stream[K, V | None]:
        """Each change, as a stream: the new value, or None where a key was deleted."""
        return Stream(self.app, self.node)

    def to(self, topic: str, /, *, value: type[V] | str | None = None, partitions: int | None = None) -> None:
        """Send each change to a topic; a deletion is a tombstone. `partitions`: how many the topic gets if it is created."""
        stream: Stream[Any, Any] = self.updates()
        stream.to(topic, value=value, partitions=partitions)
