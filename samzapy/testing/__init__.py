"""For tests of tasks: a harness that runs the real container on an in-memory log. Also what `samzapy chaos` does to a job."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from samzapy.testing.harness import Harness

__all__ = ["Harness"]

_HOMES = {"Harness": "harness"}


if not TYPE_CHECKING:  # a checker that saw this would take every misspelt name for one that is there

    def __getattr__(name: str) -> Any:
        if name in _HOMES:
            return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
