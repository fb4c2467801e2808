"""A duration as people read it, in the page's words (`seconds` of page/lib/format.js)."""

from __future__ import annotations


def duration(s: float) -> str:
    """In the unit that suits it."""
    if s < 1:
        return f"{max(1, round(1000 * s))} ms" if s else "0 s"
    if s < 10:
        return f"{s:.1f} s"
    if s < 120:
        return f"{s:.0f} s"
    if s < 7200:
        return f"{s / 60:.0f} min"
    return f"{s / 3600:.1f} h" if s < 172_800 else f"{s / 86_400:.0f} days"
