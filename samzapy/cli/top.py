"""`top`: the running job's numbers in a terminal, renewed every second. The words and numbers are those of `status` and of the page."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer
from rich.console import Console, ConsoleOptions, Group, RenderResult
from rich.live import Live
from rich.table import Table
from rich.text import Text

from samzapy.api.errors import ClusterUnreachable, ConfigurationError
from samzapy.cli.common import JobFile, MoreFiles, Sets, as_called
from samzapy.cli.coordinator_http import is_status
from samzapy.cli.inspect import say_no_answer
from samzapy.cli.job import Job
from samzapy.cli.output import unescaped
from samzapy.cli.signals_and_threads import clean_up_when_told
from samzapy.cli.tables import fitting
from samzapy.printable import printable

EVERY_S = 1.0
WIDTH = 160  # without a terminal
FOLDED = 20  # letters of a long text on a line, at least
KEEPS_UP_S = 2.0  # who is so little behind, and does not fall further behind, keeps up
ORDERS = {"behind": "lag", "rate": "rate", "busy": "busy", "us": "us", "name": "name"}
COLOURS = {
    "RUNNING": "green", "OK": "green", "IDLE": "dim", "BUSY": "yellow", "PAUSED": "yellow", "HELD BACK": "yellow", "DEGRADED": "red", "LOST": "red", "FAILED": "red",
}  # fmt: skip


def top(
    file: JobFile,
    more: MoreFiles = None,
    sets: Sets = None,
    sort: Annotated[str, typer.Option("--sort", help=f"Which tasks come first: {', '.join(ORDERS)}.")] = "behind",
    tasks: Annotated[int, typer.Option("--tasks", help="How many tasks are shown.", min=1)] = 30,
    once: Annotated[bool, typer.Option("--once", help="Show it once, not every second; this is the default if the output is not a terminal.")] = False,
) -> int:
    """What the running job does, every second until Ctrl-C: rates, shares of the loop's time, lag; exit code 3 if it is not running."""
    if sort not in ORDERS:
        raise ConfigurationError(f"--sort {sort}: not one of the orders.", f"Choose one of: {', '.join(ORDERS)}.")
    with Job(file, more, sets) as job:
        status, url = job.status(), job.url()
        if status is None or url is None:
            return say_no_answer(job)
        output = unescaped(sys.stdout)
        if once or not output.isatty():
            Console(file=output, width=None if output.isatty() else WIDTH, highlight=False, markup=False, emoji=False).print(screen(status, sort, tasks))
            return 0
        console = Console(file=output, highlight=False, markup=False, emoji=False)
        clean_up_when_told()  # else the terminal would stay as it is set for this
        with Live(screen(status, sort, tasks), console=console, screen=True, auto_refresh=False) as live:
            while True:
                time.sleep(EVERY_S)
                status, stale = _again(job, url, status)
                live.update(screen(status, sort, tasks, stale), refresh=True)


