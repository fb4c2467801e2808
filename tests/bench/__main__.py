"""`python -m tests.bench run|check|record`; `make bench` and `make bench-check` call it."""

from __future__ import annotations

import argparse
import contextlib
import json
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.bench import bad_records, live, standby, state, throughput, windows
from tests.bench.machine import described
from tests.bench.place import ROOT, Place, broker
from tests.bench.ratios import NOISE, compared, differences, medians, ratios, table, with_recorded
from tests.bench.yardstick import Sides, measure

YARDSTICKS: Mapping[str, Callable[[Place], Sides]] = {
    "w1": throughput.w1,
    "w2": throughput.w2,
    "w2_two": throughput.w2_two,
    "w2_spark": throughput.w2_spark,
    "memory": throughput.memory,
    "w3": windows.w3,
    "restore": state.restore,
    "start": state.start,
    "commits": state.commits,
    "latency": live.latency,
    "recovery": live.recovery,
    "standby": standby.standby,
    "bad_records": bad_records.yardstick,
}
FOLDER = ROOT / ".bench"
RECORDED = Path(__file__).parent / "recorded.json"
RECORDS, SMALL_RECORDS = 1_000_000, 100_000


def main(arguments: list[str] | None = None) -> int:
    """Exit code 0; 1 when a ratio is outside the noise band, or a yardstick failed; 2 for usage."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    running = commands.add_parser("run", help="measure, print tables, write JSON")
    running.add_argument("--only", default="", help=f"yardsticks, with commas between them: {', '.join(YARDSTICKS)}")
    running.add_argument("--rounds", type=int, default=5)
    running.add_argument("--records", type=int, default=RECORDS, help="of the inputs; with more the start of a run and what disturbs it weigh less")
    running.add_argument("--small", action="store_true", help="a quick look: a tenth of the records")
    running.add_argument("--dir", type=Path, default=FOLDER, help="broker, inputs and built state; kept for the next run")
    running.add_argument("--kafka", default="", help="bootstrap servers of a broker that runs; without: one is started in --dir")
    for name, what in (("check", "compare with the recorded ratios"), ("record", "put ratios into the recorded ones")):
        looking = commands.add_parser(name, help=what)
        looking.add_argument("result", type=Path, nargs="?", help="a result file; the newest by default")
        looking.add_argument("--dir", type=Path, default=FOLDER)
        looking.add_argument("--recorded", type=Path, default=RECORDED)
        if name == "record":
            looking.add_argument("--figures", default="", help="only these, with commas between them, e.g. cpu_us_per_record")
    given = parser.parse_args(arguments)
    return {"run": _run, "check": _check, "record": _record}[given.command](given)


def _run(given: argparse.Namespace) -> int:
    names = [name for name in given.only.split(",") if name] or list(YARDSTICKS)
    unknown = [name for name in names if name not in YARDSTICKS]
    if unknown or given.rounds < 1:
        print(
            f"no such yardstick: {', '.join(unknown)}; there are: {', '.join(YARDSTICKS)}" if unknown else "ROUNDS: at least 1",
            file=sys.stderr,
        )
        return 2
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the broker is stopped
    (given.dir / "results").mkdir(parents=True, exist_ok=True)
    runs = Path(tempfile.mkdtemp(prefix="runs-", dir=given.dir))
    started = datetime.now(UTC)
    path = given.dir / "results" / f"{started:%Y-%m-%dT%H-%M-%S}.json"
    result: dict[str, Any] = {"started": started.isoformat(timespec="seconds"), "small": given.small, **described(), "yardsticks": {}}
    failed = []
    try:
        with _servers(given) as servers:
            place = Place(servers, given.dir, runs, SMALL_RECORDS if given.small else given.records, given.small, _say)
            place.tidy()
            for name in names:
                began = time.monotonic()
                _say(f"{name}: {(YARDSTICKS[name].__doc__ or '').splitlines()[0]}")
                try:
                    sides = YARDSTICKS[name](place)
                    rounds = measure(sides, given.rounds, _say)
                except (AssertionError, RuntimeError, ValueError) as error:
                    _say(f"{name} failed: {error}")
                    failed.append(name)
                    continue
                finally:
                    place.tidy()
                result["yardsticks"][name] = {
                    "records": sides.records, "seconds": round(time.monotonic() - began), "rounds": rounds, "medians": medians(rounds),
                    "ratios": ratios(rounds, sides.pairs),
                }  # fmt: skip
                path.write_text(json.dumps(result, indent=1) + "\n")
                print("\n".join(table(name, rounds, sides.pairs)), flush=True)
    finally:
        shutil.rmtree(runs)
    _say(f"results: {path}" if result["yardsticks"] else "nothing was measured")
    return 1 if failed else 0


def _servers(given: argparse.Namespace) -> contextlib.AbstractContextManager[str]:
    return contextlib.nullcontext(given.kafka) if given.kafka else broker(given.dir)


def _check(given: argparse.Namespace) -> int:
    path, result = _result(given)
    recorded = json.loads(given.recorded.read_text())
    found = differences(recorded, result)
    print(f"{path.name} ({result['commit']}) beside what was recorded at {recorded['commit']} on {recorded['machine']['processor']}")
    for line in found:
        print(f"  {line}")
    count = compared(recorded, result)
    print(f"{count} ratios compared, {len(found)} outside the noise" if count or found else "nothing in it is recorded")
    return 1 if found or not count else 0


def _record(given: argparse.Namespace) -> int:
    _, result = _result(given)
    recorded = json.loads(given.recorded.read_text()) if given.recorded.exists() else {"noise": NOISE, "yardsticks": {}}
    updated = with_recorded(recorded, result, [figure for figure in given.figures.split(",") if figure])
    given.recorded.write_text(json.dumps(updated, indent=1) + "\n")
    print(f"{given.recorded}: {', '.join(result['yardsticks'])}")
    return 0


def _result(given: argparse.Namespace) -> tuple[Path, dict[str, Any]]:
    found = [given.result] if given.result else sorted((given.dir / "results").glob("*.json"))
    if not found:
        raise SystemExit(f"no results in {given.dir / 'results'}: run `make bench` first")
    return found[-1], json.loads(found[-1].read_text())


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
