"""For tests of tasks and of samzapy itself: an in-memory log, and a harness that runs the real container on it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from samzapy.testing.harness import Harness

__all__ = ["Harness"]


def __getattr__(name: str) -> Any:
    if name == "Harness":
        from samzapy.testing.harness import Harness

        return Harness
    raise AttributeError(name)
