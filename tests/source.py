"""The code as it stands, for tests of what is written in it: each file is read and parsed once in a process."""

from __future__ import annotations

import ast
import functools
from pathlib import Path


@functools.cache
def text_of(path: Path) -> str:
    """A file's text."""
    return path.read_text()


@functools.cache
def tree_of(path: Path) -> ast.Module:
    """The syntax tree of a module. It is everybody's: not to be changed."""
    return ast.parse(text_of(path))
