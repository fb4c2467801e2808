"""What a trial showed: a table of faults with both times, what they sum up to, the verdict and the audit."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tests.recovery.chain import Verdict
from tests.recovery.faults import Fault
from tests.recovery.state import LocalStores

HEADER = ("#", "at s", "fault", "target", "tasks", "phase", "all run again s", "hit tasks committed s", "note")


@dataclass(frozen=True, slots=True)
class Report:
    """The end of a trial. `aborted_…`: how many records faults caught in mid-transaction; none at all would make a weak trial."""

    faults: tuple[Fault, ...]
    verdict: Verdict
    problems: tuple[str, ...]
    audited: str
    exit_code: int
    left_behind: tuple[str, ...]
    aborted_outputs: int
    aborted_checkpoints: int
    stores: LocalStores

    @property
    def clean(self) -> bool:
        return self.verdict.clean and not self.problems and not self.stores.problems and not self.left_behind and self.exit_code == 0

    def __str__(self) -> str:
        return "\n".join(
            [
                *columns([HEADER, *(_row(i, f, self.faults[0].at_ms) for i, f in enumerate(self.faults, 1))]),
                "",
                *columns([("fault", "times", "", "median s", "p95 s", "max s"), *summed(self.faults)]),
                "",
                *self.findings(),
            ]
        )

    def findings(self) -> list[str]:
        """What was found, without the table of faults."""
        return [
            f"in mid-transaction: {self.aborted_outputs} outputs and {self.aborted_checkpoints} checkpoints were written and aborted",
            f"verdict: {self.verdict}",
            f"audit: {'clean' if not self.problems else f'{len(self.problems)} PROBLEMS'}: {self.audited}",
            *(f"  {p}" for p in self.problems),
            f"local stores: {'intact' if not self.stores.problems else f'{len(self.stores.problems)} PROBLEMS'}: {self.stores.summary}",
            *(f"  {p}" for p in self.stores.problems),
            f"exit code of the last run: {self.exit_code}",
            f"processes left: {'nothing' if not self.left_behind else ''}",
            *(f"  {p}" for p in self.left_behind),
        ]


def p95(values: Sequence[float]) -> float:
    """The smallest value that at least 95 % are not above."""
    ordered = sorted(values)
    return ordered[max(0, -(-len(ordered) * 95 // 100) - 1)]


def _row(number: int, fault: Fault, first_ms: int) -> tuple[str, ...]:
    tasks = str(len(fault.tasks))
    times = (seconds(fault.until_running_s), seconds(fault.until_commit_s))
    return (str(number), f"{(fault.at_ms - first_ms) / 1000:.1f}", fault.kind, fault.target, tasks, fault.phase or "?", *times, fault.note)


def summed(faults: Sequence[Fault]) -> Iterable[tuple[str, ...]]:
    for kind in [*sorted({f.kind for f in faults}), "all"]:
        of_kind = [f for f in faults if kind in (f.kind, "all")]
        for what, values in (
            ("all run again", [f.until_running_s for f in of_kind]),
            ("hit tasks committed", [f.until_commit_s for f in of_kind]),
        ):
            known = [v for v in values if v is not None]
            figures = (statistics.median(known), p95(known), max(known)) if known else (None, None, None)
            yield (kind, f"{len(known)} of {len(of_kind)}", what, *(seconds(f) for f in figures))


def seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def columns(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
