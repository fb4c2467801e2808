"""`Table`: the newest value of each key."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from samzapy.streams.familiar import no_operator
from samzapy.streams.graph import Keeps
from samzapy.streams.stream import Stream

if TYPE_CHECKING:
    from samzapy.streams.app import App

K = TypeVar("K")
V = TypeVar("V")


class Table(Generic[K, V]):
    """The newest value of each key, in a store: of the records of a topic, or of the results of `count`, `reduce`, `fold` or `aggregate`."""

    def __init__(self, app: App, node: Keeps) -> None:
        self.app = app
        self.node = node

    if not TYPE_CHECKING:  # a checker knows by itself

        def __getattr__(self, name: str) -> Any:
            of_streams = f"a table has no {name!r}; its changes are a stream: .updates().{name}(…)"
            raise AttributeError(of_streams if hasattr(Stream, name) else no_operator(self, name), name=name, obj=self)

    def updates(self) -> Stream[K, V | None]:
        """A stream with a record for each change of the table: the new value, or None if the key was deleted."""
        return Stream(self.app, self.node)

    def to(
        self, topic: str, /, *, value: type[V] | str | None = None, partitions: int | None = None, timestamps: Literal["time", "send"] = "time"
    ) -> None:
        """Send each change to a topic; a deletion is a tombstone. Raises ConfigurationError as `Stream.to`.

        Args:
            topic: its name.
            value: the type of the values, or the name of their serde, if it is not known; else they are written as JSON.
            partitions: how many the topic gets if samzapy creates it.
            timestamps: "time": each change has the time of the record that caused it; "send": the time of sending.
        """
        stream: Stream[Any, Any] = self.updates()
        stream.to(topic, value=value, partitions=partitions, timestamps=timestamps)
