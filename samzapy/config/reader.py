"""YAML text to a tree with places.

Only maps with string keys, lists and YAML 1.2 scalars: what makes a plain config file a program or a bomb (tags, unbounded aliases, depth,
size) is refused. What a scalar is, `plain_scalars` says.

Events are taken one by one and the depth is watched on the way: the parser takes minutes for text that nests 100,000 deep.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)

from samzapy.clock import if_longer_than
from samzapy.config.errors import Problem
from samzapy.config.plain_scalars import read_scalar
from samzapy.config.tree import Entry, Items, Leaf, Node, Place, Route, Source, Table, hide_secrets

MAX_FILE_BYTES = 256 << 10
MAX_DEPTH = 32
LOG = logging.getLogger("samzapy.config")
TELL_S = 3.0
MAX_NODES = 20_000

_UNPRINTABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufeff\uff00-\ufffd\U00010000-\U0010ffff]")
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_FILE_REFERENCE = re.compile(r"(?<!\$)\$\{file:(?P<path>[^{}]+)\}")


class Stop(Exception):
    """Raised with the problem that ends the reading of a source."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self.problem = problem


def read_file(path: Path) -> Source:
    """The file's text.

    Raises:
        Stop: it cannot be read, is too large, or is no UTF-8 text.
    """
    name = str(path)
    try:
        with _waiting_is_told(path), path.open("rb") as file:
            raw = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        hint = "Check the path." if isinstance(error, FileNotFoundError) else ""
        why = {"FileNotFoundError": "this file does not exist", "IsADirectoryError": "is a directory, not a file"}
        raise Stop(Problem(name, 1, 1, "", why.get(type(error).__name__, f"cannot be read: {error.strerror}"), hint)) from None
    if len(raw) > MAX_FILE_BYTES:
        raise Stop(
            Problem(name, 1, 1, "", f"larger than {MAX_FILE_BYTES >> 10} KiB", "A job file is a page or two; is this the right file?")
        )
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        column = len(raw[raw.rfind(b"\n", 0, error.start) + 1 : error.start].decode("utf-8", "replace")) + 1
        raise Stop(Problem(name, line, column, "", "not UTF-8 text", "Save the file as UTF-8.")) from None
    return Source(name, text, path.parent.absolute())


@contextmanager
def _waiting_is_told(path: Path) -> Iterator[None]:
    """A pipe has no end until its writer closes it, and no beginning without a writer: after a few seconds it is said what is waited for."""
    if path.is_file() or not path.exists():
        yield
        return
    with if_longer_than(TELL_S, lambda: LOG.warning("%s is a pipe or a device: waiting for what is written to it, and its end", path)):
        yield


def parse(source: Source, problems: list[Problem], at: Route = ()) -> Node | None:
    """The tree of a source, None for an empty one. What can be passed over (duplicate keys, tags) goes to `problems`. `at`: where in the job file it is.

    Raises:
        Stop: it is no YAML, or a bomb.
    """
    bad = _UNPRINTABLE.search(source.text)
    if bad:
        line = source.text.count("\n", 0, bad.start())
        place = source.place(line, bad.start() - (source.text.rfind("\n", 0, bad.start()) + 1))
        raise Stop(place.problem((), f"a control character (U+{ord(bad[0]):04X})", "Remove it."))
    try:
        node = _Builder(source, problems, at).document()
    except MarkedYAMLError as error:
        raise Stop(_syntax_problem(source, error)) from None
    except (YAMLError, ValueError) as error:
        raise Stop(source.place(0, 0).problem((), f"this is not YAML: {str(error).splitlines()[0]}")) from None
    source.parsed = True
    return node


