"""`python -m tests.bench.peers.run`: W2 by samzapy, by a hand-written loop and by others, over the same topic, one after the other; `make bench-peers` calls it.

Each peer runs in an environment of its own under `.bench/peers`, which is made at the first run from the package registries. A peer that cannot be
made or run here is left out, and the reason is said. Every update that a peer writes is compared with the model; floats as numbers, since each
writes JSON in its own way. Flink has no side here yet.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path

import orjson

from samzapy.dev.jars import KAFKA_VERSION
from samzapy.dev.java import find_java
from samzapy.dev.spark import pyspark_jars
from tests.bench import throughput, topics
from tests.bench.__main__ import FOLDER, RECORDS, SMALL_RECORDS
from tests.bench.place import Place, broker
from tests.bench.ratios import middle_rate, table
from tests.bench.runs import LIMIT_S, cpu_of
from tests.bench.yardstick import Figures, Side, Sides, measure

HERE = Path(__file__).parent
QUIX, BYTEWAX = ("quixstreams==3.28.1",), ("bytewax==0.21.1", "confluent-kafka==2.12.2")
MAKE_S = 900.0


class Missing(Exception):
    """A peer that cannot be made here; the text says why."""


def main() -> int:
    """Exit code 0; 1: a side gave wrong results."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.peers.run", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", default="", help=f"peers, with commas between them: {', '.join(PEERS)}")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--small", action="store_true", help="a quick look: a tenth of the records")
    parser.add_argument("--dir", type=Path, default=FOLDER)
    given = parser.parse_args()
    names = [name for name in given.only.split(",") if name] or list(PEERS)
    if unknown := [name for name in names if name not in PEERS]:
        parser.error(f"no such peer: {', '.join(unknown)}; there are: {', '.join(PEERS)}")
    (given.dir / "peers").mkdir(parents=True, exist_ok=True)
    runs = Path(tempfile.mkdtemp(prefix="runs-", dir=given.dir))
    try:
        with broker(given.dir) as servers:
            place = Place(servers, given.dir, runs, SMALL_RECORDS if given.small else RECORDS, given.small, _say)
            place.tidy()
            own = throughput.w2(place).sides[:2]
            sides = [*own, *(side for name in names if (side := _side(place, name)) is not None)]
            pairs = [(own[1].name, side.name) for side in sides if side is not own[1]]
            found = measure(Sides(sides, pairs, place.records), given.rounds, _say)
            print("\n".join(table("w2 beside others", found, pairs)))
    except AssertionError as error:
        _say(str(error))
        return 1
    finally:
        shutil.rmtree(runs)
    return 0


def _side(place: Place, name: str) -> Side | None:
    try:
        command = PEERS[name](place.kept / "peers")
    except (Missing, OSError, subprocess.SubprocessError) as error:
        _say(f"{name} is left out: {error}")
        return None
    return Side(name, partial(_run, place, command))


def _run(place: Place, command: Callable[[str, str, str, str], tuple[list[str], dict[str, str]]]) -> Figures:
    given = place.input()
    with place.attempt() as name:
        output, folder = place.output(name), place.runs / name
        arguments, environment = command(place.servers, given, output, str(folder))

        def run() -> None:
            log = folder / "log"
            with log.open("wb") as out:
                done = subprocess.run(
                    arguments, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env={**os.environ, **environment}, timeout=LIMIT_S, check=False, cwd=folder
                )
            if done.returncode:
                raise RuntimeError(f"{arguments[0]} ended with {done.returncode}: {log.read_text(errors='replace')[-2000:]}")

        cpu_s = cpu_of(run)
        times_ms = _checked(place, given, output)
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


# -- the peers: what makes their environment, and gives their command -----------------------------------------------------------------------

Command = Callable[[str, str, str, str], tuple[list[str], dict[str, str]]]


def _python(folder: Path, packages: tuple[str, ...]) -> str:
    """Python with these packages, made once."""
    if not (folder / "made").exists():
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True, timeout=MAKE_S)
        pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages]
        done = subprocess.run(pip, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=MAKE_S, check=False)
        if done.returncode:
            raise Missing(f"{', '.join(packages)} could not be installed: {done.stderr.strip().splitlines()[-1:]}")
        (folder / "made").touch()
    return str(folder / "bin" / "python")


def _quix(guarantee: str, peers: Path) -> Command:
    python = _python(peers / "quix", QUIX)
    return lambda servers, given, output, folder: ([python, str(HERE / "quix_w2.py"), servers, given, output, f"{folder}/state", guarantee], {})


def _bytewax(peers: Path) -> Command:
    python = _python(peers / "bytewax", BYTEWAX)
    return lambda servers, given, output, folder: (
        [python, "-m", "bytewax.run", f"{HERE / 'bytewax_w2.py'}:flow"], {"PEER_SERVERS": servers, "PEER_INPUT": given, "PEER_OUTPUT": output}
    )  # fmt: skip


def _kafka_streams(threads: int, peers: Path) -> Command:
    java = find_java().executable
    libs = peers / f"kafka-streams-{KAFKA_VERSION}"
    if not libs.is_dir():
        work = Path(tempfile.mkdtemp(prefix="fetch-", dir=peers))
        ivy = [str(java), "-cp", f"{pyspark_jars('which bring Ivy')}{os.sep}*", "org.apache.ivy.Main", "-cache", str(work / "cache"), "-confs", "default"]
        ivy += ["-dependency", "org.apache.kafka", "kafka-streams", KAFKA_VERSION, "-retrieve", str(work / "libs" / "[artifact]-[revision].[ext]")]
        done = subprocess.run(ivy, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=MAKE_S, check=False)
        if done.returncode or not list((work / "libs").glob("kafka-streams-*.jar")):
            raise Missing(f"its jars could not be fetched: {done.stdout.strip().splitlines()[-1:]}")
        (work / "libs").rename(libs)
        shutil.rmtree(work, ignore_errors=True)
    compiler = subprocess.run([str(java), "--list-modules"], capture_output=True, text=True, timeout=MAKE_S, check=True).stdout
    if "jdk.compiler" not in compiler:
        raise Missing(f"{java} has no compiler: a JDK is needed, a JRE is not enough")
    source = str(HERE / "KafkaStreamsW2.java")
    return lambda servers, given, output, folder: (
        [str(java), "-cp", f"{libs}{os.sep}*", source, servers, given, output, f"{folder}/state", str(threads)], {}
    )  # fmt: skip


PEERS: dict[str, Callable[[Path], Command]] = {
    "quix": partial(_quix, "exactly-once"),
    "bytewax": _bytewax,
    "kafka_streams": partial(_kafka_streams, 1),
}


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
