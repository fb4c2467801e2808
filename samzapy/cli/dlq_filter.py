"""The options of `samzapy dlq` that choose dead letters."""

from __future__ import annotations

from typing import Annotated

import typer

from samzapy.cli.checkpoint import milliseconds
from samzapy.config.units import parse_duration
from samzapy.ops.letter_choice import Filter

OfTask = Annotated[str | None, typer.Option("--task", metavar="NAME", help='Only of this task, e.g. "Partition 0".', show_default=False)]
OfTopic = Annotated[str | None, typer.Option("--topic", help="Only from this input.", show_default=False)]
WithError = Annotated[str | None, typer.Option("--error", metavar="TEXT", help="Only those whose error contains this text.", show_default=False)]
Since = Annotated[
    str | None,
    typer.Option("--since", metavar="T", help="Only those set aside at or after 2026-01-31T12:00:00 (UTC), or in the last 2h.", show_default=False),
]


def filter_of(task: str | None, topic: str | None, error: str | None, since: str | None, now_ms: int) -> Filter:
    """As the options say.

    Raises:
        ConfigurationError: a time that cannot be read.
    """
    ago_ms = None if since is None else parse_duration(since)
    since_ms = None if since is None else now_ms - ago_ms if ago_ms is not None else milliseconds(since, "--since")
    return Filter(task, topic, error, since_ms)
