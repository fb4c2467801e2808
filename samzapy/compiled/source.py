"""The source of the compiled part, and which version of it was compiled."""

from __future__ import annotations

import zlib
from pathlib import Path

SOURCE = Path(__file__).with_name("hot_path.c")


def fingerprint() -> str:
    """Of the source as it is now."""
    return f"{zlib.crc32(SOURCE.read_bytes()):08x}"
