"""What a job's log says: its error lines, each of which must carry a code that the table of errors knows, and how often each code came.

Only samzapy's own lines count (a time of day, a level, perhaps with the container before it); Spark's have another form. A traceback that
passes through samzapy's files is an error line without a code; those of Spark's own processes, which are killed as well, are Spark's.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import takewhile

OURS = re.compile(r"^(?:container \d+ \| )?\d\d:\d\d:\d\d (?P<level>[A-Z]+)(?P<gap> +)(?P<text>.*)$")
OF_OURS = re.compile(r"\bsamzapy/(?:\w+/)*\w+\.py\b")
PREFIX = re.compile(r"^container \d+ \| ")
CODE = re.compile(r"\bSZ\d{3}\b")
TRACEBACK = "Traceback (most recent call last)"
BAD = ("ERROR", "CRITICAL")
REMEDY_AT = 10  # levels are padded to seven; where the text begins two further, it is the remedy of the line above
IN_DOUBT, FENCED, SUPERSEDED = "SZ311", "SZ312", "SZ313"


@dataclass(frozen=True, slots=True)
class Said:
    """`nameless`: error lines without a known code. `codes`: lines of any level by the code that they carry."""

    errors: int
    nameless: tuple[str, ...]
    codes: Counter[str]


def said(lines: Iterable[str], known: Iterable[str]) -> Said:
    """What these lines of a log say."""
    wanted, errors = set(known), 0
    nameless: list[str] = []
    codes: Counter[str] = Counter()
    told = list(lines)
    for number, line in enumerate(told):
        found = OURS.match(line.rstrip("\n"))
        here = {code for code in CODE.findall(line) if code in wanted}
        if found is not None:
            codes.update(here)
        if (TRACEBACK in line and _is_ours(told[number + 1 :])) or (found is not None and found["level"] in BAD):
            errors += 1
            is_remedy = found is not None and len(found["level"] + found["gap"]) == REMEDY_AT
            if not here and not is_remedy:
                nameless.append(line.rstrip("\n"))
    return Said(errors, tuple(nameless), codes)


def _is_ours(rest: Sequence[str]) -> bool:
    """Whether one of a traceback's frames, which are indented, is in samzapy."""
    frames = takewhile(lambda line: line.startswith(" "), (PREFIX.sub("", line) for line in rest))
    return any(OF_OURS.search(frame) for frame in frames)
