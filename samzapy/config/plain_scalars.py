"""What a plain scalar of YAML 1.2 means. Whole numbers are read only in the one way that writes back the same (`010`, `+1`, `0x1f`, `1_000` are text),
so no reader sees another number. Others are numbers, not texts: `1.10` is 1.1, but for what Kafka's client and Spark read (reader.py).

A module of its own: containers read settings that came out of references, and never YAML, whose library they need not import.
"""

from __future__ import annotations

import math
import re

from samzapy.config.tree import Plain

_NULL = frozenset({"", "~", "null", "Null", "NULL"})
_TRUE = frozenset({"true", "True", "TRUE"})
_FALSE = frozenset({"false", "False", "FALSE"})
_INT = re.compile(r"-?(?:0|[1-9][0-9]{0,18})", re.ASCII)
_FLOAT = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]{1,3})?", re.ASCII)


def read_scalar(text: str) -> Plain:
    """What a plain scalar means: null, true, false, a whole number, a number, or text."""
    if text in _NULL:
        return None
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    if _INT.fullmatch(text) and text != "-0":
        return int(text)
    if _FLOAT.fullmatch(text) and math.isfinite(float(text)) and not _INT.fullmatch(text) and ("." in text or "e" in text.lower()):
        return float(text)
    return text
