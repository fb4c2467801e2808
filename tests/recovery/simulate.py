"""Run simulated histories and judge them: `python -m tests.recovery.simulate --seeds A-B [--resume FILE] [--jobs N] [--programs] | --one SEED [-v]`.

A seed is a whole life of a job, some minutes of virtual time; see `sim_plan` for what happens in it and `sim_judge` for what is demanded
of it. The job of one seed in three is a program of streams (`sim_program`); of all of them with --programs. The same seed is the same history,
everywhere. The exit code is 1 if a seed failed, or if the run covered too little to prove anything.
"""

from __future__ import annotations

import argparse
import gc
import hashlib
import json
import logging
import multiprocessing
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from tests.random_programs import drawn
from tests.recovery.sim_counting import OF_TASKS, REQUIRED, Totals
from tests.recovery.sim_plan import plan_of
from tests.recovery.sim_story import Story
from tests.simulation.baton import Stuck

TELL_EVERY_S = 30.0
ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class Result:
    """What came of a seed. `findings`: none if all is well. `seconds`: of virtual time."""

    seed: int
    findings: tuple[str, ...]
    counts: Counter[str]
    fingerprint: str
    seconds: float

    def __str__(self) -> str:
        return "\n".join([f"seed {self.seed}: {len(self.findings)} findings", *(f"  {f}" for f in self.findings[:8])])


def run_seed(seed: int, trace: Callable[[str], None] | None = None, program: bool | None = None) -> Result:
    """One history, judged. `program`: whether its job is a program of streams; None: as the seed says."""
    logging.disable(logging.CRITICAL if trace is None else logging.NOTSET)
    try:
        story = Story(plan_of(seed, program), trace)
        sim, stage = story.sim, story.stage
        with sim:
            try:
                story.tell()
            except Stuck as stuck:
                sim.problem(str(stuck))
            fingerprint = sim.fingerprint()
            findings = [*sim.problems, *(f"{name}: {type(e).__name__}: {e}" for name, e in sim.baton.errors)]
            findings += story.judge(not stage.truncated and not findings)
    finally:
        logging.disable(logging.NOTSET)
    counts = Counter(story.coverage.counts)
    counts["exactly once" if story.plan.job["exactly_once"] else "at least once"] += 1
    counts["virtual seconds"] += round(sim.baton.now)
    counts["incarnations"] += sum(len(d.containers) for d in sim.drivers)
    counts["with a program" if story.plan.program else "with a task"] += 1
    if story.plan.second_from is not None:
        counts["with a second input"] += 1
    if not counts["struck in commit"]:
        counts["without a fault in a commit"] += 1
    return Result(seed, tuple(findings), counts, fingerprint, sim.baton.now)


def collect_rarely() -> None:
    """Garbage: a history makes many objects and little garbage in circles; looking for it took a sixth of the time."""
    gc.set_threshold(100_000, 20, 20)


def run_seeds(seeds: Iterable[int], jobs: int = 1, program: bool | None = None) -> Iterator[Result]:
    """Results as they come; with several jobs in processes of their own."""
    if jobs == 1:
        collect_rarely()
        yield from (run_seed(seed, program=program) for seed in seeds)
        return
    with multiprocessing.get_context("spawn").Pool(jobs, collect_rarely) as pool:
        yield from pool.imap_unordered(partial(run_seed, program=program), seeds, chunksize=4)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.recovery.simulate", description="Run simulated histories and judge them.")
    parser.add_argument("--seeds", default="0-499", help="from-to, both included")
    parser.add_argument("--resume", type=Path, help="keep results in this file, and do not run again what it has")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--one", type=int, help="run this seed alone")
    parser.add_argument("--programs", action="store_true", help="every seed's job is a program of streams, not one in three")
    parser.add_argument("-v", action="store_true", help="with --one: tell every request, log line and event")
    options = parser.parse_args(arguments)
    program = True if options.programs else None
    if options.one is not None:
        return _one(options.one, options.v, program)
    first, _, last = options.seeds.partition("-")
    return _many(range(int(first), int(last or first) + 1), options.resume, options.jobs, program)


def _one(seed: int, verbose: bool, program: bool | None) -> int:
    plan = plan_of(seed, program)
    print(plan, *([drawn(seed, placed=False)] if plan.program else []), sep="\n")
    if verbose:
        logging.basicConfig(format="    %(levelname)s %(message)s", level=logging.INFO, stream=sys.stdout)
    result = run_seed(seed, print if verbose else None, program)
    print(result, f"\nfingerprint {result.fingerprint}, {result.seconds:.0f} s; {dict(sorted(result.counts.items()))}")
    return 1 if result.findings else 0


def _many(seeds: range, file: Path | None, jobs: int, program: bool | None) -> int:
    code = code_digest()
    done = _read(file, code)
    totals, failed = Totals(), 0
    for seed in (s for s in seeds if s in done):
        totals.add(Counter(done[seed]["counts"]))
        failed += bool(done[seed]["findings"])
    started = told = time.monotonic()
    ran = 0
    for result in run_seeds([s for s in seeds if s not in done], jobs, program):
        ran += 1
        totals.add(result.counts)
        if file is not None:
            _append(file, result, code)
        if result.findings:
            failed += 1
            print(result, flush=True)
        if time.monotonic() - told > TELL_EVERY_S:
            told = time.monotonic()
            print(f"{totals.seeds} of {len(seeds)} seeds, {failed} failed, {ran / (told - started):.1f} a second", flush=True)
    seconds = time.monotonic() - started
    print("\n".join(totals.lines()))
    missing = totals.missing([what for what in REQUIRED if program is None or what not in OF_TASKS])
    print(f"{totals.in_seeds['with a program']} of {totals.seeds} seeds had a program of streams, {totals.in_seeds['with a task']} a task")
    print(f"{totals.seeds} seeds, {failed} failed; {ran} run now in {seconds:.0f} s, {ran / max(seconds, 0.001):.1f} a second")
    if missing:
        print(f"INVALID: in too few seeds: {', '.join(missing)}")
    return 1 if failed or missing else 0


def code_digest() -> str:
    """Of samzapy and of the simulation: results of other code are no results."""
    digest = hashlib.sha256()
    for folder in (ROOT / "samzapy", ROOT / "tests" / "recovery"):
        for file in sorted(folder.rglob("*.py")):
            digest.update(f"{file.relative_to(ROOT)} {file.stat().st_size} ".encode() + file.read_bytes())
    return digest.hexdigest()[:16]


def _read(file: Path | None, code: str) -> dict[int, dict[str, Any]]:
    if file is None or not file.exists():
        return {}
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    return {row["seed"]: row for row in rows if row["code"] == code}


def _append(file: Path, result: Result, code: str) -> None:
    row = {"code": code, "seed": result.seed, "fingerprint": result.fingerprint, "counts": result.counts, "findings": result.findings}
    with file.open("a") as out:
        out.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
