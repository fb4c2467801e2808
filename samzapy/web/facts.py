"""Where the page's facts come from, and what may be done to the job: the seam between the routes and a job that runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

Rows = list[dict[str, Any]]


class Facts(Protocol):
    """All are documents of plain values, made anew for each call."""

    def status(self) -> dict[str, Any]:
        """The status document."""

    def state(self) -> str:
        """The job's state alone."""

    def model(self) -> dict[str, Any]:
        """The job model."""

    def reports(self) -> Mapping[int, Mapping[str, Any]]:
        """The last report of each container."""

    def events(self, since: int) -> Rows:
        """The timeline after that event."""

    def commits(self) -> Rows:
        """The last commits, oldest first."""

    def errors(self) -> Rows:
        """Groups of errors of records."""

    def series(self, step_s: float) -> Rows:
        """The job's numbers over time."""

    def hints(self) -> Rows:
        """What is wrong, by which numbers, and what mends it."""

    def about(self) -> dict[str, Any]:
        """The job's topics, stores and configuration."""


class Actions(Protocol):
    """What may be done. `by`: who asks, as the timeline names them. With `dry_run` nothing is done, and the effect is told all the same.

    Raises (all): SamzapyError: it is refused.
    """

    def stop(self, by: str, dry_run: bool) -> dict[str, Any]: ...

    def scale(self, containers: int, by: str, dry_run: bool) -> dict[str, Any]: ...

    def restart(self, container: int | None, by: str, dry_run: bool, *, is_checked: bool) -> dict[str, Any]:
        """`is_checked`: who asks has found that the new code can be used, as the command line does."""

    def pause(self, by: str, dry_run: bool) -> dict[str, Any]: ...

    def resume(self, by: str, dry_run: bool) -> dict[str, Any]: ...

    def commit(self, by: str, dry_run: bool) -> dict[str, Any]: ...


def filtered(rows: Sequence[Mapping[str, Any]], find: str) -> list[Mapping[str, Any]]:
    """The rows that contain the text."""
    text = find.casefold()
    return [row for row in rows if not text or any(text in str(row.get(name, "")).casefold() for name in ("name", "state", "container", "reason"))]


def ordered(rows: Sequence[Mapping[str, Any]], sort: str) -> list[Mapping[str, Any]]:
    """By a field; `-name`: the largest first. What has no value comes last."""
    name, down = sort.removeprefix("-"), sort.startswith("-")
    known = [row for row in rows if isinstance(row.get(name), int | float | str)]
    texts = any(isinstance(row[name], str) for row in known)
    known.sort(key=lambda row: str(row[name]) if texts else row[name], reverse=down)
    return [*known, *(row for row in rows if not isinstance(row.get(name), int | float | str))]
