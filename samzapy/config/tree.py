"""A job file as a tree that knows where each key and value stands: what is said about it later can be said at its place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from samzapy.config.errors import Problem
from samzapy.config.secrets import HIDDEN, hide_in_line, is_secret

Plain = str | int | float | bool | None
Route = tuple[str | int, ...]


@dataclass(eq=False)
class Source:
    """One text that settings come from: a file, or one `--set`.

    `folder` is what its relative paths are relative to; `first_line` and `first_column` are where the text begins in what is shown.
    """

    name: str
    text: str
    folder: Path
    first_line: int = 1
    first_column: int = 1
    shown: str = ""
    secrets: list[tuple[int, int, int, int]] = field(default_factory=list)
    parsed: bool = False

    def place(self, line: int, column: int) -> Place:
        """The place of a zero-based line and column of the text."""
        return Place(self, self.first_line + line, column + (self.first_column if line == 0 else 1))

    def line(self, number: int, column: int = 1) -> tuple[str, int]:
        """A line as it may be shown, without the secrets in it, and where the column is then."""
        lines = (self.shown or self.text).replace("\r\n", "\n").split("\n")
        index = number - self.first_line
        if not 0 <= index < len(lines):
            return "", column
        line = lines[index]
        if not self.parsed:
            return hide_in_line(line), column
        spans = [(_from(span, number), _to(span, number, len(line))) for span in self.secrets if span[0] <= number <= span[2]]
        for start, end in sorted(set(spans), reverse=True):
            line = line[: start - 1] + HIDDEN + line[end - 1 :]
            column += (len(HIDDEN) - (end - start)) if column >= end else min(0, start - column)
        return line, column

    def hide(self, start: Place, end: Place) -> None:
        """Never show what stands between two places."""
        self.secrets.append((start.line, start.column, end.line, end.column))


def _from(span: tuple[int, int, int, int], line: int) -> int:
    return span[1] if span[0] == line else 1


def _to(span: tuple[int, int, int, int], line: int, length: int) -> int:
    return span[3] if span[2] == line else length + 1


@dataclass(frozen=True, slots=True)
class Place:
    """Where something stands; counted from 1."""

    source: Source
    line: int
    column: int

    def problem(self, path: Route, message: str, hint: str = "") -> Problem:
        """A problem at this place."""
        line, caret = self.source.line(self.line, self.column)
        return Problem(self.source.name, self.line, self.column, dotted(path), message, hint, line, caret)


@dataclass(frozen=True, slots=True)
class Leaf:
    """A scalar, not yet filled in."""

    value: Plain
    place: Place | None = None
    end: Place | None = None


@dataclass(frozen=True, slots=True)
class Items:
    """A list."""

    items: tuple[Node, ...]
    place: Place | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    """A key with its place, and its value."""

    place: Place | None
    node: Node


@dataclass(frozen=True, slots=True)
class Table:
    """A map."""

    entries: Mapping[str, Entry]
    place: Place | None = None


Node = Leaf | Items | Table


def dotted(path: Route) -> str:
    """A path as messages and `--set` write it: `inputs.0.topic`."""
    return ".".join(str(part) for part in path)


def plain(node: Node) -> Any:
    """The tree as plain values, references unresolved."""
    if isinstance(node, Table):
        return {key: plain(entry.node) for key, entry in node.entries.items()}
    if isinstance(node, Items):
        return [plain(item) for item in node.items]
    return node.value


def from_plain(value: Any) -> Node:
    """A tree without places, of a document that travelled."""
    if isinstance(value, Mapping):
        return Table({str(key): Entry(None, from_plain(item)) for key, item in value.items()})
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return Items(tuple(from_plain(item) for item in value))
    return Leaf(value)


def leaves(node: Node, path: Route = ()) -> Iterator[tuple[Route, Leaf]]:
    """All scalars with their paths."""
    if isinstance(node, Table):
        for key, entry in node.entries.items():
            yield from leaves(entry.node, (*path, key))
    elif isinstance(node, Items):
        for i, item in enumerate(node.items):
            yield from leaves(item, (*path, i))
    else:
        yield path, node


def hide_secrets(root: Node, above: Route = ()) -> None:
    """Tell the sources where secrets stand, so that no shown line has one; `above`: the path of `root`."""
    for path, leaf in leaves(root, above):
        if is_secret(path, leaf.value) and leaf.place is not None and leaf.end is not None:
            leaf.place.source.hide(leaf.place, leaf.end)


def locate(root: Node, path: Route, at_key: bool) -> Place | None:
    """The place of a key or its value; of what comes nearest above it, if the path does not exist."""
    node, key_place = root, None
    for depth, part in enumerate(path):
        if isinstance(node, Table) and part in node.entries:
            entry = node.entries[str(part)]
            key_place, node = entry.place, entry.node
        elif isinstance(node, Items) and isinstance(part, int) and part < len(node.items):
            key_place, node = None, node.items[part]
        else:
            return node.place if depth == 0 or key_place is None else key_place
    return key_place if at_key and key_place is not None else node.place


def merged(below: Node, above: Node) -> Node:
    """One tree merged over another: maps merge, all else is replaced. Positions follow their values."""
    if not isinstance(below, Table) or not isinstance(above, Table):
        return above
    entries = dict(below.entries)
    for key, entry in above.entries.items():
        entries[key] = Entry(entry.place, merged(entries[key].node, entry.node)) if key in entries else entry
    return Table(entries, below.place)
