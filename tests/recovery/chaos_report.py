"""What a chaos run showed: one table of faults, what is wrong, and whether the run was long and hard enough to prove anything.

Three ends: CLEAN; NOT CLEAN, something is wrong; INVALID, nothing is wrong and too little was tried. `demands` is what a run of thirty minutes
must have met, in proportion to its minutes.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from tests.recovery.chaos import KILLS, LOCAL, OF_DRIVERS, OF_SPARK, SPARK
from tests.recovery.faults import Fault
from tests.recovery.phases import BUSY, IN_COMMIT
from tests.recovery.report import Report, columns, p95, seconds, summed
from tests.recovery.said import FENCED, IN_DOUBT, SUPERSEDED, Said
from tests.recovery.scenario import KILL_CONTAINER
from tests.recovery.watch import Restore

FULL_MINUTES = 30.0
HEADER = ("#", "at s", "part", "job", "fault", "target", "tasks", "met", "all run s", "committed s", "note")
CLEAN, NOT_CLEAN, INVALID = "CLEAN", "NOT CLEAN", "INVALID"
EXIT_CODES = {CLEAN: 0, NOT_CLEAN: 1, INVALID: 2}
LAG_S = 60.0


@dataclass(frozen=True, slots=True)
class Demands:
    """What a run must have met. `busy`: the share of kills that met a process at work; 0 where that cannot be seen."""

    kills: int
    others: int
    busy: float
    in_commit: int
    spark_kills: int
    spark_kinds: tuple[str, ...]
    rate: float
    found_out: int  # containers that were in doubt, fenced or superseded


def demands(minutes: float, rate: float, spark: bool, exactly_once: bool) -> Demands:
    """In proportion to the minutes; the kinds on Spark once the run is long enough for all of them."""
    share = min(1.0, minutes / FULL_MINUTES)
    kinds = (*OF_DRIVERS, *OF_SPARK) if spark and minutes >= FULL_MINUTES / 3 else ()
    return Demands(
        math.ceil(100 * share), math.ceil(40 * share), 0.8 if exactly_once else 0.0, math.ceil(5 * share),
        math.ceil(20 * share) if spark else 0, kinds, 0.97 * rate, math.ceil(3 * share),
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Struck:
    """A fault in the table: of which job, and what it met."""

    job: str
    fault: Fault
    met: str

    @property
    def is_kill(self) -> bool:
        return self.fault.kind in KILLS


def shortfalls(struck: Sequence[Struck], records: int, load_s: float, codes: Mapping[str, int], asked: Demands) -> list[str]:
    """What the run lacks to prove something, a sentence each."""
    kills = [s for s in struck if s.is_kill]
    busy = sum(s.met in BUSY for s in kills)
    on_spark = Counter(s.fault.kind for s in struck if s.fault.part == SPARK)
    told = sum(codes.get(c, 0) for c in (IN_DOUBT, FENCED, SUPERSEDED))
    rules = [
        (len(kills) >= asked.kills, f"{len(kills)} SIGKILLs, of {asked.kills}"),
        (len(struck) - len(kills) >= asked.others, f"{len(struck) - len(kills)} other faults, of {asked.others}"),
        (busy >= asked.busy * len(kills), f"{busy} of {len(kills)} SIGKILLs met a process at work, {asked.busy:.0%} are demanded"),
        (sum(s.met == IN_COMMIT for s in kills) >= asked.in_commit, f"fewer than {asked.in_commit} SIGKILLs met a commit"),
        (
            sum(on_spark[k] for k in KILLS) >= asked.spark_kills,
            f"{sum(on_spark[k] for k in KILLS)} SIGKILLs on Spark, of {asked.spark_kills}",
        ),
        (records >= asked.rate * load_s, f"{records / max(load_s, 1e-9):.0f} records a second, of {asked.rate:.0f}"),
        (told >= asked.found_out, f"{told} containers found themselves in doubt, fenced or superseded, of {asked.found_out}"),
        *((on_spark[kind] > 0, f"no {kind} on Spark") for kind in asked.spark_kinds),
    ]
    return [words for holds, words in rules if not holds]


@dataclass(frozen=True, slots=True)
class ChaosReport:
    """The end of a run.

    Attributes:
        reports: by job.
        struck: every fault of both, in order.
        problems: what is wrong besides the reports' own findings: open transactions, a restore that differs, lag, promises broken.
        left_out: kinds of faults that this machine cannot make.
    """

    reports: Mapping[str, Report]
    struck: Sequence[Struck]
    problems: Sequence[str]
    said: Said
    restores: Sequence[Restore]
    records: int
    load_s: float
    lag_s: float
    woken: Sequence[float]
    aborted: Mapping[str, int]
    asked: Demands
    left_out: Sequence[str] = field(default=())

    @property
    def wrong(self) -> list[str]:
        """Everything that is wrong, a sentence each."""
        nameless = [f"an error line without a known code: {line[:200]}" for line in self.said.nameless]
        late = [f"{self.lag_s:.1f} s from the last fault until both jobs had caught up"] if self.lag_s > LAG_S else []
        return [*(f"job {name}: not clean, see there" for name, r in self.reports.items() if not r.clean), *self.problems, *nameless, *late]

    @property
    def result(self) -> str:
        if self.wrong:
            return NOT_CLEAN
        return INVALID if shortfalls(self.struck, self.records, self.load_s, self.said.codes, self.asked) else CLEAN

    @property
    def exit_code(self) -> int:
        return EXIT_CODES[self.result]

    def __str__(self) -> str:
        lines = self._table() + self._figures()
        for name, report in self.reports.items():
            lines += ["", f"job {name}", *(f"  {line}" for line in report.findings())]
        lines += ["", *(f"WRONG: {w}" for w in self.wrong)]
        short = shortfalls(self.struck, self.records, self.load_s, self.said.codes, self.asked)
        lines += [f"TOO LITTLE: {s}" for s in short] + [f"left out: {words}" for words in self.left_out]
        return "\n".join([*lines, self.result])

    def _table(self) -> list[str]:
        first_ms = self.struck[0].fault.at_ms if self.struck else 0
        rows = [
            (
                str(i), f"{(s.fault.at_ms - first_ms) / 1000:.1f}", s.fault.part, s.job, s.fault.kind, s.fault.target, str(len(s.fault.tasks)),
                s.met if s.is_kill else "", seconds(s.fault.until_running_s), seconds(s.fault.until_commit_s), s.fault.note,
            )
            for i, s in enumerate(self.struck, 1)
        ]  # fmt: skip
        by_kind = columns([("fault", "times", "", "median s", "p95 s", "max s"), *summed([s.fault for s in self.struck])])
        return [*columns([HEADER, *rows]), "", *by_kind, ""]

    def _figures(self) -> list[str]:
        kills = [s for s in self.struck if s.is_kill]
        met = Counter(s.met for s in kills)
        codes = self.said.codes
        woken = f", they lived on for at most {max(self.woken):.1f} s" if self.woken else ""
        return [
            f"load: {self.records} records in {self.load_s:.0f} s, {self.records / max(self.load_s, 1e-9):.0f} a second",
            f"SIGKILLs: {len(kills)}, of which met: {', '.join(f'{n} {what}' for what, n in met.most_common()) or 'nothing'}",
            f"other faults: {len(self.struck) - len(kills)}",
            *(_until_commit(self.struck, part) for part in (LOCAL, SPARK) if any(s.fault.part == part for s in self.struck)),
            *_restored(self.restores),
            f"written and aborted: {', '.join(f'{n} {kind}' for kind, n in sorted(self.aborted.items())) or 'nothing'}",
            f"in doubt {codes[IN_DOUBT]}, fenced {codes[FENCED]}, superseded {codes[SUPERSEDED]} lines; zombies that woke: {len(self.woken)}{woken}",
            f"error lines: {self.said.errors}, without a known code: {len(self.said.nameless)}",
            f"from the last fault until both jobs had caught up: {self.lag_s:.1f} s",
        ]


def _until_commit(struck: Sequence[Struck], part: str) -> str:
    times = [s.fault.until_commit_s for s in struck if s.fault.kind == KILL_CONTAINER and s.fault.part == part]
    known = [t for t in times if t is not None]
    told = f"median {statistics.median(known):.2f} s, 95 % {p95(known):.2f} s, at most {max(known):.2f} s" if known else "not known"
    return f"SIGKILL of a container until its tasks' next commit, {part}: {told} ({len(known)} of {len(times)})"


def _restored(restores: Sequence[Restore]) -> Iterable[str]:
    for source in sorted({r.source for r in restores}):
        times = [r.seconds for r in restores if r.source == source]
        most = max(r.records for r in restores if r.source == source)
        yield (
            f"stores restored, {source}: {len(times)}, median {statistics.median(times):.3f} s, 95 % {p95(times):.3f} s,"
            f" at most {max(times):.3f} s and {most} records"
        )