class _Builder:
    """Trees from events: one pass, recursive to MAX_DEPTH only. Aliased nodes are shared, and counted as if they were not."""

    def __init__(self, source: Source, problems: list[Problem], at: Route) -> None:
        self._source, self._at = source, at
        self._problems = problems
        self._events: Iterator[Any] = YAML(typ="safe", pure=True).parse(source.text)
        self._anchors: dict[str, tuple[Node, int, int]] = {}  # node, nodes in it, depth of it
        self._count = 0

    def document(self) -> Node | None:
        node = None
        for event in self._events:
            if isinstance(event, DocumentStartEvent):
                if node is not None:
                    self._refuse(self._start(event), (), "a second document", "One job a file: remove the second `---` and what follows.")
                node = self._node(next(self._events), (), 1)[0]
        return None if isinstance(node, Leaf) and node.value is None else node

    def _node(self, event: Any, path: Route, depth: int) -> tuple[Node, int]:
        """A node, and how deep it goes."""
        place = self._start(event)
        if depth > MAX_DEPTH:
            self._refuse(place, path[:3], f"nested more than {MAX_DEPTH} deep", "No key of a job file is nested that deep.")
        if isinstance(event, AliasEvent):
            return self._alias(event, place, path, depth)
        before = self._count
        self._add(1, place, path)
        if getattr(event, "tag", None):
            message = f"YAML tag {str(event.tag).replace('tag:yaml.org,2002:', '!!')!r} is refused"
            self._problems.append(place.problem(path, message, "Write the plain value; quotes make it text."))
        if isinstance(event, MappingStartEvent):
            node, height = self._table(place, path, depth)
        elif isinstance(event, SequenceStartEvent):
            node, height = self._items(place, path, depth)
        else:
            node, height = self._leaf(event, place, path), 1
        if event.anchor:
            self._anchors[event.anchor] = (node, self._count - before, height)
        return node, height

    def _alias(self, event: Any, place: Place, path: Route, depth: int) -> tuple[Node, int]:
        if event.anchor not in self._anchors:
            hint = "An anchor (&name) must stand before its alias (*name), and not around it; text that starts with * needs quotes."
            self._refuse(place, path, f"alias *{event.anchor} names no anchor", hint)
        node, size, height = self._anchors[event.anchor]
        self._add(size, place, path)
        if depth + height - 1 > MAX_DEPTH:
            self._refuse(place, path[:3], f"nested more than {MAX_DEPTH} deep", "No key of a job file is nested that deep.")
        return node, height

    def _table(self, place: Place, path: Route, depth: int) -> tuple[Node, int]:
        entries: dict[str, Entry] = {}
        merges: list[tuple[Place, Node]] = []
        height = 0
        for event in iter(lambda: next(self._events), None):
            if isinstance(event, MappingEndEvent):
                break
            key_place, key = self._start(event), self._key(event, path, depth)
            node, below = self._node(next(self._events), (*path, key if key is not None else "?"), depth + 1)
            height = max(height, below)
            if key == "<<" and getattr(event, "style", None) is None:
                merges.append((key_place, node))
            elif key in entries:
                hide_secrets(node, (*path, key))
                first = entries[key].place
                hint = f"The first one is on line {first.line}; remove one." if first else ""
                self._problems.append(key_place.problem((*path, key), f"duplicate key {key!r}", hint))
            elif key is not None:
                entries[key] = Entry(key_place, node)
        for key_place, node in merges:
            self._merge(entries, key_place, node, path)
        return Table(entries, place), height + 1

    def _key(self, event: Any, path: Route, depth: int) -> str | None:
        """A key's text; None for one that is refused."""
        place = self._start(event)
        if isinstance(event, ScalarEvent):
            if event.tag:
                self._problems.append(place.problem(path, f"YAML tag {event.tag!r} is refused", "Write the plain key."))
            self._check_text(event, place)
            value = read_scalar(event.value) if event.style is None else event.value
            if isinstance(value, str):
                return value
            shown = "nothing" if value is None else repr(event.value)
            self._problems.append(place.problem(path, f"keys are text, found {shown}", "If the key is right, put it in quotes."))
            return None
        self._node(event, path, depth + 1)
        self._problems.append(place.problem(path, "keys are text, found a list, a map or an alias", "Write the key out."))
        return None

    def _merge(self, entries: dict[str, Entry], place: Place, node: Node, path: Route) -> None:
        """`<<: *base` or `<<: [*a, *b]`: what is written out wins, then the first of the list."""
        for base in node.items if isinstance(node, Items) else (node,):
            if not isinstance(base, Table):
                self._problems.append(
                    place.problem((*path, "<<"), "'<<' merges maps; this is not a map", "Write `<<: *name`, with `&name` at a map.")
                )
                return
            self._add(len(base.entries), place, path)
            for key, entry in base.entries.items():
                entries.setdefault(key, entry)

    def _items(self, place: Place, path: Route, depth: int) -> tuple[Node, int]:
        items: list[Node] = []
        height = 0
        for event in iter(lambda: next(self._events), None):
            if isinstance(event, SequenceEndEvent):
                break
            node, below = self._node(event, (*path, len(items)), depth + 1)
            items.append(node)
            height = max(height, below)
        return Items(tuple(items), place), height + 1

    def _leaf(self, event: Any, place: Place, path: Route) -> Leaf:
        end = self._source.place(event.end_mark.line, event.end_mark.column)
        self._check_text(event, place)
        value = read_scalar(event.value) if event.style is None and not event.tag else event.value
        if isinstance(value, float) and _is_text_for_others((*self._at, *path)):
            value = str(event.value)
        return Leaf(_anchored(value, self._source.folder) if isinstance(value, str) else value, place, end)

    def _check_text(self, event: Any, place: Place) -> None:
        half = _SURROGATE.search(event.value)
        if half:
            self._problems.append(place.problem((), f"half a character (U+{ord(half[0]):04X})", "Write the character itself."))

    def _start(self, event: Any) -> Place:
        return self._source.place(event.start_mark.line, event.start_mark.column)

    def _add(self, nodes: int, place: Place, path: Route) -> None:
        self._count += nodes
        if self._count > MAX_NODES:
            self._refuse(
                place, path[:3], f"more than {MAX_NODES} values, with aliases expanded", "Write the values out."
            )

    def _refuse(self, place: Place, path: Route, message: str, hint: str) -> None:
        raise Stop(place.problem(path, message, hint))


