"""What a program is compiled to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import CodeType

from samzapy.streams.functions import Function
from samzapy.streams.graph import Keeps, Node

FILE = str(Path(__file__).parent / "<program>")


@dataclass(frozen=True, slots=True)
class Compiled:
    """A program's code.

    Attributes:
        source: as text, for people; `code`: compiled.
        functions: by the name in the source, the user's functions, with their operators.
        reads, writes: by the name in the source, the operators whose stores' `get` and `put` they are.
        lines: the operator that each line of the source belongs to.
    """

    source: str
    code: CodeType
    functions: Mapping[str, tuple[Node, Function]]
    reads: Mapping[str, Keeps]
    writes: Mapping[str, Keeps]
    lines: Mapping[int, Node]
