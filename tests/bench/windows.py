"""W3: how often each page was seen in each ten seconds of event time, final results, without a record lost.

Windows are written when time passes their end, so the outputs do not say how quickly records were read: the rate is that of the whole run, less
the time of the same run over an empty topic. Each round measures both, one after the other, so that what disturbs the one disturbs the other.

The input has the users as keys, so a program has to bring the records of a page together in an internal topic; a loop of one process has all
of them anyway. Beside that the same over an input whose keys are the pages: there neither side has to.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Mapping
from functools import cache, partial

import orjson

from tests.bench import topics
from tests.bench.place import FOR_EVER, PARTITIONS, Place
from tests.bench.programs import GIVEN, OUTPUT
from tests.bench.runs import cpu_of, run_job, run_loops
from tests.bench.throughput import loop_of
from tests.bench.yardstick import Figures, Side, Sides
from tests.broker import create_topic

WINDOW_MS = 10_000
Counts = Mapping[tuple[str, int], int]  # by page and start
Used = tuple[float, float]  # by a run: seconds of processor time, and of time


def w3(place: Place) -> Sides:
    """Count per page in tumbling windows of ten seconds, with and without bringing the pages together."""
    sides = [
        Side("loop", partial(_loop, place, False)),
        Side("by page", partial(_program, place, "by_page", False)),
        Side("loop, keyed", partial(_loop, place, True)),
        Side("keyed", partial(_program, place, "keyed", True)),
    ]
    return Sides(sides, [("by page", "loop"), ("keyed", "loop, keyed")], place.records)


def by_page(place: Place) -> str:
    """The records of the usual input with their pages as keys."""
    whole = place.input()
    name = f"{whole}-pages"
    if topics.end_offsets(place.servers, name) != place.records:
        place.say(f"filling {name}")
        topics.delete(place.servers, [name])
        create_topic(place.servers, name, PARTITIONS, **FOR_EVER)
        values = [message.value() for batch in topics.read(place.servers, [whole]) for message in batch]
        values.sort(key=lambda value: orjson.loads(value)["n"])  # as they were written, or all would be late
        topics.fill(place.servers, name, ((orjson.loads(value)["page"].encode(), value, -1) for value in values))
    return name


def _loop(place: Place, is_keyed: bool) -> Figures:
    given = by_page(place) if is_keyed else place.input()
    with place.attempt() as name:
        loop = loop_of(place, "w3", place.empty(), name)
        idle = used_by(lambda: run_loops(loop))
    with place.attempt() as name:
        loop = loop_of(place, "w3", given, name)
        return _figures(place, loop.output, used_by(lambda: run_loops(loop)), idle)


def _program(place: Place, program: str, is_keyed: bool) -> Figures:
    given = by_page(place) if is_keyed else place.input()
    with place.attempt() as name:
        idle = _run(place, name, program, place.empty())
    with place.attempt() as name:
        return _figures(place, f"{name}-out", _run(place, name, program, given), idle)


def _run(place: Place, name: str, program: str, given: str) -> Used:
    """The program over the input, up to its end."""
    output, folder = place.output(name), place.runs / name
    document = {
        "job": name, "app": f"tests.bench.programs:{program}", "kafka": {"bootstrap.servers": place.servers}, "containers": {"count": 1},
        "state": {"dir": str(folder / "state")},
    }  # fmt: skip
    path = folder / "job.yaml"
    path.write_text(json.dumps(document, indent=1))
    return used_by(lambda: run_job(path, env={GIVEN: given, OUTPUT: output}))


def used_by(run: Callable[[], object]) -> Used:
    """What the processes used that `run` starts and waits for."""
    began = time.monotonic()
    cpu_s = cpu_of(run)
    return cpu_s, time.monotonic() - began


def counts(place: Place, given: str) -> Counts:
    """What the input must lead to."""
    found: Counter[tuple[str, int]] = Counter()
    for batch in topics.read(place.servers, [given]):
        for message in batch:
            record = orjson.loads(message.value())
            found[record["page"], record["ts"] - record["ts"] % WINDOW_MS] += 1
    return found


@cache
def expected(place: Place) -> Counts:
    """What the usual input must lead to, worked out once."""
    return counts(place, place.input())


def written(place: Place, output: str) -> Counts:
    """The windows in a topic.

    Raises:
        AssertionError: a window came twice.
    """
    found: dict[tuple[str, int], int] = {}
    for batch in topics.read(place.servers, [output]):
        for message in batch:
            record = orjson.loads(message.value())
            where = record["page"], record["start"]
            if where in found:
                raise AssertionError(f"{output}: {where} came twice: {found[where]}, then {record['count']}")
            found[where] = record["count"]
    return found


def lost(found: Counts, wanted: Counts) -> int:
    """How many records are in no window that was written.

    Raises:
        AssertionError: a window has more records than the input has for it.
    """
    for where, count in found.items():
        if count > wanted.get(where, 0):
            raise AssertionError(f"{where} has {count} records, the input has {wanted.get(where, 0)}")
    return sum(wanted.values()) - sum(found.values())


def figures(place: Place, used: Used, idle: Used) -> Figures:
    """Of a run, less those of the run over an empty topic."""
    cpu_s, seconds = used[0] - idle[0], used[1] - idle[1]
    return {"records_per_s": place.records / max(seconds, 0.001), "cpu_us_per_record": cpu_s / place.records * 1e6}


def _figures(place: Place, output: str, used: Used, idle: Used) -> Figures:
    if missing := lost(written(place, output), expected(place)):
        raise AssertionError(f"the windows in {output} are not what the input leads to: {missing} records lost")
    return figures(place, used, idle)
