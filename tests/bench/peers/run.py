"""`python -m tests.bench.peers.run`: W2, W3, latency and restore by samzapy, a hand-written loop and others, one after the other (`make bench-peers`).

A peer that cannot be made or run here is left out, and the reason is said. Every update of W2 that a peer writes is compared with the model; floats
as numbers, since each writes JSON in its own way. No window of W3 may have a record too many; how many records a peer lost is a figure.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from functools import cache, partial
from pathlib import Path

import orjson

from tests.bench import live, state, throughput, topics, windows
from tests.bench.__main__ import FOLDER, RECORDS, SMALL_RECORDS
from tests.bench.peers.made import PEERS, Command, Missing
from tests.bench.place import PARTITIONS, Place, broker
from tests.bench.ratios import middle_rate, table
from tests.bench.runs import LIMIT_S, cpu_of
from tests.bench.yardstick import Figures, Side, Sides, measure
from tests.broker import create_topic

LATENCY_SECONDS, LATENCY_WARM_UP_S = 40.0, 15.0  # a JVM compiles its code meanwhile

ALL = sorted({name for peers in PEERS.values() for name in peers})


def main() -> int:
    """Exit code 0; 1: a side gave wrong results."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.peers.run", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", default="", help=f"peers, with commas between them: {', '.join(ALL)}")
    parser.add_argument("--bench", default="", help=f"benchmarks, with commas between them: {', '.join(PEERS)}")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--records", type=int, default=RECORDS, help="of the inputs; with more the start of a run and what disturbs it weigh less")
    parser.add_argument("--small", action="store_true", help="a quick look: a tenth of the records")
    parser.add_argument("--dir", type=Path, default=FOLDER)
    given = parser.parse_args()
    names = [name for name in given.only.split(",") if name] or ALL
    benches = [name for name in given.bench.split(",") if name] or list(PEERS)
    if unknown := [name for name in names if name not in ALL]:
        parser.error(f"no such peer: {', '.join(unknown)}; there are: {', '.join(ALL)}")
    if unknown := [name for name in benches if name not in PEERS]:
        parser.error(f"no such benchmark: {', '.join(unknown)}; there are: {', '.join(PEERS)}")
    (given.dir / "peers").mkdir(parents=True, exist_ok=True)
    runs = Path(tempfile.mkdtemp(prefix="runs-", dir=given.dir))
    try:
        with broker(given.dir) as servers:
            place = Place(servers, given.dir, runs, SMALL_RECORDS if given.small else given.records, given.small, _say)
            place.tidy()
            for bench in benches:
                loops, own = _own(place, bench)
                peers = [side for name in names if name in PEERS[bench] and (side := _side(place, bench, name)) is not None]
                sides = [*loops, *own, *peers]
                pairs = [(mine.name, side.name) for mine in own for side in (*loops, *peers)]
                found = measure(Sides(sides, pairs, place.records), given.rounds, _say)
                print("\n".join(table(f"{bench} beside others", found, pairs)), flush=True)
    except AssertionError as error:
        _say(str(error))
        return 1
    finally:
        shutil.rmtree(runs)
    return 0


def _own(place: Place, bench: str) -> tuple[list[Side], list[Side]]:
    """The hand-written loop, if there is one, and samzapy's sides."""
    if bench == "w2":
        w2 = throughput.w2(place).sides
        return w2[:1], [w2[1], throughput.in_two_containers(place)]
    if bench == "w3":
        w3 = windows.w3(place).sides
        return w3[:1], [w3[1], windows.in_two_containers(place)]
    if bench == "restore":
        restore = state.restore(place).sides
        return restore[:1], restore[1:]
    return [], [live.exactly_once(place, LATENCY_SECONDS, LATENCY_WARM_UP_S)]


def _side(place: Place, bench: str, name: str) -> Side | None:
    """None: it cannot be made, or it fails over an empty topic."""
    try:
        command = PEERS[bench][name](place.kept / "peers")
        if bench == "w3":
            _windowed(place, command, place.empty())
    except (Missing, OSError, RuntimeError, subprocess.SubprocessError) as error:
        _say(f"{name} is left out of {bench}: {error}")
        return None
    return Side(name, partial({"w2": _updates, "w3": _windows, "latency": _latency, "restore": _restore}[bench], place, command))


