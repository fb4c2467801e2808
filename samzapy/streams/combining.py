"""Partial sums before an internal topic: what a window after it sums up is summed up first where it is sent, by slice and key, and goes through the
topic once a commit instead of once a record.

The sums are of all tasks of the container, which have one transaction, and of no store: they begin empty after each commit, whose transaction has them, and
what a crash loses of them is read again. A function that fails with the sums of many records would not be a record's error. So then nothing is committed,
and the records go through the topic alone. The same where a sum is so large, as a number or in bytes, that adding it to what the window has could fail.

Sums of what a hook was given are made apart and merged when it has returned.

A sum that waits in the topic when the program changes means what it meant: a window with the same aggregates and slices takes it, whatever its lateness
and its panes are now. No other one may take it, and no record is to blame: the job stops.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import msgspec

from samzapy.api.errors import RecordTooLarge, SamzapyError, StateUnreadable, TaskError, TransactionAborted
from samzapy.model.event_time import NEVER
from samzapy.model.partial_sums import said_of
from samzapy.serde.basic import shown
from samzapy.streams.compile_through import EARLIEST, early
from samzapy.streams.graph import Graph, Node, Reader
from samzapy.streams.internal import is_timed
from samzapy.streams.operators.held import KEY_TYPES, Sums
from samzapy.streams.walk import readers, takers
from samzapy.streams.window_nodes import WindowAggregate, late_of

PARTIAL_HEADER = "samzapy-partial"
FORMAT = 1
LARGEST = {int: 1 << 62, float: 1e300}  # sums of records that go as one: far below what a store can hold
Headers = list[tuple[str, bytes | None]]
MOST_HEADERS = 4096  # that are kept as they were made or read
SHARE = 16  # a sum of several records has at most this part of the topic's limit: one that does not fit into the window any more takes few with it
SendBytes = Callable[[str, bytes, bytes, int, Headers, int], None]


def partial_windows(graph: Graph) -> dict[Node, WindowAggregate]:
    """By reader of an internal topic, the window that takes sums made before the topic: it alone takes the records, each of them once."""
    below = takers(graph)
    found: dict[Node, WindowAggregate] = {}
    for reader in readers(graph):
        taker = below[reader][0] if len(below[reader]) == 1 else None
        if isinstance(taker, WindowAggregate) and reader.writer.how == "key_by" and is_timed(reader.writer) and _takes_sums(taker):
            found[reader] = taker
    return found


def combined_windows(graph: Graph) -> dict[Node, WindowAggregate]:
    """By the `key_by` that sends there, the windows for which sums are made."""
    return {
        reader.writer: window for reader, window in partial_windows(graph).items()
        if isinstance(reader, Reader) and reader.writer.combine and not _wants_records(graph, window)
    }  # fmt: skip


def sums_through(graph: Graph) -> dict[str, str]:
    """By internal topic that may have partial sums in it: of what, for the section `stages` of a job file, and whether this program makes them."""
    made = combined_windows(graph)
    return {
        reader.name: said_of(window.identity, are_made=reader.writer in made)
        for reader, window in partial_windows(graph).items() if isinstance(reader, Reader)
    }  # fmt: skip


def counts(window: WindowAggregate) -> bool:
    """Whether what it adds up is how many records there are."""
    return window.how == "count"


def _takes_sums(window: WindowAggregate) -> bool:
    """Whether it can add the sum of many records."""
    is_known = counts(window) or (window.how == "aggregate" and not {"own", "collect"} & {what for _, what in window.parts})
    return is_known and window.merge is not None


def _wants_records(graph: Graph, window: WindowAggregate) -> bool:
    """Whether somebody wants the records themselves, or what one of them changes."""
    is_read = any(late_of(graph, window) in node.inputs for node in graph)
    return bool(window.lateness_ms) or window.emit.each or is_read


def header_of(window: WindowAggregate, records: int) -> Headers:
    """What says that a record is the sum of so many, for this window. Whoever gets it changes nothing in it."""
    return [(PARTIAL_HEADER, msgspec.msgpack.encode((FORMAT, records, _shape(window))))]


def records_of(window: WindowAggregate, headers: Headers) -> int:
    """Of how many records a record is the sum.

    Raises:
        TaskError: its header is not one of samzapy's. StateUnreadable: it is one for another window.
    """
    try:
        made, records, shape = _decoded(headers[0][1] or b"")
    except msgspec.MsgspecError:
        raise TaskError(f"its header {PARTIAL_HEADER} is not one that samzapy wrote.", "Find out who else writes to this internal topic.") from None
    if (made, shape) != (FORMAT, _shape(window)):
        raise not_for(window.name)
    return records


@lru_cache(maxsize=MOST_HEADERS)  # most sums are of a few records
def _decoded(header: bytes) -> tuple[int, int, bytes]:
    return msgspec.msgpack.decode(header, type=tuple[int, int, bytes])


def not_for(name: str) -> StateUnreadable:
    """The error that a record is a sum which cannot be used here."""
    return StateUnreadable(
        f"the record is a partial sum of several records, which an earlier version of the program wrote; {name!r} as it is now cannot take it.",
        "No record is at fault, so `on_error` does not apply. In the earlier version of the program, set `combine=False` in the key_by before this window, "
        "and run that for a minute: it takes the sums that wait and makes no new ones. Then stop it, and run the new version.",
    )


def without_partial(headers: Headers) -> Headers:
    """A record's headers without the one that is samzapy's."""
    return [one for one in headers if one[0] != PARTIAL_HEADER]


def check_mergeable(window: WindowAggregate, found: Any) -> None:
    """Whether a sum can be added to what the window has: adding it record by record could not fail for other records than this one does.

    Raises:
        TaskError: it may be too large.
    """
    for name, what in window.parts:
        total = found[name] if what == "sum" else found[name][0] if what == "mean" else 0
        if what == "mean" and type(total) is int:
            continue  # it goes on as a float
        if not abs(total) <= LARGEST.get(type(total), 0):
            raise TaskError(f"the {what} {name!r} has the sum {shown(total)}, which may be too large to be added to that of the window", "")


@lru_cache(maxsize=256)  # it is asked for with each sum
def _shape(window: WindowAggregate) -> bytes:
    return hashlib.blake2b(window.identity.encode(), digest_size=8).digest()


class PartialSum:
    """Of one key in one slice.

    Attributes:
        records, sum: how many records, and their accumulator.
        key: in bytes, as the topic has it.
        hook: the number of the hook that changed it last, where hooks change what waits.
    """

    __slots__ = ("hook", "key", "records", "sum")

    def __init__(self, sum_: Any, key: bytes, hook: int) -> None:
        self.records, self.sum, self.key, self.hook = 1, sum_, key, hook


Slice = dict[Any, PartialSum]  # by key


class WaitingSums:
    """The sums of all tasks of a container for one internal topic, from one commit to the next.

    Attributes:
        slices: by the end of a slice and by key.
        held: how many there are.
        failed: why two of them could not become one; None: they could.
        hook: the number of the hook that runs now, or next.
    """

    def __init__(self) -> None:
        self.slices: dict[int, Slice] = {}
        self.held = self.hook = 0
        self.failed: Exception | None = None

    def clear(self) -> None:
        """They are sent, or the transaction that they belong to is given up."""
        self.slices.clear()
        self.held, self.failed = 0, None


class Combiner:
    """Sums up the records of one task for one internal topic.

    Args:
        encode_key: keys as the topic has them.
        waiting: takes what hooks that have returned summed up.
    """

    def __init__(self, topic: str, window: WindowAggregate, sums: Sums, encode_key: Callable[[Any], bytes], waiting: WaitingSums) -> None:
        self._topic, self._window = topic, window
        self._every, self._offset = window.window.every_ms, window.window.offset_ms
        self._sums, self._add, self._encode_key = sums, sums.add, encode_key
        self._waiting = waiting
        self._run: dict[int, Slice] = {}  # of the hook that is running
        self._end, self._near, self._before = NEVER, Slice(), Slice()  # the slice of the record before, in the run and of what waits
        self._headers: dict[int, Headers] = {}  # by the number of records

    def _end_of(self, time: int) -> int:
        """The end of the slice of this time."""
        return (time - self._offset) // self._every * self._every + self._offset + self._every

    def add(self, key: Any, value: Any, time: int) -> None:
        """A record. What this raises is the record's error."""
        if not self._end - self._every <= time < self._end:
            self._end = self._end_of(time)
            self._near = self._run.setdefault(self._end, {})
            self._before = self._waiting.slices.get(self._end, {})
        place = key if type(key) in KEY_TYPES else (self._encode_key(key),)
        found = self._near.get(place)
        if found is None:
            before = self._before.get(place)  # whose key is in bytes already
            self._near[place] = PartialSum(self._add(None, value, time), self._encode_key(key) if before is None else before.key, 0)
        else:
            found.sum = self._add(found.sum, value, time)
            found.records += 1

    def keep(self) -> None:
        """The hook has returned."""
        if not self._run:
            return
        waiting, merge = self._waiting, self._sums.merge
        for end, run in self._run.items():
            kept = waiting.slices.setdefault(end, run)
            if kept is run:
                waiting.held += len(run)
                continue
            there = len(kept)
            for place, found in run.items():
                before = kept.setdefault(place, found)
                if before is not found:
                    try:
                        before.sum = merge(before.sum, found.sum)
                    except Exception as error:  # noqa: BLE001 - the user's function may raise anything; it is told at the commit, which then fails
                        waiting.failed = error
                    before.records += found.records
            waiting.held += len(kept) - there
        self._begin()

    def undo(self) -> None:
        """The hook has raised."""
        self._begin()

    def _begin(self) -> None:
        self._run.clear()
        self._end = NEVER

    def flush(self, send: SendBytes) -> None:
        """Sends what waits, of all tasks: before a commit.

        Raises:
            TransactionAborted: it cannot be sent; the records have to go alone.
        """
        waiting = self._waiting
        try:
            if waiting.failed is not None:
                raise waiting.failed
            for end, kept in waiting.slices.items():
                at = end - 1
                for found in kept.values():
                    if found.records > 1 and self._window.parts:
                        check_mergeable(self._window, found.sum)
                    headers = self._header_of(found.records)
                    told = headers if at > EARLIEST else early(headers, at)
                    send(self._topic, self._sums.encode(found.sum), found.key, max(at, EARLIEST), told, SHARE if found.records > 1 else 1)
        except Exception as error:
            if isinstance(error, SamzapyError) and not isinstance(error, RecordTooLarge | TaskError):
                raise
            raise TransactionAborted(
                f"partial sums for {self._window.name!r} could not be made ({type(error).__name__}: {error}): its records go through {self._topic} one by one",
                "",
            ) from error
        waiting.clear()

    def _header_of(self, records: int) -> Headers:
        found = self._headers.get(records)
        if found is None:
            if len(self._headers) >= MOST_HEADERS:
                self._headers.clear()
            found = self._headers[records] = header_of(self._window, records)
        return found
