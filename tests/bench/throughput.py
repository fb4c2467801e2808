"""W1 and W2: a million records through a loop and through a job, and back to back the same through two processes of each.

The rate is that of the input's records over the middle 80 % of the outputs, by the broker's clock, so that the start of processes does
not count. The processor time is that of all processes of a side, less that of the same run over an empty topic.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

from tests.bench import topics
from tests.bench.place import PARTITIONS, Place, expected
from tests.bench.ratios import middle_rate
from tests.bench.runs import LIMIT_S, LOCAL, Loop, cpu_of, cpu_of_children_s, live_job, run_job, run_loops
from tests.bench.yardstick import Figures, Side, Sides
from tests.broker import create_topic
from tests.integration.processes import until

DISTURBED = 0.2  # a w1 loop below this part of a consume loop: something else had the machine
TRIES = 3
LAST_S = 5.0
W2_STORES = {"json state": {"key": "bytes", "value": "json"}}  # by the name of the variant
TYPED = "record:tests.bench.tasks:{}"
SERDES = {  # of what a task reads and sends, where it is not JSON
    **{name: (TYPED.format("View"), TYPED.format("Update")) for name in ("CountAndSumTyped", "CountAndSumTypedBatches")},
    "ProjectTypedBatches": (TYPED.format("View"), TYPED.format("Cheap")),
}
SPARK = ("--master", "local[1]")
Model = Callable[[str, str], topics.Contents]
Settings = dict[str, Any]


def w1(place: Place) -> Sides:
    """Filter and project, without state."""
    sides = [
        Side("loop", partial(_undisturbed_loop, place)),
        Side("exactly_once", partial(_job, place, "Project", topics.projected, {"commit": {"guarantee": "exactly_once"}})),
        Side("process_batch", partial(_job, place, "ProjectBatches", topics.projected, {"commit": {"guarantee": "exactly_once"}})),
        Side("typed, process_batch", partial(_job, place, "ProjectTypedBatches", topics.projected, {"commit": {"guarantee": "exactly_once"}})),
        Side("at_least_once", partial(_job, place, "Project", topics.projected, {"commit": {"guarantee": "at_least_once"}})),
    ]
    return Sides(sides, [*((side.name, "loop") for side in sides[1:]), ("exactly_once", "at_least_once")], place.records)


def w2(place: Place) -> Sides:
    """Count and sum of each user, an update for each record."""
    sides = [Side("loop", partial(_loops, place, "w2", topics.counted, 1))]
    for name, store in W2_STORES.items():
        sides.append(Side(name, partial(_job, place, "CountAndSum", topics.counted, {"stores": {"sums": store}})))
        batches = partial(_job, place, "CountAndSumBatches", topics.counted, {"stores": {"sums": store}})
        sides.append(Side(f"{name}, process_batch", batches))
    typed = {"stores": {"sums": {"key": "bytes", "value": TYPED.format("Totals")}}}
    sides.append(Side("typed", partial(_job, place, "CountAndSumTyped", topics.counted, typed)))
    sides.append(Side("typed, process_batch", partial(_job, place, "CountAndSumTypedBatches", topics.counted, typed)))
    return Sides(sides, [(side.name, "loop") for side in sides[1:]], place.records)


def in_two_containers(place: Place) -> Side:
    """W2 with JSON state in two containers."""
    two = {"stores": {"sums": W2_STORES["json state"]}, "containers": {"count": 2}}
    return Side("json state, two containers", partial(_job, place, "CountAndSum", topics.counted, two))


def memory(place: Place) -> Sides:
    """What a container takes after W2 over the records of the other yardsticks, and over ten times as many: the most of the last five seconds."""
    more = replace(place, records=10 * place.records)
    sides = [Side(f"{given.records:,} records", partial(_memory, given)) for given in (place, more)]
    return Sides(sides, [(sides[1].name, sides[0].name)], place.records)


def w2_spark(place: Place) -> Sides:
    """W2 with the container on Spark. No processor time: Spark's JVM is no child that can be counted."""
    stores = {"stores": {"sums": W2_STORES["json state"]}}
    sides = [
        Side("local", partial(_job, place, "CountAndSum", topics.counted, stores)),
        Side("spark", partial(_job, place, "CountAndSum", topics.counted, stores, SPARK)),
    ]
    return Sides(sides, [("spark", "local")], place.records)


def w2_two(place: Place) -> Sides:
    """W2 in two containers beside two loops, and each beside one."""
    stores = {"stores": {"sums": W2_STORES["json state"]}}
    sides = [
        Side("1 loop", partial(_loops, place, "w2", topics.counted, 1)),
        Side("2 loops", partial(_loops, place, "w2", topics.counted, 2)),
        Side("1 container", partial(_job, place, "CountAndSum", topics.counted, stores)),
        Side("2 containers", partial(_job, place, "CountAndSum", topics.counted, stores | {"containers": {"count": 2}})),
    ]
    return Sides(sides, [("2 containers", "2 loops"), ("2 containers", "1 container"), ("2 loops", "1 loop")], place.records)


