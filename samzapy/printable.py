"""What others wrote, as a terminal or a log may show it: nothing in it moves a cursor, hides, or turns the line around.

Every text that leaves samzapy for a person goes through here: tables, records, messages, errors, log lines. Escaped are control characters
(C0, C1), what has no shape of its own (zero-width and bidirectional marks, such as U+202E), line separators, and halves of characters.
"""

from __future__ import annotations

import json
import logging
import sys
import unicodedata
from collections.abc import Callable
from typing import TextIO

UNSEEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})  # categories of Unicode
LINES = "\n\t"


def printable(text: str, keep: str = "") -> str:
    """The text with every such character as Python would write it (`\\x1b`, `\\u202e`), except those in `keep`."""
    return text if text.isprintable() else _replaced(text, keep, lambda c: c.encode("unicode_escape").decode())


def printable_lines(text: str) -> str:
    """A text of several lines: their ends, and tabs, stay."""
    return printable(text, LINES)


def printable_json(document: str) -> str:
    """A JSON document, in which such characters stand in texts only, as the same document."""
    return (
        document
        if document.isprintable()
        else _replaced(document, LINES, lambda c: json.dumps(c)[1:-1] if c > "\x7f" else f"\\u{ord(c):04x}")
    )


class StandardError(logging.StreamHandler[TextIO]):
    """A log's handler that writes to `sys.stderr` as it is at each line: one that stood in for it meanwhile may be closed by then."""

    def emit(self, record: logging.LogRecord) -> None:
        self.stream = sys.stderr
        super().emit(record)


def _replaced(text: str, keep: str, escape: Callable[[str], str]) -> str:
    return "".join(c if c in keep or unicodedata.category(c) not in UNSEEN else escape(c) for c in text)
