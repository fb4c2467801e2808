"""What starts containers."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Protocol

from samzapy.model.process_end import ProcessEnd


class ContainerHandle(Protocol):
    """A launched container as its launcher sees it."""

    def exited(self) -> ProcessEnd | None:
        """None while it runs; else how it ended."""

    def kill(self) -> None:
        """Kill it; returns without waiting."""


class Launcher(Protocol):
    """Starts containers: as child processes or as Spark tasks."""

    def slots(self, needed: int) -> int | None:
        """How many containers can run at once; None = no limit known. May wait for hosts to register, longer while there are fewer slots than `needed`."""

    def hosts(self) -> Mapping[str, int | None]:
        """Hosts that can take containers now, with their slots (None: no limit known), without waiting.

        A host's slots include those in use. Hosts whose executors are being decommissioned are left out.
        """

    def leaving(self) -> Collection[str]:
        """Hosts that are being decommissioned: their containers keep running, but should be moved before the host ends. Without waiting."""

    def launch(self, container: int, payload: Mapping[str, Any], preferred_host: str | None) -> ContainerHandle: ...

    def close(self) -> None:
        """End all containers that still run."""
