"""What a consumer of ours promises, as a small machine: the same for whoever implements it. A sequence of operations is done on it and on a
consumer, and what comes back is compared after each.

Not compared, because the port leaves it open: which of several partitions a poll serves first; whether a position has passed the markers
and aborted records after the last record handed out; a partition that was out of range, until it is assigned or sought again.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import product

from samzapy.api.errors import LogError, OffsetOutOfRange
from samzapy.model.offsets import TopicPartition
from samzapy.ports import Consumer, Log
from tests.contract.log_worlds import until

FAR = 1000
# per partition: the offsets of what can be read, in a log that also has markers and an aborted tail, and the end
VISIBLE = {0: (0, 1, 6, 7), 1: (0, 1, 2)}
ENDS = {0: 9, 1: 4}
ASSIGNED = (("assign", 0, 0), ("assign", 0, 1), ("assign", 1, 0), ("assign", 0, FAR))
SOUGHT = (("seek", 0, 0), ("seek", 0, 6), ("seek", 1, 2))
HELD = (("pause", 0), ("pause", 1), ("resume", 0), ("resume", 1))
ASKED = (("position", 0), ("position", 1), ("one",), ("all",))
OPERATIONS = (*ASSIGNED, *SOUGHT, ("unassign", 0), ("unassign", 1), *HELD, *ASKED, ("close",))

Operation = tuple[str | int, ...]


def of_three() -> list[tuple[Operation, ...]]:
    return list(product(OPERATIONS, repeat=3))


def drawn(count: int, seed: int, longest: int = 8) -> list[tuple[Operation, ...]]:
    """Sequences of four to `longest` operations; closing comes last, if at all, and most begin with an assignment."""
    chance = random.Random(seed)
    before_closing = OPERATIONS[:-1]
    result = []
    for _ in range(count):
        first = chance.choice(ASSIGNED[:3]) if chance.random() < 0.8 else chance.choice(before_closing)
        rest = chance.choices(before_closing, k=chance.randint(3, longest - 1))
        result.append((first, *rest, *((("close",),) if chance.random() < 0.1 else ())))
    return result


def fill(log: Log, topic: str) -> None:
    """What VISIBLE says."""
    producer = log.transactional_producer(f"fill-{topic}")
    producer.init()
    for partition, count, commit in ((0, 2, True), (0, 2, False), (0, 2, True), (1, 3, True)):
        producer.begin()
        for _ in range(count):
            producer.send(topic, b"v", b"k", partition)
        producer.flush()
        if not (producer.commit() if commit else producer.abort()):
            producer.close()
            producer = log.transactional_producer(f"fill-{topic}")
            producer.init()
    producer.close()
    consumer = log.restore_consumer("filled")
    until(lambda: all(consumer.bounds(TopicPartition(topic, p)).end == end for p, end in ENDS.items()))
    consumer.close()


@dataclass
class Place:
    """One assigned partition: the next offset at least, and at most."""

    low: int
    high: int
    paused: bool = False
    is_lost: bool = False  # it was found out of range, and nothing is promised of it now


@dataclass
class Model:
    """What must hold of the consumer."""

    places: dict[int, Place] = field(default_factory=dict)
    is_closed: bool = False

    def to_come(self, partition: int) -> list[int]:
        place = self.places[partition]
        return [] if place.paused or place.is_lost else [o for o in VISIBLE[partition] if o >= place.low]

    def is_read(self, partition: int) -> bool:
        return not (self.places[partition].paused or self.places[partition].is_lost)

    def meets_the_end_of_range(self) -> bool:
        return any(self.is_read(p) and self.places[p].low == FAR for p in self.places)

    def took(self, partition: int, offset: int) -> None:
        following = next((o for o in VISIBLE[partition] if o > offset), ENDS[partition])
        self.places[partition].low, self.places[partition].high = offset + 1, following


class Comparison:
    """One sequence on one consumer.

    Args:
        quiet_s: how long nothing must come where nothing may.
    """

    def __init__(self, consumer: Consumer, topic: str, quiet_s: float) -> None:
        self._consumer = consumer
        self._topic = topic
        self._quiet_s = quiet_s
        self.model = Model()

    def run(self, operations: Sequence[Operation]) -> None:
        for name, *arguments in operations:
            getattr(self, f"_{name}")(*arguments)
        if not self.model.is_closed:
            self._all()  # whatever was done, it still reads what it should

    def _place(self, partition: int) -> TopicPartition:
        return TopicPartition(self._topic, partition)

    def _assign(self, partition: int, offset: int) -> None:
        def call() -> None:
            self._consumer.assign({self._place(partition): offset})

        if self.model.is_closed:
            raises(RuntimeError, call)
        elif partition in self.model.places:
            raises(LogError, call)
        else:
            call()
            self.model.places[partition] = Place(offset, offset)

    def _unassign(self, partition: int) -> None:
        self._consumer.unassign([self._place(partition)])
        self.model.places.pop(partition, None)

    def _seek(self, partition: int, offset: int) -> None:
        self._consumer.seek({self._place(partition): offset})
        if partition in self.model.places:
            self.model.places[partition] = Place(offset, offset)

    def _pause(self, partition: int) -> None:
        self._consumer.pause([self._place(partition)])
        if partition in self.model.places:
            self.model.places[partition].paused = True

    def _resume(self, partition: int) -> None:
        self._consumer.resume([self._place(partition)])
        if partition in self.model.places:
            self.model.places[partition].paused = False

    def _position(self, partition: int) -> None:
        place = self.model.places.get(partition)
        if place is None:
            raises(KeyError, lambda: self._consumer.positions([self._place(partition)]))
        elif not place.is_lost:
            found = self._consumer.positions([self._place(partition)])[self._place(partition)]
            assert place.low <= found <= place.high, f"partition {partition}: position {found}, not {place}"

    def _one(self) -> None:
        """A poll of one record, where one can come."""
        if self.model.is_closed or self.model.meets_the_end_of_range():
            return self._all()
        due = {p: coming[0] for p in self.model.places if (coming := self.model.to_come(p))}
        found = self._poll_for(1, 1) if due else self._poll(1, self._quiet_s)
        assert [f in due.items() for f in self._known(found)] == [True] * bool(due), f"{self._known(found)}, not one of {due}"
        return None

    def _all(self) -> None:
        """Polls, until all is there that can be; and nothing else."""
        if self.model.is_closed:
            return raises(RuntimeError, lambda: self._consumer.poll(10, 0.0))
        if self.model.meets_the_end_of_range():
            return self._out_of_range()
        due = {p: coming for p in self.model.places if (coming := self.model.to_come(p))}
        wanted = sum(map(len, due.values()))
        found = self._poll_for(wanted, 10) if due else []
        found.extend(self._poll(10, 0.0 if due else self._quiet_s))
        came: dict[int, list[int]] = {}
        for partition, offset in self._known(found):
            came.setdefault(partition, []).append(offset)
        assert came == due
        return None

    def _out_of_range(self) -> None:
        """What lies there is said; what else is read before that is handed out."""
        met: list[OffsetOutOfRange] = []

        def is_said() -> bool:
            try:
                self._known(self._consumer.poll(10, 0.1))
            except OffsetOutOfRange as error:
                met.append(error)
            return bool(met)

        until(is_said)
        assert met, "nothing was said of what is out of range"
        for partition, place in self.model.places.items():
            place.is_lost = place.is_lost or (place.low == FAR and self.model.is_read(partition))
        self._all()

    def _poll_for(self, count: int, at_most: int) -> list[object]:
        found: list[object] = []

        def is_there() -> bool:
            found.extend(self._poll(at_most, 0.1))
            return len(found) >= count

        until(is_there)
        return found

    def _poll(self, at_most: int, wait_s: float) -> list[object]:
        try:
            return list(self._consumer.poll(at_most, wait_s))
        except OffsetOutOfRange:
            paused = [p for p in self.model.places.values() if p.low == FAR and p.paused and not p.is_lost]
            if not paused:
                raise
            for place in paused:  # it was met before the pause
                place.is_lost = True
            return []

    def _known(self, messages: Sequence[object]) -> list[tuple[int, int]]:
        places = [(m.partition(), m.offset()) for m in messages]  # type: ignore[attr-defined]
        for partition, offset in places:
            self.model.took(partition, offset)
        return places

    def _close(self) -> None:
        self._consumer.close()
        self.model = Model(is_closed=True)


def raises(kind: type[Exception], call: Callable[[], object]) -> None:
    try:
        call()
    except kind:
        return
    raise AssertionError(f"no {kind.__name__}")


def differs(log: Log, topic: str, operations: Sequence[Operation], quiet_s: float) -> str:
    """How a new consumer did not do as promised; "" if it did."""
    consumer = log.restore_consumer("sequence")
    try:
        Comparison(consumer, topic, quiet_s).run(operations)
    except Exception as error:
        return f"{operations}: {type(error).__name__}: {error}"
    finally:
        consumer.close()
    return ""
