"""References inside scalar values: `${VAR}`, `${VAR:-default}`, `${file:PATH}`; `$${` stands for `${`.

They are resolved after parsing, so nothing that a variable holds can become a key, a list or another reference. A value that had one stays
text; where the settings want a number, a duration or true/false, that text is read as YAML reads it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from samzapy.config.errors import Problem
from samzapy.config.secrets import SECTIONS, ends_as_secret, is_secret, is_secret_name, is_written_secret, logins
from samzapy.config.tree import Items, Leaf, Node, Place, Route, Table, dotted
from samzapy.private_files import read_regular

MAX_SECRET_BYTES = 64 << 10
ESCAPE_HINT = "Write $${ for a literal ${."

_OPEN = re.compile(r"\$?\$\{")
_REFERENCE = re.compile(r"(?<!\$)\$\{([^{}]*)\}")
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)", re.ASCII)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


class Interpolated(str):
    """Text that a reference was part of."""

    __slots__ = ()


class Unresolved(Exception):
    """A reference that cannot be resolved; `index` counts the references of the scalar."""

    def __init__(self, message: str, hint: str, index: int) -> None:
        super().__init__(message)
        self.message, self.hint, self.index = message, hint, index


def resolve(root: Node, environ: Mapping[str, str], problems: list[Problem], keep_secrets: bool = False) -> tuple[Any, set[Route]]:
    """The tree as plain values with references resolved, and the paths of those that could not be.

    `keep_secrets`: leave references that may hold secrets as they are: in secret keys, to files, to variables with such names.
    """
    failed: set[Route] = set()

    def leaf(node: Leaf, path: Route) -> Any:
        if not isinstance(node.value, str) or "${" not in node.value or (keep_secrets and _may_be_secret(node.value, path)):
            return node.value
        try:
            text = fill(node.value, environ)
            # what stays in a document will be resolved again: a value that looks like a reference must not become one
            return node.value if keep_secrets and ("${" in text or logins(text)) else Interpolated(text)
        except Unresolved as why:
            place = _place_of(node, why.index)
            problems.append(place.problem(path, why.message, why.hint) if place else Problem("", 0, 0, dotted(path), why.message, why.hint))
            failed.add(path)
            return node.value

    return _map(root, (), leaf), failed


def fill(text: str, environ: Mapping[str, str]) -> str:
    """One scalar with its references resolved.

    Raises:
        Unresolved: a variable is not set, a file cannot be read, or a reference is not well formed.
    """
    parts: list[str] = []
    position = 0
    for index in range(len(text)):
        match = _OPEN.search(text, position)
        if not match:
            break
        parts.append(text[position : match.start()])
        if match[0] == "$${":
            parts.append("${")
            position = match.end()
            continue
        end = text.find("}", match.end())
        if end < 0:
            raise Unresolved("'${' without a '}'", ESCAPE_HINT, index)
        parts.append(_value(text[match.end() : end], environ, index))
        position = end + 1
    parts.append(text[position:])
    return "".join(parts)


def secret_texts(root: Node, environ: Mapping[str, str]) -> dict[str, set[Route]]:
    """What references that may hold secrets stand for, and where they are, whatever keys that is: not to be shown in a message."""
    found: dict[str, set[Route]] = {}

    def leaf(node: Leaf, path: Route) -> None:
        if not isinstance(node.value, str):
            return
        for match in _REFERENCE.finditer(node.value):
            try:
                value = _value(match[1], environ, 0)
            except Unresolved:
                continue  # told by `resolve`; there is nothing to hide
            if _may_be_secret(node.value, path):
                found.setdefault(value, set()).add(path)
            for login in logins(value):
                found.setdefault(login, set()).add(path)

    _map(root, (), leaf)
    return {text: paths for text, paths in found.items() if text}


def written_secrets(root: Node) -> list[str]:
    """The keys whose secrets stand in the file itself, instead of a reference."""
    found: list[str] = []

    def leaf(node: Leaf, path: Route) -> None:
        if is_written_secret(path, node.value):
            found.append(dotted(path))

    _map(root, (), leaf)
    return found


def secret_values(values: Mapping[str, Any]) -> set[str]:
    """The secrets in a document whose references are resolved, also those that stand in the file itself: what secret keys hold, and logins."""
    found: set[str] = set()

    def look(value: Any, path: Route) -> None:
        if isinstance(value, Mapping):
            for key, item in value.items():
                look(item, (*path, key))
        elif isinstance(value, list):
            for i, item in enumerate(value):
                look(item, (*path, i))
        elif value is not None:
            text = str(value)
            is_whole = ends_as_secret(path, value) or (path[0] == "params" and isinstance(value, str) and is_secret(path))
            found.update(logins(text), [text] if is_whole else ())

    for section in SECTIONS:
        look(values.get(section), (section,))
    return found


def _may_be_secret(text: str, path: Route) -> bool:
    return is_secret(path) or "${file:" in text or any(is_secret_name(match[1]) for match in _VARIABLE.finditer(text))


def _map(node: Node, path: Route, leaf: Callable[[Leaf, Route], Any]) -> Any:
    if isinstance(node, Table):
        return {key: _map(entry.node, (*path, key), leaf) for key, entry in node.entries.items()}
    if isinstance(node, Items):
        return [_map(item, (*path, i), leaf) for i, item in enumerate(node.items)]
    return leaf(node, path)


def _value(inside: str, environ: Mapping[str, str], index: int) -> str:
    if inside.startswith("file:"):
        return _file(inside.removeprefix("file:"), index)
    name = _NAME.match(inside)
    rest = inside[name.end() :] if name else inside
    if name is None or (rest and not rest.startswith(":-")):
        hint = f"References are ${{NAME}}, ${{NAME:-default}} and ${{file:PATH}}. {ESCAPE_HINT}"
        raise Unresolved(f"'${{{inside}}}' is not a reference", hint, index)
    if "${" in rest:
        raise Unresolved("a default cannot contain another reference", "Set the variable instead.", index)
    value = environ.get(name[0])
    if rest:
        return value or rest.removeprefix(":-")
    if value is None:
        hint = f"Set it (`export {name[0]}=…`), or give a default: ${{{name[0]}:-…}}."
        raise Unresolved(f"environment variable {name[0]} is not set", hint, index)
    return value


def _file(name: str, index: int) -> str:
    hint = "The path is relative to the job file's folder; the file must be there where containers run."
    if "\0" in name:
        raise Unresolved("the name of a file holds a NUL character", hint, index)
    try:
        path = Path(name).expanduser()
    except RuntimeError as error:
        raise Unresolved(f"file {name}: {error}", hint, index) from None
    try:
        raw = read_regular(path, MAX_SECRET_BYTES + 1)
        if len(raw) > MAX_SECRET_BYTES:
            raise Unresolved(f"file {path} is larger than {MAX_SECRET_BYTES >> 10} KiB", "It should hold one value.", index)
        return raw.decode("utf-8").removesuffix("\n").removesuffix("\r")
    except OSError as error:
        raise Unresolved(f"file {path} cannot be read: {error.strerror}", hint, index) from None
    except UnicodeDecodeError:
        raise Unresolved(f"file {path} is not UTF-8 text", "It should hold one value.", index) from None


def _place_of(node: Leaf, index: int) -> Place | None:
    """Where the n-th `${` of a scalar stands, which may be lines below the scalar's start."""
    start, end = node.place, node.end
    if start is None or end is None:
        return start
    lines = (start.source.shown or start.source.text).replace("\r\n", "\n").split("\n")
    seen = 0
    for number in range(start.line, end.line + 1):
        row = number - start.source.first_line
        line = lines[row] if row < len(lines) else ""
        for match in _OPEN.finditer(line, start.column - 1 if number == start.line else 0):
            if seen == index:
                return Place(start.source, number, match.start() + 1)
            seen += 1
    return start
