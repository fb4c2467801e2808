"""Names that no other has: incarnations, launches, nonces. An argument wherever they are drawn, so that a simulation can draw them from a seed."""

from __future__ import annotations

import secrets


def random_id() -> str:
    """Sixteen hexadecimal digits of the system's randomness."""
    return secrets.token_hex(8)
