"""Partial sums before an internal topic: what a window behind it sums up is summed up first where it is sent, by slice and key, and goes through the
topic once a commit instead of once a record.

The sums are of no store: they begin empty after each commit, whose transaction has them, and what a crash loses of them is read again. A function
that fails with the sums of many records would not be a record's error. So then nothing is committed, and the records go through the topic alone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import msgspec

from samzapy.api.errors import RecordTooLarge, SamzapyError, TaskError, TransactionAborted
from samzapy.streams.compile_through import EARLIEST, early
from samzapy.streams.graph import Graph, Node, Reader
from samzapy.streams.internal import is_timed
from samzapy.streams.operators.held import Sums
from samzapy.streams.walk import readers, takers
from samzapy.streams.windowed import WindowAggregate, late_of

PARTIAL_HEADER = "samzapy-partial"
FORMAT = 1
Headers = list[tuple[str, bytes | None]]
SendBytes = Callable[[str, bytes, bytes, int, Headers], None]


def partial_windows(graph: Graph) -> dict[Node, WindowAggregate]:
    """By reader of an internal topic, the window that can be summed up before the topic: it alone takes the records, each of them once."""
    below = takers(graph)
    found: dict[Node, WindowAggregate] = {}
    for reader in readers(graph):
        taker = below[reader][0] if len(below[reader]) == 1 else None
        if isinstance(taker, WindowAggregate) and reader.writer.how == "key_by" and is_timed(reader.writer) and _can_be_merged(graph, taker):
            found[reader] = taker
    return found


def combined_windows(graph: Graph) -> dict[Node, WindowAggregate]:
    """By the `key_by` that sends there, the windows of which that is done."""
    return {reader.writer: window for reader, window in partial_windows(graph).items() if isinstance(reader, Reader) and reader.writer.combine}


def _can_be_merged(graph: Graph, window: WindowAggregate) -> bool:
    """Whether the sums of many records are as good as these: nobody wants the records themselves, nor what one of them changes."""
    is_known = window.how == "count" or (window.how == "aggregate" and not {"own", "collect"} & {what for _, what in window.parts})
    is_read = any(late_of(graph, window) in node.inputs for node in graph)
    return is_known and window.merge is not None and not window.lateness_ms and not window.emit.each and not is_read


def header_of(window: WindowAggregate, records: int) -> Headers:
    """What says that a record is the sum of so many, for this window."""
    return [(PARTIAL_HEADER, msgspec.msgpack.encode((FORMAT, records, _shape(window))))]


def records_of(window: WindowAggregate, headers: Headers) -> int:
    """Of how many records a record is the sum.

    Raises:
        TaskError: it is one for another window.
    """
    try:
        made, records, shape = msgspec.msgpack.decode(headers[0][1] or b"", type=tuple[int, int, bytes])
    except msgspec.MsgspecError:
        made, records, shape = 0, 0, b""
    if (made, shape) != (FORMAT, _shape(window)):
        raise not_for(window.name)
    return records


def not_for(name: str) -> TaskError:
    """A record that is a sum which cannot be used here."""
    return TaskError(
        f"the record is a partial sum that an earlier version of the program wrote; {name!r} cannot take it.",
        "Run the earlier version until it has read the whole topic (`samzapy run JOB.yaml --until-end`), and then this one.",
    )


def without_partial(headers: Headers) -> Headers:
    """A record's headers without the one that is samzapy's."""
    return [one for one in headers if one[0] != PARTIAL_HEADER]


@lru_cache(maxsize=256)  # it is asked for with each sum
def _shape(window: WindowAggregate) -> bytes:
    return hashlib.blake2b(window.identity.encode(), digest_size=8).digest()


class Combiner:
    """The sums of one task for one internal topic.

    Args:
        encode_key: keys as the topic has them.

    Attributes:
        held: how many wait for a commit.
    """

    def __init__(self, topic: str, window: WindowAggregate, sums: Sums, encode_key: Callable[[Any], bytes]) -> None:
        self._topic, self._window = topic, window
        self._every, self._offset = window.window.every_ms, window.window.offset_ms
        self._sums, self._encode_key = sums, encode_key
        self._run: dict[tuple[int, bytes], list[Any]] = {}  # of the hook that is running: [records, sum] by end of the slice and key
        self._kept: dict[tuple[int, bytes], list[Any]] = {}
        self._failed: Exception | None = None

    @property
    def held(self) -> int:
        return len(self._kept)

    def add(self, key: Any, value: Any, time: int) -> None:
        """A record. What this raises is the record's error."""
        end = (time - self._offset) // self._every * self._every + self._offset + self._every
        place = end, self._encode_key(key)
        found = self._run.get(place)
        if found is None:
            self._run[place] = [1, self._sums.add(None, value, time)]
        else:
            found[1] = self._sums.add(found[1], value, time)
            found[0] += 1

    def keep(self) -> None:
        """The hook has returned."""
        run, kept = self._run, self._kept
        if not kept:
            self._run, self._kept = kept, run
            return
        for place, found in run.items():
            before = kept.setdefault(place, found)
            if before is not found:
                try:
                    before[1] = self._sums.merge(before[1], found[1])
                except Exception as error:  # noqa: BLE001 - the user's function may raise anything; it is told at the commit, which then fails
                    self._failed = error
                before[0] += found[0]
        run.clear()

    def undo(self) -> None:
        """The hook has raised."""
        self._run.clear()

    def flush(self, send: SendBytes) -> None:
        """Sends what is held: before a commit.

        Raises:
            TransactionAborted: it cannot be sent; the records have to go alone.
        """
        try:
            if self._failed is not None:
                raise self._failed
            for (end, key), (records, found) in self._kept.items():
                headers, at = header_of(self._window, records), end - 1
                send(self._topic, self._sums.encode(found), key, max(at, EARLIEST), headers if at > EARLIEST else early(headers, at))
        except Exception as error:
            if isinstance(error, SamzapyError) and not isinstance(error, RecordTooLarge | TaskError):
                raise
            raise TransactionAborted(
                f"partial sums for {self._window.name!r} could not be made ({type(error).__name__}: {error}): its records go through {self._topic} one by one",
                "",
            ) from error
        self._kept.clear()