def _run(place: Place, command: Command, given: str, name: str) -> None:
    folder = place.runs / name
    arguments, environment = command(place.servers, given, place.output(name), str(folder))
    log = folder / "log"
    with log.open("wb") as out:
        done = subprocess.run(
            arguments, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env={**os.environ, **environment}, timeout=LIMIT_S, check=False, cwd=folder
        )
    if done.returncode:
        raise RuntimeError(f"{arguments[0]} ended with {done.returncode}: {log.read_text(errors='replace')[-2000:]}")


def _latency(place: Place, command: Command) -> Figures:
    """Of a peer that runs until it is ended. Its start is in the warm-up."""
    with place.attempt() as name:
        given, output = create_topic(place.servers, f"{name}-in", PARTITIONS), place.output(name)
        arguments, environment = command(place.servers, given, output, str(place.runs / name))
        with (place.runs / name / "log").open("wb") as out:
            process = subprocess.Popen(arguments, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env={**os.environ, **environment})
        try:
            with live.feeding(place, given, output, live.RATE, LATENCY_SECONDS) as updates:
                return live.latencies(list(updates), int(live.RATE * LATENCY_SECONDS), LATENCY_WARM_UP_S)
        finally:
            process.terminate()
            process.wait(LIMIT_S)


def _restore(place: Place, command: Command) -> Figures:
    """Of a store with the same keys and values as samzapy's, from a changelog that is made for this run: its name comes from the run's."""
    keys = state.restored_keys(place)
    with place.attempt() as name:
        changelog = create_topic(place.servers, f"{name}-out-kept-changelog", PARTITIONS, cleanup_policy="compact")
        state.fill(place, changelog, keys)
        _run(place, command, place.empty(), name)
        said = orjson.loads((place.runs / name / "log").read_text().strip().splitlines()[-1])
    if said["records"] < keys or said["keys"] != keys:
        raise AssertionError(f"{keys} keys were to be restored from {changelog}: {said}")
    return {"seconds": said["seconds"]}


def _windows(place: Place, command: Command) -> Figures:
    """W3."""
    figures, found = windows.less_idle(place, place.input(), partial(_windowed, place, command))
    return {**figures, "lost_records": windows.lost(found, windows.expected(place))}


def _windowed(place: Place, command: Command, given: str) -> windows.Run:
    with place.attempt() as name:
        return cpu_of(lambda: _run(place, command, given, name)), windows.written(place, f"{name}-out")


def _updates(place: Place, command: Command) -> Figures:
    """W2."""
    given = place.input()
    with place.attempt() as name:
        cpu_s = cpu_of(lambda: _run(place, command, given, name))
        times_ms = _checked(place, given, f"{name}-out")
        return {"records_per_s": middle_rate(times_ms, place.records), "cpu_us_per_record": cpu_s / place.records * 1e6}


def _checked(place: Place, given: str, output: str) -> list[int]:
    """When the updates were written, once each is found to be there, once."""
    wanted, times_ms, seen = _expected(place.servers, given), [], set()
    for batch in topics.read(place.servers, [output]):
        for message in batch:
            update = orjson.loads(message.value())
            where = update["user"], update["c"]
            total = wanted.get(where)
            if total is None or abs(total - update["s"]) > 1e-6 or where in seen:
                raise AssertionError(f"{output}: {update} is wrong or came twice; its sum is {total}")
            seen.add(where)
            times_ms.append(message.timestamp()[1])
    if len(seen) != len(wanted):
        raise AssertionError(f"{output}: {len(wanted) - len(seen)} updates are missing")
    return times_ms


@cache
def _expected(servers: str, given: str) -> dict[tuple[str, int], float]:
    """By user and count, the sum. All records of a user are in one partition, in order."""
    found: dict[tuple[str, int], float] = {}
    totals: dict[str, tuple[int, float]] = {}
    for batch in topics.read(servers, [given]):
        for message in batch:
            record = orjson.loads(message.value())
            count, total = totals.get(record["user"], (0, 0.0))
            totals[record["user"]] = count + 1, total + record["amount"]
            found[record["user"], count + 1] = total + record["amount"]
    return found


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
