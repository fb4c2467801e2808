"""`samzapy tail`: look at what is in a topic, as a read_committed reader sees it."""

from __future__ import annotations

import heapq
import sys
from collections.abc import Collection, Generator, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from samzapy.api.errors import NotAuthorized, SerdeError
from samzapy.cli.common import AsJson, print_json, say
from samzapy.cli.lines import Shown
from samzapy.cli.records import SERDES, JobFiles, JobSets, Servers, Topic, facts_of, of_job
from samzapy.clock import SystemClock
from samzapy.model.acls import READ
from samzapy.model.marks import MARKS_KEY
from samzapy.model.offsets import Bounds, TopicPartition
from samzapy.ops.acls import also_needed
from samzapy.ports import Clock, Consumer, Message
from samzapy.readers import read_ranges
from samzapy.wiring.serdes import KEY, VALUE

LAST = 10
BATCH = 500


def tail(
    topic: Topic,
    servers: Servers = "localhost:9092",
    from_beginning: Annotated[bool, typer.Option("--from-beginning", help="Begin at the oldest record.")] = False,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Wait for new records until Ctrl-C; without --from-beginning only those that arrive from now on.")
    ] = False,
    max_records: Annotated[
        int | None,
        typer.Option("--max", min=1, metavar="N", help=f"Show at most N records (with --follow: then stop); the last {LAST} by default.", show_default=False),
    ] = None,
    key_serde: Annotated[
        str | None, typer.Option(help=f"The serde of keys: {SERDES}; by default they are shown as text.", show_default=False)
    ] = None,
    value_serde: Annotated[str | None, typer.Option(help="The serde of values.", show_default=False)] = None,
    job_file: Annotated[
        Path | None,
        typer.Option("--job", metavar="JOB.yaml", help="A job that has this topic: its Kafka, and its serdes for the topic.", show_default=False),
    ] = None,
    more: JobFiles = None,
    sets: JobSets = None,
    as_json: AsJson = False,
) -> int:
    """Show records as a read_committed reader sees them: partition@offset, key, value, headers. Exit code 1 if some cannot be decoded.

    With --json, `key` and `value` hold what the serdes read (bytes as their text in UTF-8). What JSON cannot hold exactly is in `key_base64` or
    `value_base64` instead: the bytes as Kafka has them. A header that is not text is {"base64": …}."""
    log, servers, names, find, _ = of_job(job_file, topic, servers, more, sets)
    key_serde, value_serde = key_serde or names[0], value_serde or names[1]
    shown = Shown(*(None if name is None else find(name, topic, part) for name, part in ((key_serde, KEY), (value_serde, VALUE))))
    facts = facts_of(log, topic, servers)
    partitions = [TopicPartition(topic, p) for p in range(facts.partitions)]
    with log.restore_consumer("tail") as consumer:  # in the job's group: its user may be allowed no other
        try:
            with closing(_batches(consumer, partitions, from_beginning, follow, max_records or LAST, SystemClock())) as batches:
                counted = _Counted(batches)
                code = print_records(counted, max_records, shown, as_json)
        except NotAuthorized as error:
            raise also_needed(error, READ, [topic], "reading this topic", log) from error
        if not follow and not counted.records:
            say(why_nothing(topic, consumer.bounds_of(partitions).values()))
        return code


class _Counted(Iterator[Sequence[Message]]):
    """Batches; `records`: how many records they had so far."""

    def __init__(self, batches: Iterator[Sequence[Message]]) -> None:
        self._batches = batches
        self.records = 0

    def __next__(self) -> Sequence[Message]:
        batch = next(self._batches)
        self.records += len(batch)
        return batch


def why_nothing(topic: str, bounds: Collection[Bounds]) -> str:
    """Of a topic that shows no records, whether it had some. What is still between its bounds is no record: ends of transactions stay after the records."""
    had = sum(one.end for one in bounds if one.start)  # from a start that never moved nothing was removed: what was there was aborted
    if not had:
        return f"{topic} has no records that are committed"
    return f"{topic} is empty: its records, {had} at most, were removed by its retention or, if it is a job's internal topic, by the job after it had processed them"


def _batches(
    consumer: Consumer, partitions: Sequence[TopicPartition], from_beginning: bool, follow: bool, last: int, clock: Clock
) -> Generator[Sequence[Message], None, None]:
    bounds = consumer.bounds_of(partitions)
    if follow:
        consumer.assign({p: b.start if from_beginning else b.end for p, b in bounds.items()})
        while True:
            yield consumer.poll(BATCH, 0.5)
    elif from_beginning:
        yield from read_ranges(consumer, {p: (b.start, b.end) for p, b in bounds.items()}, clock)
    else:
        yield last_records(consumer, partitions, last, clock)


def last_records(consumer: Consumer, partitions: Sequence[TopicPartition], count: int, clock: Clock) -> list[Message]:
    """The newest `count` records of these partitions as they are now; those of a partition stay in their order."""
    found = [_last_of(consumer, partition, count, clock) for partition in partitions]
    return list(heapq.merge(*found, key=lambda message: message.timestamp()[1]))[-count:]


def _last_of(consumer: Consumer, partition: TopicPartition, count: int, clock: Clock) -> list[Message]:
    """Offsets have holes (markers, aborted records, compaction), so look further and further back until there are enough."""
    start, end = consumer.bounds(partition)
    span = count
    while True:
        begin = max(start, end - span)
        found = [m for batch in read_ranges(consumer, {partition: (begin, end)}, clock) for m in batch]
        if len(found) >= count or begin == start:
            return found[-count:]
        span *= 4


def print_records(batches: Iterator[Sequence[Message]], limit: int | None, shown: Shown, as_json: bool) -> int:
    """Print them; the exit code: 1 if one cannot be decoded."""
    count, code, as_text = 0, 0, Shown(None, None)
    for batch in batches:
        for message in batch:
            how = as_text if message.key() == MARKS_KEY else shown  # of a topic between stages: samzapy's own, in no serde of the program's
            try:
                if as_json:
                    print_json(how.document(message))
                else:
                    sys.stdout.write(how.line(message) + "\n")
            except SerdeError as error:
                say(f"{message.topic()}[{message.partition()}]@{message.offset()}: {error.message}")
                code = 1
            count += 1
            if count == limit:
                return code
        sys.stdout.flush()
    return code
