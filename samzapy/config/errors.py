"""Problems of a job file: all at once, each with its place, the line, a caret and one hint."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from samzapy.api.errors import ConfigurationError

LINE_WIDTH = 160


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
    caret: int = 0  # where the caret goes, if the line is shown otherwise than it stands

    def render(self) -> str:
        """GNU form, then the line, a caret, and the hint."""
        where = f"{self.file}:{self.line}:{self.column}: " if self.line else f"{self.file}: " if self.file else ""
        text = f"{where}error: {self.path + ': ' if self.path else ''}{self.message}"
        if self.source_line:
            line, caret = self._excerpt()
            text += f"\n    {line}\n    {caret}"
        if self.hint:
            text += f"\n  hint: {self.hint}"
        return text

    def _excerpt(self) -> tuple[str, str]:
        """The part of the line that holds the place, and a caret below it; tabs stay tabs, so that it stays below."""
        column = self.caret or self.column
        start = max(0, column - LINE_WIDTH // 2) if len(self.source_line) > LINE_WIDTH else 0
        line = self.source_line[start : start + LINE_WIDTH]
        before = line[: max(0, column - 1 - start)]
        return line, "".join("\t" if c == "\t" else " " for c in before) + "^"


class ConfigError(ConfigurationError):
    """The job file has problems, listed by line."""

    code = "SZ101"

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = sorted(set(problems))
        super().__init__("\n".join(p.render() for p in self.problems))

    def render(self) -> str:
        """Everything, for a terminal."""
        count = len(self.problems)
        return f"{self.message}\n{count} error{'s' if count != 1 else ''}"