def _again(job: Job, url: str, before: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """The status now; the one before, and why, where nobody answers."""
    try:
        answer = job.full_status(url, EVERY_S * 3)
    except ClusterUnreachable as error:
        return before, f"not refreshed: {error.message}"
    return (answer, "") if is_status(answer) else (before, "not refreshed: the answer is not from samzapy")


def screen(status: Mapping[str, Any], sort: str, limit: int, stale: str = "") -> Group:
    """All of it, from a status document."""
    shown = in_order(status["tasks"], sort)[:limit]
    parts: list[Any] = [_head(status, stale), *_hints(status.get("hints", ())), *_restores(status["tasks"]), _containers(status["containers"]), _tasks(shown)]
    if len(status["tasks"]) > len(shown):
        parts.append(Text(f"{len(status['tasks']) - len(shown)} more tasks (--tasks)", "dim"))
    return Group(*parts)


def in_order(tasks: Sequence[Mapping[str, Any]], sort: str) -> list[Mapping[str, Any]]:
    """The largest first; by name from the start; what is not known comes last."""
    name = ORDERS[sort]
    if name == "name":
        return list(tasks)
    return sorted(tasks, key=lambda task: (task.get(name) is None, -(task.get(name) or 0)))


def _trend(rates: Mapping[str, Any]) -> str:
    """How the lag goes, in the page's words."""
    if not rates.get("lag"):
        return ""
    if rates.get("caught_up_in_s") is not None:
        return f", caught up in {seconds(rates['caught_up_in_s'])}"
    is_little = (rates.get("behind_s") or 0.0) < KEEPS_UP_S and rates.get("lag_rate", 0.0) < 0.02 * (rates.get("in") or 0.0)
    return ", keeps up" if is_little else ", not shrinking"


def _head(status: Mapping[str, Any], stale: str) -> Group:
    rates = status.get("rates") or {}
    line = Text(f"{status['job']}-{status['id']}  ")
    line.append(status["state"], COLOURS.get(status["state"], "yellow"))
    line.append(f"  {printable(status.get('coordinator', ''))}")
    numbers = (
        f"in {rate(rates.get('in'))}   out {rate(rates.get('out'))}   behind {number(rates.get('lag'))} records, {seconds(rates.get('behind_s'))}{_trend(rates)}"
        f"   commits p50 {seconds((rates.get('commits') or {}).get('p50_s'))}, p99 {seconds((rates.get('commits') or {}).get('p99_s'))}"
    )
    why = [Text(as_called(printable(text)), "yellow") for text in (status.get("reason", ""), stale, *status.get("notes", ())) if text]
    return Group(line, *why, Text(numbers), Text(""))


def _hints(hints: Sequence[Mapping[str, Any]]) -> list[Any]:
    lines = []
    for hint in hints:
        lines.append(Text(f"{'▲' if hint['severity'] == 'act' else '△'} {printable(hint['sentence'])}", "red" if hint["severity"] == "act" else "yellow"))
        if hint["remedy"]:
            lines.append(Text(f"  {as_called(printable(hint['remedy']))}", "bold"))
    return [*lines, Text("")] if lines else []


def _restores(tasks: Sequence[Mapping[str, Any]]) -> list[Any]:
    lines = []
    for task in tasks:
        for store, facts in task["stores"].items():
            restore = facts.get("restore") or {}
            needed, remaining = restore.get("needed", 0), restore.get("remaining", 0)
            if remaining and needed:
                have = 1 - remaining / needed
                bar = "█" * round(20 * have) + "░" * (20 - round(20 * have))
                left = f"{rate(restore.get('rate'))}, {seconds(restore.get('eta_s'))} left" if "eta_s" in restore else "begins"
                lines.append(Text(f"restoring {task['name']}, {store}  {bar} {100 * have:.0f} %  {left}  ({printable(restore.get('reason', ''))})"))
    return [*lines, Text("")] if lines else []


def _containers(containers: Sequence[Mapping[str, Any]]) -> _Columns:
    rows = []
    for c in containers:
        of_loop = c.get("loop") or {}
        rows.append((
            str(c["id"]), _coloured(c["state"]), _coloured(c.get("badge", "")), printable(c["host"] or "-"), str(c["pid"] or "-"), str(len(c["tasks"])),
            size(c.get("memory_bytes")), str(c.get("restarts", 0)), _time(of_loop),
        ))  # fmt: skip
    return _Columns(("CONTAINER", "STATE", "LOOP", "HOST", "PID", "TASKS", "MEMORY", "RESTARTS", "ITS TIME"), rows, spare=("PID", "MEMORY", "TASKS"))


def _time(of_loop: Mapping[str, float]) -> str:
    """The largest shares of a loop's time first."""
    known = sorted(((share, name) for name, share in of_loop.items() if share >= 0.005), reverse=True)
    return ", ".join(f"{name.replace('_', ' ')} {100 * share:.0f} %" for share, name in known) or "-"


def _tasks(tasks: Sequence[Mapping[str, Any]]) -> _Columns:
    rows = []
    for t in tasks:
        busy = t.get("busy")
        rows.append((
            t["name"], _coloured(t["state"]), "-" if t["container"] is None else str(t["container"]), number(t["lag"]), seconds(t.get("behind_s")),
            rate(t.get("rate")), "-" if busy is None else f"{100 * busy:.0f}", "-" if t.get("us") is None else f"{t['us']:,.0f}",
            number(t.get("processed")), Text(printable(t.get("reason", ""))),
        ))  # fmt: skip
    names = ("TASK", "STATE", "CONTAINER", "LAG", "LAG TIME", "RATE", "BUSY %", "µS/RECORD", "PROCESSED", "REASON")
    return _Columns(names, rows, spare=("PROCESSED", "LAG TIME", "µS/RECORD", "BUSY %"))


class _Columns:
    """A table; where the terminal is too narrow, the columns of `spare` go, in this order. What is long in the last column is folded."""

    WORDS = ("CONTAINER", "STATE", "LOOP", "HOST", "TASK", "REASON", "ITS TIME")

    def __init__(self, names: Sequence[str], rows: Sequence[Sequence[str | Text]], spare: Sequence[str]) -> None:
        self._names, self._rows, self._spare = names, rows, spare

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        lengths = [[*map(str, row[:-1]), str(row[-1])[:FOLDED]] for row in self._rows]
        shown, _ = fitting(list(self._names), lengths, self._spare, options.max_width)
        table = Table(box=None, pad_edge=False, show_edge=False, header_style="dim")
        for name in shown:
            table.add_column(name, justify="left" if name in self.WORDS else "right", no_wrap=name != self._names[-1], overflow="ellipsis")
        for row in self._rows:
            table.add_row(*(cell for name, cell in zip(self._names, row, strict=True) if name in shown))
        yield table


def _coloured(word: str) -> Text:
    return Text(word, COLOURS.get(word, ""))


def number(n: float | None) -> str:
    """With thousands separated; `-` where it is not known."""
    return "-" if n is None else f"{n:,.0f}"


def rate(per_second: float | None) -> str:
    """Records a second."""
    if per_second is None:
        return "-"
    return f"{per_second:,.1f}/s" if per_second < 100 else f"{per_second:,.0f}/s"


def seconds(s: float | None) -> str:
    """A duration in the unit that suits it."""
    if s is None:
        return "-"
    if s < 1:
        return f"{1000 * s:.0f} ms"
    if s < 120:
        return f"{s:.1f} s"
    return f"{s / 60:.0f} min" if s < 7200 else f"{s / 3600:.1f} h"


def size(n: int | None) -> str:
    """Bytes, as MiB or GiB."""
    if n is None:
        return "-"
    return f"{n / (1 << 20):.0f} MiB" if n < 1 << 30 else f"{n / (1 << 30):.1f} GiB"
