"""`--set a.b=c`: one key that overrides the files. Values are YAML scalars, list items go by index, the index after the last one appends.

Dots part the path, except inside `kafka` and `spark.conf`, whose own keys are dotted: there the rest is one key.
"""

from __future__ import annotations

import re
from pathlib import Path

from samzapy.config.errors import Problem
from samzapy.config.kafka_keys import GROUPS
from samzapy.config.reader import Stop, parse
from samzapy.config.samza_keys import ours_for
from samzapy.config.secrets import is_secret
from samzapy.config.tree import Entry, Items, Leaf, Node, Place, Route, Source, Table, hide_secrets

NAME = "--set"
FREE = ("params", "kafka", "spark")  # sections that hold what others read; there an empty value is null
Step = tuple[str, int]  # a part of the path, and its zero-based column


def apply_set(root: Node, number: int, text: str, folder: Path, problems: list[Problem]) -> Node:
    """The tree with the `number`-th `--set` applied; its positions are `--set:<number>:<column>`."""
    key, equals, value = text.partition("=")
    source = Source(NAME, text, folder, first_line=number)
    if not equals or not key.strip():
        problems.append(source.place(0, 0).problem((), f"expected KEY=VALUE, found {key!r}", "For example --set commit.interval=100ms."))
        return root
    steps = split_path(key)
    path: Route = tuple(part for part, _ in steps)
    if is_secret(path):
        source.hide(source.place(0, len(key) + 1), source.place(0, len(text)))
    source.parsed = True
    samza = ours_for((key.strip(),)) if key.partition(".")[0] in ("job", "task", "app") else None
    if samza:
        problems.append(source.place(0, 0).problem((key.strip(),), f"{samza[0]!r} is a key of Samza", f"In samzapy it is {samza[1]}."))
        return root
    empty = next((column for part, column in steps if not part), None)
    if empty is not None:
        problems.append(source.place(0, empty).problem((), f"an empty part in {key!r}", "Parts are separated by single dots."))
        return root
    if not value.strip() and path[0] not in FREE:  # an unset variable of a shell: `id=` would mean the job with the default id
        said = "Give it a value; an empty text is '\"\"', and null leaves the key at its default."
        problems.append(source.place(0, len(key) + 1).problem(path, "the value is empty", said))
        return root
    if not value.lstrip().startswith(("'", '"', "[", "{")) and (comment := re.search(r"(?:^|\s)#", value)):
        said = "Put the value in quotes, within those of the shell: --set 'KEY=\"a #1\"'."
        problems.append(source.place(0, len(key) + comment.end()).problem(path, "text after # is a comment in YAML, and would be left out", said))
        return root
    try:
        node = _value(source, number, len(key) + 1, value, path, problems)
        return _laid(root, steps, 0, node, source)
    except Stop as stop:
        problems.append(stop.problem)
        return root


def split_path(key: str) -> list[Step]:
    """The parts of a dotted key with their columns."""
    parts = key.split(".")
    whole_from = len(parts)
    if parts[0] == "kafka":
        whole_from = 2 if len(parts) > 2 and parts[1] in GROUPS else 1
    elif parts[:2] == ["spark", "conf"]:
        whole_from = 2
    if len(parts) > whole_from:
        parts = [*parts[:whole_from], ".".join(parts[whole_from:])]
    steps, column = [], 0
    for part in parts:
        steps.append((part, column))
        column += len(part) + 1
    return steps


def _value(source: Source, number: int, start: int, text: str, path: Route, problems: list[Problem]) -> Node:
    """The value as YAML, with its places in the whole of what was given."""
    inner = Source(NAME, text, source.folder, number, start + 1, source.text, source.secrets, parsed=True)
    node = parse(inner, problems, path)
    if is_secret(path):
        return node if node is not None else Leaf(None, inner.place(0, 0))
    hide_secrets(node) if node is not None else None
    return node if node is not None else Leaf(None, inner.place(0, 0), inner.place(0, len(text)))


def _laid(below: Node | None, steps: list[Step], depth: int, value: Node, source: Source) -> Node:
    if depth == len(steps):
        return value
    part, column = steps[depth]
    place = source.place(0, column)
    if isinstance(below, Leaf) and below.value is None:
        below = None
    if below is None and part == "0":
        below = Items((), place)
    if isinstance(below, Items):
        return _item(below, steps, depth, value, source, place)
    if below is not None and not isinstance(below, Table):
        path = tuple(p for p, _ in steps[: depth + 1])
        raise Stop(place.problem(path, f"{'.'.join(str(p) for p in path[:-1])!r} is a single value, it has no keys", "Set the whole value."))
    entries = dict(below.entries) if below is not None else {}
    node = _laid(entries[part].node if part in entries else None, steps, depth + 1, value, source)
    entries[part] = Entry(place, node)
    return Table(entries, below.place if below is not None else place)


def _item(below: Items, steps: list[Step], depth: int, value: Node, source: Source, place: Place) -> Node:
    part = steps[depth][0]
    count = len(below.items)
    if not part.isascii() or not part.isdigit() or len(part) > 6 or int(part) > count:
        path = tuple(p for p, _ in steps[: depth + 1])
        hint = f"There are {count}: 0 to {count - 1}; {count} adds one." if count else "It is empty; 0 adds the first."
        raise Stop(place.problem(path, f"expected an index of the list, found {part!r}", hint))
    index = int(part)
    old = below.items[index] if index < count else None
    node = _laid(old, steps, depth + 1, value, source)
    return Items((*below.items[:index], node, *below.items[index + 1 :]), below.place)
