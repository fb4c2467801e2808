"""`App`: a program of streams. The job file names it: `app: module:name`."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, Literal, TypeVar, cast, overload

from typing_extensions import TypeVar as DefaultTypeVar

from samzapy.config.fields import MAX_STORE_NAME, STORE_NAME
from samzapy.config.key_class import REMEDY
from samzapy.config.units import format_duration
from samzapy.model.names import SUFFIXES, TOPIC_NAME
from samzapy.streams.functions import function
from samzapy.streams.graph import Keeps, Node, Repartition, Source, TableSource, Timing, To
from samzapy.streams.kinds import JSON, Kind, kind_of
from samzapy.streams.places import place, refused
from samzapy.streams.stream import Stream
from samzapy.streams.table import Table
from samzapy.streams.walk import sources
from samzapy.streams.window_shapes import Duration, milliseconds

N = TypeVar("N", bound=Node)
K = TypeVar("K")
V = TypeVar("V")
KB = DefaultTypeVar("KB", default=bytes)
VB = DefaultTypeVar("VB", default=bytes)
RECORD_TIME, CLOCK_TIME = "record", "processing"


class App:
    """A program: it reads topics as streams and tables, applies operators to them, and sends results to topics.

    Each record of an input is taken through the whole program before the next one; all that it changes and sends takes effect together. Stores and
    topics have the names that the program gives them. The section `streams:` of the job file may give a topic another name, and says where it is read from.

    Operators are checked when the program is defined: each method here, and of the streams and tables, raises ConfigurationError, with file and line,
    for wrong arguments.
    """

    def __init__(self) -> None:
        self._nodes: list[Node] = []

    @property
    def graph(self) -> tuple[Node, ...]:
        """The operators, in the order in which they were defined."""
        return tuple(self._nodes)

    @overload
    def stream(
        self,
        topic: str,
        /,
        *,
        key: type[KB] = ...,
        value: type[VB] = ...,
        time: Literal["record", "processing"] | Callable[[VB], int | datetime] = ...,
        watermark_delay: Duration | None = ...,
        idle_timeout: Duration | None = ...,
        when_idle: Literal["hold", "advance"] = ...,
        max_ahead: Duration | None = ...,
    ) -> Stream[KB, VB]: ...
    @overload
    def stream(
        self,
        topic: str,
        /,
        *,
        key: type[KB] | str = ...,
        value: str,
        time: Literal["record", "processing"] | Callable[[Any], int | datetime] = ...,
        watermark_delay: Duration | None = ...,
        idle_timeout: Duration | None = ...,
        when_idle: Literal["hold", "advance"] = ...,
        max_ahead: Duration | None = ...,
    ) -> Stream[KB, Any]: ...
    def stream(
        self,
        topic: str,
        /,
        *,
        key: Any = bytes,
        value: Any = bytes,
        time: Any = RECORD_TIME,
        watermark_delay: Any = None,
        idle_timeout: Any = "5m",
        when_idle: str = "hold",
        max_ahead: Any = "1h",
    ) -> Stream[Any, Any]:
        """Read a topic as a stream of records.

        Args:
            topic: its name.
            key, value: the types of keys and values, or the names of their serdes. For a record that is not of them `on_error` applies.
            time: what a record's time is. "record": Kafka's timestamp. "processing": the clock when the record is processed. A function: what it returns for
                the value, milliseconds since 1970 or a datetime with a time zone, of which whole milliseconds count.
            watermark_delay: how much older than the newest record of its partition a record may be, as text ("5s") or timedelta. Windows need it, except
                with `time="processing"`.
            idle_timeout: after this long without a record, a partition no longer holds event time back; None or "never": it always does.
            when_idle: what event time does while no partition has records. "hold": it stands still; "advance": it goes on at the speed of the clock.
            max_ahead: how far ahead of the clock event time may get. A record that is ahead of the records before it by more than this moves event time
                only when later records confirm it. None or "any": no limit.
        """
        where = place()
        self._refuse_twice(topic, where)
        is_plain = time in (RECORD_TIME, CLOCK_TIME)
        of_time = None if is_plain else function(time, f"stream({topic!r}, time=…)", where, names=())
        timing = _timing(f"stream({topic!r}, ", watermark_delay, idle_timeout, when_idle, max_ahead, time == CLOCK_TIME, where)
        kinds = kind_of(key, f"stream({topic!r}, key=…)"), kind_of(value, f"stream({topic!r}, value=…)")
        return Stream(self, self.add(Source, key=kinds[0], value=kinds[1], topic=topic, time=of_time, by_clock=time == CLOCK_TIME, timing=timing))

    def table(
        self, topic: str, /, *, key: type[K], value: type[V], store: str | None = None, broadcast: bool = False, ready: bool = True
    ) -> Table[K, V]:
        """Read a topic as a table, which has the newest value of each key. A record without a value (a tombstone) deletes its key.

        Args:
            topic: its name.
            key, value: as of `stream`.
            store: the name of the store that keeps it; by default the topic's name.
            broadcast: each task keeps the whole table, so `lookup` may ask for any key. The topic is read from its start at each start of a task.
            ready: True: the topic is read up to its end before any stream; False: at the same time as the streams. Later changes apply as they are read.
        """
        where = place()
        self._refuse_twice(topic, where)
        key_kind, value_kind = kind_of(key, f"table({topic!r}, key=…)"), kind_of(value, f"table({topic!r}, value=…)")
        if broadcast and not ready:
            raise refused(f"table({topic!r}): a broadcast table is read to its end at each start", "Remove ready=False.", where)
        self.refuse_key(key_kind, f"table({topic!r})", where)
        name = self.store_name(topic if store is None else store, f"table({topic!r})", where, hint="Name its store: store=….")
        node = self.add(
            TableSource, key=key_kind, value=value_kind, store_value=value_kind, name=name, topic=topic, broadcast=broadcast, ready=ready
        )
        return Table(self, node)

    # -- for streams and tables ------------------------------------------------------------------------------------------------------

    def add(self, kind: type[N], **fields: Any) -> N:
        """Append a new operator to the program. `fields`: the attributes of its class."""
        node = kind(number=len(self._nodes), where=place(), **fields)
        self._nodes.append(node)
        return node

    def store_name(self, name: object, what: str, where: str, hint: str = "") -> str:
        """The name, if it is valid for a store and not in use. `what`: the operator, for the message; `hint`: the remedy.

        Raises:
            ConfigurationError: it is not valid, or in use.
        """
        if not isinstance(name, str) or not STORE_NAME.fullmatch(name) or len(name) > MAX_STORE_NAME:
            rule = f"letters, digits, '-' and '_', at most {MAX_STORE_NAME}"
            raise refused(f"{what}: {name!r} cannot be a store's name", hint or f"A name has {rule}.", where)
        self._refuse_taken(name, what, where, hint)
        return name

    def topic_name(self, name: object, what: str, where: str) -> str:
        """The name, if it is valid for an internal topic and not in use. Raises as `store_name`."""
        if isinstance(name, str) and f"-{name}".endswith(SUFFIXES):
            raise refused(f"{what}: {name!r} ends like the name of a changelog or of dead letters", "Give it another name.", where)
        return self.store_name(name, what, where)

    def _refuse_taken(self, name: str, what: str, where: str, hint: str) -> None:
        for other in self._nodes:
            if isinstance(other, Keeps | Repartition) and other.name == name:
                raise refused(f"{what}: {name!r} is the name of the {other.word} at {other.where}", hint or "Give it a name of its own.", where)

    @staticmethod
    def refuse_no_count(partitions: object, what: str, where: str) -> None:
        """Raise ConfigurationError if `partitions` is neither None nor a whole number from 1 on."""
        if partitions is not None and (isinstance(partitions, bool) or not isinstance(partitions, int) or partitions < 1):
            raise refused(f"{what}: partitions={partitions!r}", "Write a whole number, 1 or more.", where)

    @staticmethod
    def refuse_key(key: Any, what: str, where: str) -> None:
        """Raise ConfigurationError for a kind of keys that a store could not find again: equal keys must be equal bytes."""
        if why := key.why_no_key:
            hint = f"Use keys of str, int, bytes or a frozen record.{f' {REMEDY}' if key.is_record else ''}"
            raise refused(f"{what}: keys of kind {key} cannot be looked up: {why}", hint, where)

    def own(self, node: Node, app: App, what: str) -> Node:
        """The operator of another stream or table. Raises ConfigurationError if that belongs to another program."""
        if app is not self:
            raise refused(f"{what}: the two are of different programs", "Define both with one App.")
        return node

    def table_of(self, node: Keeps) -> Table[Any, Any]:
        return Table(self, node)

    def keeper(self, table: Table[Any, Any], what: str) -> Keeps:
        return cast(Keeps, self.own(table.node, table.app, what))

    def send(
        self, node: Node, topic: str, key: Any, value: Any, partition: Any, partitions: int | None, timestamps: str
    ) -> None:
        """Send a stream to a topic: see `Stream.to`. Raises ConfigurationError, also if the program writes the topic elsewhere with other kinds or partitions."""
        where, what = place(), f"to({topic!r})"
        _refuse_no_topic(topic, where)
        if timestamps not in ("time", "send"):
            raise refused(f"{what}: timestamps={timestamps!r}", "Write 'time' or 'send'.", where)
        self.refuse_no_count(partitions, what, where)
        key_kind = node.key if key is None else kind_of(key, f"{what}, key=…")
        value_kind = node.value or Kind(JSON) if value is None else kind_of(value, f"{what}, value=…")
        by = None if partition is None else function(partition, f"{what}, partition=…", where)
        for other in self._nodes:
            if isinstance(other, To) and other.topic == topic:
                if (other.key.serde, other.value and other.value.serde) != (key_kind.serde, value_kind.serde):
                    raise refused(f"{what}: at {other.where} it is written as {other.key} and {other.value}", "Give the topic the same kinds in both places.", where)
                if None not in (partitions, other.partitions) and other.partitions != partitions:
                    raise refused(f"{what}: at {other.where} it has {other.partitions} partitions", "Give it in one place.", where)
        self.add(To, inputs=(node,), key=key_kind, value=value_kind, topic=topic, partition=by, partitions=partitions, timestamps=timestamps)

    def _refuse_twice(self, topic: str, where: str) -> None:
        _refuse_no_topic(topic, where)
        other = next((node for node in sources(self._nodes) if node.topic == topic), None)
        if other is not None:
            raise refused(f"topic {topic!r} is read at {other.where} already", "Use that stream or table again: each can be used many times.", where)


def _timing(what: str, delay: Any, idle: Any, when_idle: str, ahead: Any, by_clock: bool, where: str) -> Timing | None:
    """What a stream says of its event time; None: nothing."""
    if when_idle not in ("hold", "advance"):
        raise refused(f"{what}when_idle=…): {when_idle!r}", "Write 'hold' or 'advance'.", where)
    if delay is None and not by_clock:
        return None

    def shown(name: str, given: Any, word: str) -> str:
        return word if given in (None, word) else format_duration(milliseconds(given, f"{what}{name}=…)", least=0 if given is delay else 1))

    delayed = shown("watermark_delay", delay, "0s")
    return Timing(delayed, shown("idle_timeout", idle, "never"), when_idle, shown("max_ahead", ahead, "any"))


def _refuse_no_topic(topic: object, where: str) -> None:
    if not isinstance(topic, str) or not TOPIC_NAME.fullmatch(topic):
        raise refused(f"{topic!r} is not a Kafka topic name", "Kafka allows letters, digits, '.', '_' and '-', at most 249.", where)
