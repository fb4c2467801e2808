"""For tests of tasks and of samzapy itself: an in-memory log, a harness that runs the real container on it, a simulation of a whole job in
virtual time, and a proxy that makes the requests of a real Kafka's clients go wrong."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from samzapy.testing.faults import Rule
    from samzapy.testing.harness import Harness
    from samzapy.testing.proxy import KafkaProxy
    from samzapy.testing.simulation import Simulation

__all__ = ["Harness", "KafkaProxy", "Rule", "Simulation"]

_HOMES = {"Harness": "harness", "KafkaProxy": "proxy", "Rule": "faults", "Simulation": "simulation"}


if not TYPE_CHECKING:  # a checker that saw this would take every misspelt name for one that is there

    def __getattr__(name: str) -> Any:
        if name in _HOMES:
            return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
