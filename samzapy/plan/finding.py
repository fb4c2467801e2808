"""What a rule found that people are to be told: a hint, once it lasts (lasting_hints.py)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

ACT, LOOK, KNOW = "act", "look", "know"


@dataclass(frozen=True, slots=True)
class Finding:
    """`about`: of what, so that one finding is told from another of the same code. `detail`: more numbers, in words; `evidence`: for
    programs. `for_s`: for how long it had been so when it was found, where that is known."""

    code: str
    severity: str
    sentence: str
    evidence: Mapping[str, Any]
    remedy: str = ""
    about: str = ""
    detail: str = ""
    for_s: float = 0.0


def also(so: str, others: int) -> str:
    """The sentence that counts the other tasks of which the same is true: `so`, and how many; nothing where there is none."""
    return f" {so} {'one other task' if others == 1 else f'{others} other tasks'}." if others else ""
