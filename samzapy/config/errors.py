"""Problems of a job file: all at once, each with its place, the line, a caret and one hint."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from samzapy.api.errors import ConfigurationError


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """One error. Lines and columns count from 1; 0 where there is no place."""

    file: str
    line: int
    column: int
    path: str
    message: str
    hint: str = ""
    source_line: str = ""

    def render(self) -> str:
        """GNU form, then the line, a caret, and the hint."""
        where = f"{self.file}:{self.line}:{self.column}: " if self.line else f"{self.file}: " if self.file else ""
        text = f"{where}error: {self.path + ': ' if self.path else ''}{self.message}"
        if self.source_line:
            text += f"\n    {self.source_line}\n    {' ' * max(0, self.column - 1)}^"
        if self.hint:
            text += f"\n  hint: {self.hint}"
        return text


class ConfigError(ConfigurationError):
    """The job file's problems, sorted by place."""

    code = "SZ101"

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = sorted(set(problems))
        super().__init__("\n".join(p.render() for p in self.problems))

    def render(self) -> str:
        """Everything, for a terminal."""
        count = len(self.problems)
        return "\n".join(p.render() for p in self.problems) + f"\n{count} error{'s' if count != 1 else ''}"
