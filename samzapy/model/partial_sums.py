"""Of what there may be partial sums in an internal topic (streams/combining.py), as a program says it in the section `stages`, and which programs may meet."""

from __future__ import annotations

MADE, TAKEN = "made and taken: ", "taken: "


def said_of(sums_up: str, are_made: bool) -> str:
    """`sums_up`: what the window that takes them adds up, and how."""
    return f"{MADE if are_made else TAKEN}{sums_up}"


def are_same(one: str, other: str) -> bool:
    """Whether the windows of two programs take the same sums. ``""``: one takes none."""
    return one.removeprefix(MADE).removeprefix(TAKEN) == other.removeprefix(MADE).removeprefix(TAKEN)


def are_made(said: str) -> bool:
    return said.startswith(MADE)
