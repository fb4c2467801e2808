"""What a run tells while it runs and when it has ended: one line at the bottom of a terminal, and a summary. Pure: documents in, text out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from samzapy.model.states import TaskState
from samzapy.plan.totals import Totals

ASIDE = {"dead_letters": "set aside", "skipped": "skipped", "too_late": "too late for a window"}


def line_of(status: Mapping[str, Any], totals: Totals, unanswered_s: float | None, width: int) -> str:
    """The line at the bottom: `unanswered_s`: for how long Kafka has not answered; `width`: columns of the terminal."""
    rates, restarts = status["rates"], sum(container["restarts"] for container in status["containers"])
    lag = "?" if rates["lag"] is None else f"{rates['lag']:,}"
    parts = [
        str(status["state"]),
        f"in {rates['in']:,.0f}/s",
        f"out {rates['out']:,.0f}/s",
        f"behind {lag}",
        f"commits {totals.of('commits'):,}",
        f"restarts {restarts}",
    ]
    if unanswered_s is not None:
        parts.insert(1, f"Kafka does not answer ({unanswered_s:.0f} s)")
    restoring = sum(task["state"] == TaskState.RESTORING for task in status["tasks"])
    if restoring:
        parts.append(f"restoring {restoring} of {len(status['tasks'])} tasks")
    return "  ".join(parts)[: max(1, width - 1)]


def summary_of(totals: Totals, restarts: int, seconds: float, has_stages: bool = False) -> str:
    """What a run did, when it has ended: the sums of what its containers reported. One that died had not reported its last records ("at least"); what
    it had not committed was processed again, and counts again. `has_stages`: records went through internal topics, too."""
    records = totals.of("processed")
    rate = f", {records / seconds:,.0f} records/s" if seconds > 0 else ""
    aside = [f"{totals.of(name):,} {words}" for name, words in ASIDE.items() if totals.of(name)]
    least = "at least " if restarts else ""
    parts = [f"{least}{records:,} in", f"{totals.of('sent'):,} out", *aside]
    counts = f"{_count(totals.of('commits'), 'commit')}, {_count(restarts, 'restart')}"
    between = " (internal topics included)" if has_stages else ""
    return f"records: {', '.join(parts)}{between}; {counts}; {_duration(seconds)}{rate}"


def restored(status: Mapping[str, Any]) -> dict[tuple[str, str], str]:
    """The restores that are done, as sentences, by task and store."""
    return {
        (task["name"], name): f"container {task['container']}: {task['name']}, store {name}: restored from {one['source']}, {one['records']} records in "
        f"{one['seconds']:.1f} s: {one['reason']}"
        for task in status["tasks"]
        for name, store in task["stores"].items()
        if (one := store.get("restore")) and not one.get("remaining", 0)
    }


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _duration(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min {rest} s" if hours else f"{minutes} min {rest} s"
