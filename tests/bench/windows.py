"""W3: how often each page was seen in each ten seconds of event time, final results, without a record lost.

The input's records are in order of time, but for a twentieth of a second, and a window is written when time has passed its end. So the broker's
times of the windows say how quickly records were read: the rate is that over the middle 80 % of them, as in the other yardsticks. The processor
time is that of the whole run, less that of a run over an empty topic in the same round.

The input has the users as keys, so a program has to bring the records of a page together in an internal topic; a loop of one process has all
of them anyway. Beside that the same over an input whose keys are the pages: there neither side has to.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial

import orjson

from tests.bench import topics
from tests.bench.place import FOR_EVER, PARTITIONS, Place
from tests.bench.programs import GIVEN, OUTPUT
from tests.bench.ratios import middle_rate
from tests.bench.runs import cpu_of, run_job, run_loops
from tests.bench.throughput import TRIES, loop_of
from tests.bench.yardstick import Figures, Side, Sides
from tests.broker import create_topic

WINDOW_MS = 10_000
Counts = Mapping[tuple[str, int], int]  # by page and start


@dataclass(frozen=True)
class Windows:
    """What a run wrote, and when the broker wrote it (milliseconds)."""

    counts: Counts
    times_ms: list[int]


Run = tuple[float, Windows]  # seconds of processor time


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
    return _all_there(*less_idle(place, by_page(place) if is_keyed else place.input(), partial(_loop_over, place)), place)


def in_two_containers(place: Place) -> Side:
    """The program that brings the pages together, in two containers: beside what has two threads."""
    return Side("by page, 2 containers", partial(_program, place, "by_page", False, 2))


def _program(place: Place, program: str, is_keyed: bool, containers: int = 1) -> Figures:
    return _all_there(*less_idle(place, by_page(place) if is_keyed else place.input(), partial(_program_over, place, program, containers)), place)


def _all_there(figures: Figures, found: Counts, place: Place) -> Figures:
    if missing := lost(found, expected(place)):
        raise AssertionError(f"the windows are not what the input leads to: {missing} records lost")
    return figures


def less_idle(place: Place, given: str, run: Callable[[str], Run]) -> tuple[Figures, Counts]:
    """The figures of a run over `given` and its windows. The processor time is less that of a run over an empty topic.

    Args:
        run: over a topic, to its end.

    Raises:
        RuntimeError: the run over an empty topic took more processor time each time.
    """
    for _ in range(TRIES):
        idle_cpu_s, _ = run(place.empty())
        cpu_s, windows = run(given)
        if cpu_s > idle_cpu_s:
            rate = middle_rate(windows.times_ms, place.records)
            return {"records_per_s": rate, "cpu_us_per_record": (cpu_s - idle_cpu_s) / place.records * 1e6}, windows.counts
        place.say(f"  disturbed: {cpu_s:.1f} s of processor time over the records, {idle_cpu_s:.1f} s over an empty topic; again")
    raise RuntimeError(f"disturbed {TRIES} times: this machine is too busy to measure on")


def _loop_over(place: Place, given: str) -> Run:
    with place.attempt() as name:
        loop = loop_of(place, "w3", given, name)
        return cpu_of(lambda: run_loops(loop)), written(place, loop.output)


def _program_over(place: Place, program: str, containers: int, given: str) -> Run:
    with place.attempt() as name:
        return _run(place, name, program, containers, given), written(place, f"{name}-out")


def _run(place: Place, name: str, program: str, containers: int, given: str) -> float:
    """The program over the input, up to its end: seconds of processor time."""
    output, folder = place.output(name), place.runs / name
    document = {
        "job": name, "app": f"tests.bench.programs:{program}", "kafka": {"bootstrap.servers": place.servers}, "containers": {"count": containers},
        "state": {"dir": str(folder / "state")},
    }  # fmt: skip
    path = folder / "job.yaml"
    path.write_text(json.dumps(document, indent=1))
    return cpu_of(lambda: run_job(path, env={GIVEN: given, OUTPUT: output}))


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


def written(place: Place, output: str) -> Windows:
    """The windows in a topic.

    Raises:
        AssertionError: a window came twice.
    """
    found: dict[tuple[str, int], int] = {}
    times_ms = []
    for batch in topics.read(place.servers, [output]):
        for message in batch:
            record = orjson.loads(message.value())
            where = record["page"], record["start"]
            if where in found:
                raise AssertionError(f"{output}: {where} came twice: {found[where]}, then {record['count']}")
            found[where] = record["count"]
            times_ms.append(message.timestamp()[1])
    return Windows(found, times_ms)


def lost(found: Counts, wanted: Counts) -> int:
    """How many records are in no window that was written.

    Raises:
        AssertionError: a window has more records than the input has for it.
    """
    for where, count in found.items():
        if count > wanted.get(where, 0):
            raise AssertionError(f"{where} has {count} records, the input has {wanted.get(where, 0)}")
    return sum(wanted.values()) - sum(found.values())
