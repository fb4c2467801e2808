"""From YAML text to a plain document, with the place of every key and value.

Only what a job file needs of YAML is taken: maps with text keys, lists, plain scalars. Tags are refused (they would name Python objects),
size, depth and aliases are bounded (a few lines of aliases can expand to gigabytes), a key that stands twice is an error (YAML libraries
keep the last one in silence). Dates stay text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from samzapy.config.errors import Problem

MAX_FILE_BYTES = 1 << 20
MAX_DEPTH = 30
MAX_NODES = 20_000
PLAIN = "tag:yaml.org,2002:"
KeyPath = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Place:
    """Where something stands; lines and columns from 1."""

    file: str
    line: int
    column: int
    source: str

    def problem(self, path: str, message: str, hint: str = "") -> Problem:
        return Problem(self.file, self.line, self.column, path, message, hint, self.source)


@dataclass(slots=True)
class Document:
    """A tree of dicts, lists and scalars; `keys` and `values` tell where each key and value stands."""

    content: Any = None
    keys: dict[KeyPath, Place] = field(default_factory=dict)
    values: dict[KeyPath, Place] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def place(self, path: KeyPath, of_key: bool = False) -> Place:
        """The place of a path, or of the nearest thing around it."""
        tables = (self.keys, self.values) if of_key else (self.values, self.keys)
        for end in range(len(path), -1, -1):
            for table in tables:
                if path[:end] in table:
                    return table[path[:end]]
        return Place("", 0, 0, "")

    def lay_over(self, other: Document) -> None:
        """Maps merge; everything else, lists too, is replaced."""
        self.problems.extend(other.problems)
        if isinstance(self.content, dict) and isinstance(other.content, dict):
            self._merge(self.content, other.content, ())
        elif other.content is not None:
            self.content = other.content
        self.keys.update(other.keys)
        self.values.update(other.values)

    def _merge(self, base: dict[str, Any], over: Mapping[str, Any], path: KeyPath) -> None:
        for key, value in over.items():
            here = (*path, key)
            if isinstance(base.get(key), dict) and isinstance(value, dict):
                self._merge(base[key], value, here)
            else:
                for table in (self.keys, self.values):
                    for old in [p for p in table if p[: len(here)] == here]:
                        del table[old]
                base[key] = value


def show_path(path: KeyPath) -> str:
    """`inputs[0].topic`."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def read_document(path: Path) -> Document:
    """A job file as it stands; what is wrong with it is in `problems`."""
    document = Document()
    name = str(path)

    def refuse(message: str, hint: str = "") -> Document:
        document.problems.append(Problem(name, 1, 1, "", message, hint))
        return document

    try:
        data = path.read_bytes() if path.stat().st_size <= MAX_FILE_BYTES else b"\xff" * (MAX_FILE_BYTES + 1)
    except IsADirectoryError:
        return refuse("this is a folder", "name the job file in it")
    except OSError as error:
        return refuse(f"cannot be read: {error.strerror}", "check the path")
    if len(data) > MAX_FILE_BYTES:
        return refuse(f"more than {MAX_FILE_BYTES >> 20} MiB", "a job file is a page of settings")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        document.problems.append(Problem(name, line, 1, "", "not UTF-8", "save the file as UTF-8"))
        return document
    return parse(text, name)


def parse(text: str, name: str) -> Document:
    """A document from YAML text."""
    reader = _Reader(name, text.splitlines())
    document = reader.document
    try:
        node = YAML(typ="safe", pure=True).compose(text)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        document.problems.append(
            reader.at(line, column).problem("", f"not YAML: {error.problem or error.context}", "check indentation, quotes and brackets")
        )
        return document
    except (YAMLError, RecursionError, ValueError) as error:
        document.problems.append(Problem(name, 1, 1, "", f"not YAML: {error}", "check indentation, quotes and brackets"))
        return document
    if node is None:
        document.problems.append(Problem(name, 1, 1, "", "the file is empty", "a job needs at least job, task, inputs and kafka"))
    else:
        document.content = reader.value(node, (), 0)
    return document


class _Reader:
    def __init__(self, name: str, lines: list[str]) -> None:
        self._name = name
        self._lines = lines
        self._nodes = 0
        self._gave_up = False
        self.document = Document()

    def at(self, line: int, column: int) -> Place:
        source = self._lines[line - 1] if 0 < line <= len(self._lines) else ""
        return Place(self._name, line, column, source[:300])

    def _place(self, node: Node) -> Place:
        return self.at(node.start_mark.line + 1, node.start_mark.column + 1)

    def value(self, node: Node, path: KeyPath, depth: int) -> Any:
        place = self._place(node)
        self.document.values[path] = place
        self._nodes += 1
        if self._gave_up:
            return None
        if self._nodes > MAX_NODES or depth > MAX_DEPTH:
            self._gave_up = True
            what = (
                f"more than {MAX_NODES} values, aliases counted as often as they stand"
                if self._nodes > MAX_NODES
                else f"nested deeper than {MAX_DEPTH}"
            )
            self.document.problems.append(place.problem(show_path(path[:6]), what, "write it out plainly"))
            return None
        if isinstance(node, MappingNode):
            return self._map(node, path, depth) if self._is_plain(node, "map", place, path) else None
        if isinstance(node, SequenceNode):
            return (
                [self.value(v, (*path, i), depth + 1) for i, v in enumerate(node.value)]
                if self._is_plain(node, "seq", place, path)
                else None
            )
        return self._scalar(node, place, path) if isinstance(node, ScalarNode) else None

    def _is_plain(self, node: Node, kind: str, place: Place, path: KeyPath) -> bool:
        tag = str(node.tag)
        if tag == PLAIN + kind:
            return True
        self.document.problems.append(place.problem(show_path(path), f"YAML tag {tag} is not allowed", "leave the tag out"))
        return False

    def _map(self, node: MappingNode, path: KeyPath, depth: int) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for key_node, value_node in node.value:
            place = self._place(key_node)
            key = key_node.value if isinstance(key_node, ScalarNode) else None
            if key is None or str(key_node.tag) in (PLAIN + "merge",):
                self.document.problems.append(
                    place.problem(show_path(path), "a key must be plain text", "merge keys (<<) and structured keys are not taken")
                )
                continue
            if key in result:
                first = self.document.keys[*path, key]
                message = f"key {key!r} stands twice; the first is in line {first.line}"
                self.document.problems.append(place.problem(show_path((*path, key)), message, "remove one of them"))
                continue
            self.document.keys[*path, key] = place
            result[key] = self.value(value_node, (*path, key), depth + 1)
        return result

    def _scalar(self, node: ScalarNode, place: Place, path: KeyPath) -> Any:
        tag = str(node.tag)
        kind = tag.removeprefix(PLAIN)
        if kind in ("str", "timestamp"):
            return node.value
        try:
            found = scalar(node.value, kind)
        except (KeyError, ValueError):
            self.document.problems.append(place.problem(show_path(path), f"YAML tag {tag} is not allowed", "leave the tag out"))
            return None
        return found


def scalar(text: str, kind: str) -> Any:
    """A plain scalar of YAML's core schema."""
    if kind == "null":
        return None
    if kind == "bool":
        return {"true": True, "false": False}[text.lower()]
    if kind == "int":
        return int(text.replace("_", ""), 0) if not text.lstrip("+-").isdigit() else int(text)
    if kind == "float":
        return float(text.replace("_", "").replace(".inf", "inf").replace(".nan", "nan").replace(".NaN", "nan"))
    raise KeyError(kind)