def _is_text_for_others(path: Route) -> bool:
    """Whether Kafka's client or Spark reads the value, as text: 1.10 stays 1.10."""
    return path[:1] == ("kafka",) or path[:2] == ("spark", "conf")


def _anchored(text: str, folder: Path) -> str:
    """A relative `${file:PATH}` made absolute: containers have the document, not its folder."""

    def absolute(match: re.Match[str]) -> str:
        path = match["path"]
        return match[0] if path.startswith("~") else f"${{file:{folder / path}}}"

    return _FILE_REFERENCE.sub(absolute, text) if "${file:" in text else text


def _syntax_problem(source: Source, error: MarkedYAMLError) -> Problem:
    mark = error.problem_mark or error.context_mark
    place = source.place(mark.line, mark.column) if mark else source.place(0, 0)
    raw = source.text.split("\n")[mark.line] if mark and mark.line < source.text.count("\n") + 1 else ""
    what = " ".join(part for part in (error.problem, error.context) if part)
    return place.problem((), f"this is not YAML: {what}", _syntax_hint(what, raw[mark.column :] if mark else "", raw))


def _syntax_hint(what: str, rest: str, line: str) -> str:
    if "\\t" in what or line.startswith("\t"):
        return "Indent with spaces, not tabs."
    if "${" in line and "got '{'" in what:
        return 'Inside { } and [ ], put quotes around a reference: "${NAME}".'
    if "cannot start any token" in what:
        return f"Put quotes around a value that starts with {rest[:1]!r}."
    if "mapping values are not allowed" in what:
        return "Put quotes around a value with ': ' in it, or check the indentation."
    if "quoted scalar" in what:
        return "A quote is not closed."
    if "flow" in what:
        return "Check the brackets and commas on this line and above it."
    return "Check the indentation of this line and the one above."