# -- one run of a side ---------------------------------------------------------------------------------------------------------------


def _loops(place: Place, mode: str, model: Model, count: int) -> Figures:
    given = place.halves() if count == 2 else (place.input(),)
    idle_cpu_s = count * _idle_loop_cpu_s(place, mode)
    with place.attempt() as name:
        loops = [loop_of(place, mode, topic, f"{name}-{number}") for number, topic in enumerate(given)]
        cpu_s = cpu_of(lambda: run_loops(*loops))
        return _figures(place, model, [loop.output for loop in loops], cpu_s - idle_cpu_s)


def _undisturbed_loop(place: Place) -> Figures:
    """The w1 loop, again when it was far slower than reading alone."""
    idle_cpu_s = _idle_loop_cpu_s(place, "w1")
    for _ in range(TRIES):
        reading = run_loops(Loop(place.servers, "consume", place.input()))[0]
        before = cpu_of_children_s()
        with place.attempt() as name:
            loop = loop_of(place, "w1", place.input(), name)
            answer = run_loops(loop)[0]
            if answer["per_second"] >= DISTURBED * reading["per_second"]:
                return _figures(place, topics.projected, [loop.output], cpu_of_children_s() - before - idle_cpu_s)
        place.say(f"  disturbed: w1 {answer['per_second']:,}/s, consume alone {reading['per_second']:,}/s; again")
    raise RuntimeError(f"disturbed {TRIES} times: this machine is too busy to measure on")


def loop_of(place: Place, mode: str, given: str, name: str) -> Loop:
    """With its topics. The database, where there is one, goes with the run's folder."""
    output, folder = place.output(name), ""
    if mode == "w2":
        create_topic(place.servers, f"{output}-changelog", PARTITIONS, cleanup_policy="compact")
        folder = str(place.runs / f"{name}-db")
    return Loop(place.servers, mode, given, output, folder)


def _job(place: Place, task: str, model: Model, more: Settings, options: tuple[str, ...] = LOCAL) -> Figures:
    is_cpu_known = options == LOCAL
    idle_cpu_s = _idle_job_cpu_s(place, task, json.dumps(more)) if is_cpu_known else 0.0
    with place.attempt() as name:
        job = write_job(place, name, task, place.input(), more)
        cpu_s = cpu_of(lambda: run_job(job, *options))
        return _figures(place, model, [f"{name}-out"], cpu_s - idle_cpu_s if is_cpu_known else None)


def write_job(place: Place, name: str, task: str, given: str, more: Settings) -> Path:
    output, (read, sent) = place.output(name), SERDES.get(task, ("json", "json"))
    inputs = [{"topic": given, "key": "bytes", "value": read}]
    return place.job_file(
        place.runs / name, task, inputs, params={"out": output}, outputs=[{"topic": output, "key": "bytes", "value": sent}], **more
    )


def checked(place: Place, model: Model, written: list[str]) -> topics.Outputs:
    """What was written, once it is found to be what it must be.

    Raises:
        AssertionError: a record is missing, doubled, wrong or out of order.
    """
    found = topics.outputs(place.servers, written)
    wanted = expected(model, place.servers, place.input())
    if found.contents != wanted:
        raise AssertionError(f"the outputs in {', '.join(written)} are not what the input leads to: {found.contents}, expected {wanted}")
    return found


def _figures(place: Place, model: Model, written: list[str], cpu_s: float | None) -> Figures:
    rate = {"records_per_s": middle_rate(checked(place, model, written).times_ms, place.records)}
    return rate if cpu_s is None else rate | {"cpu_us_per_record": cpu_s / place.records * 1e6}


@cache
def _idle_loop_cpu_s(place: Place, mode: str) -> float:
    with place.attempt() as name:
        loop = loop_of(place, mode, place.empty(), name)
        return cpu_of(lambda: run_loops(loop))


@cache
def _idle_job_cpu_s(place: Place, task: str, settings: str) -> float:
    with place.attempt() as name:
        job = write_job(place, name, task, place.empty(), json.loads(settings))
        return cpu_of(lambda: run_job(job))


def _memory(place: Place) -> Figures:
    with place.attempt() as name:
        job = write_job(place, name, "CountAndSum", place.input(), {"stores": {"sums": W2_STORES["json state"]}})
        with live_job(job) as live:
            live.running()

            def has_read_all() -> bool:
                told = live.status()
                return told is not None and place.records == sum(task["processed"] for task in told["tasks"])

            until(has_read_all, "all records are processed", LIMIT_S)
            most, ends = 0, time.monotonic() + LAST_S
            while time.monotonic() < ends:
                told = live.status()
                most = max(most, told["containers"][0]["memory_bytes"] if told else 0)
                threading.Event().wait(LAST_S / 20)
    return {"memory_mib": most / 2**20}
