"""The graph of a program: a list of values, in the order in which they were defined. Everything else is made from it: the job's inputs, outputs
and stores (`expand`), the code that runs (`compile`), and the picture (`picture`).

What an operator gives on is a record: a value, with the key, time and headers that it had.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from samzapy.streams.functions import Function
from samzapy.streams.kinds import Kind


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class Node:
    """An operator.

    Attributes:
        number: its place in the list.
        where: file and line.
        inputs: the operators whose records it takes.
        key, value: the kinds of what it gives on; None: not known.
        label: a word for people.
    """

    number: int
    where: str
    inputs: tuple[Node, ...] = ()
    key: Kind
    value: Kind | None
    label: str = ""

    @property
    def word(self) -> str:
        """What the operator is called in a program."""
        return type(self).__name__.lower()

    @property
    def title(self) -> str:
        """The operator in a few words, for people."""
        return f"{self.word} {self.label}".rstrip()

    @property
    def address(self) -> str:
        """The operator's name in metrics: of what keeps state, its own."""
        return f"{self.number}-{self.word}"

    @property
    def is_end(self) -> bool:
        """Whether its records may stop here: they are sent, kept, or given to somebody."""
        return False

    @property
    def drops(self) -> bool:
        """Whether it may give on less, or more, than it takes."""
        return False


@dataclass(frozen=True, slots=True)
class Timing:
    """How out of order the records of a stream may be, and what is waited for: values of the job file's `inputs[].time`."""

    watermark_delay: str
    idle_timeout: str
    when_idle: str
    max_ahead: str


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class Source(Node):
    """A topic as a stream. `time` gives a record's time of its value; None: it is Kafka's timestamp, or the clock's, if `by_clock`. `timing`: of
    its event time; None: it has none."""

    topic: str
    time: Function | None = None
    by_clock: bool = False
    timing: Timing | None = None

    @property
    def word(self) -> str:
        return "stream"

    @property
    def title(self) -> str:
        return f"stream {self.topic}"


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class Keeps(Node):
    """An operator with a store.

    Attributes:
        store_value: the kind of what the store holds of each key.
        keeps: the kind of the stream's values that are in its accumulators; None: there are none, or it is not known.
    """

    name: str
    store_value: Kind
    keeps: Kind | None = None

    @property
    def title(self) -> str:
        return f"{self.word} {self.name}"

    @property
    def address(self) -> str:
        return self.name

    @property
    def is_end(self) -> bool:
        return True

    @property
    def store_key(self) -> Kind:
        """The kind of the store's keys."""
        return self.key

    @property
    def identity(self) -> str:
        """What must not change while there is state: part of each checkpoint."""
        return self.word


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class TableSource(Keeps):
    """A topic as a table: the newest value of each key. `broadcast`: every task has all of it; `ready`: read to its end before any stream."""

    topic: str
    broadcast: bool
    ready: bool

    @property
    def word(self) -> str:
        return "table"

    @property
    def title(self) -> str:
        return f"table {self.topic}{' (broadcast)' if self.broadcast else ''}"

    @property
    def identity(self) -> str:
        return f"table of {self.topic}"


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class Repartition(Node):
    """Sends to an internal topic, of the job's own; the `Reader` after it reads what this sends.

    Attributes:
        name: of the topic, in the program.
        how: key_by, repartition, broadcast, or how else the partition is chosen (partition_choice.py).
        choices: of repartition, among how many partitions a key's records are spread.
        function: of key_by the new key, of repartition the number of the partition; None: the key stays and chooses the partition.
        partitions: how many the topic has; None: as many as what it is used with, or as the largest input.
        combine: whether what is summed up after the topic may be summed up before it.
    """

    name: str
    how: str
    function: Function | None = None
    partitions: int | None = None
    choices: int = 1
    combine: bool = True

    @property
    def word(self) -> str:
        return self.how

    @property
    def title(self) -> str:
        return f"{self.how} {self.name}"

    @property
    def address(self) -> str:
        return self.name


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class Reader(Node):
    """Reads an internal topic: a following stage begins here. Its one input is the `Repartition` that writes the topic."""

    name: str

    @property
    def writer(self) -> Repartition:
        writer = self.inputs[0]
        if not isinstance(writer, Repartition):
            raise AssertionError(f"operator {self.number} does not read an internal topic")
        return writer

    @property
    def word(self) -> str:
        return "read"

    @property
    def title(self) -> str:
        return f"read {self.name}"

    @property
    def address(self) -> str:
        return f"{self.number}-read-{self.name}"


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class Map(Node):
    function: Function


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class Peek(Node):
    function: Function


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class Dropping(Node):
    """An operator that may give on less, or more, than it takes."""

    @property
    def drops(self) -> bool:
        return True


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class Filter(Dropping):
    function: Function


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class FilterMap(Dropping):
    function: Function

    @property
    def word(self) -> str:
        return "filter_map"


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class FlatMap(Dropping):
    function: Function

    @property
    def word(self) -> str:
        return "flat_map"


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class Branch(Node):
    """Each record goes to the `Way` of the first test that holds, or to the last one."""

    tests: tuple[Function, ...]


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class Way(Dropping):
    """One of a branch's streams. `index`: the number of its test."""

    index: int

    @property
    def title(self) -> str:
        return f"branch {self.index + 1}"


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class Merge(Node):
    """The records of several streams; between them there is no order."""


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class Rolling(Keeps):
    """A table of the newest result of each key; what it gives on is each change.

    Attributes:
        how: count, reduce, fold or aggregate.
        zero: what an accumulator begins as; None: as the first value.
        add: accumulator and value to accumulator.
        result: accumulator to result; None: it is the result.
        initial: a table that a key's accumulator begins with, if it has the key.
        parts: of an aggregate, its names with what they are.
    """

    how: str
    zero: Callable[[], Any] | None = None
    add: Function | None = None
    result: Callable[[Any], Any] | None = None
    initial: Keeps | None = None
    parts: tuple[tuple[str, str], ...] = ()

    @property
    def word(self) -> str:
        return self.how

    @property
    def identity(self) -> str:
        parts = ", ".join(f"{name}={what}" for name, what in self.parts)
        return f"{self.how}({parts})" if parts else self.how


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class Lookup(Node):
    """Pairs of a value and what a table has for it now. `on`: the key to look up, of the record; None: the record's key."""

    table: Keeps
    on: Function | None
    inner: bool

    @property
    def title(self) -> str:
        return f"lookup {self.table.name}"

    @property
    def drops(self) -> bool:
        return self.inner


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class To(Node):
    """Sends to a topic. `key`, `value`: as they are written; `partition`: gives the number of the partition."""

    topic: str
    partition: Function | None = None
    partitions: int | None = None
    timestamps: str = "time"

    @property
    def title(self) -> str:
        return f"to {self.topic}"

    @property
    def is_end(self) -> bool:
        return True


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class Sink(Node):
    """Gives each record to a function, for its effect outside of Kafka: again after a crash."""

    function: Function

    @property
    def is_end(self) -> bool:
        return True


Graph = Sequence[Node]
