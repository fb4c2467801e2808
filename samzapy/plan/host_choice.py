"""The host on which a container is started: the one that has its state if that is free in time, else any with a free slot.

No executor of that host yet is not the same as none ever, so it is waited for, as long as `containers.host_affinity` says.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Start:
    """Start it, on this host if possible (None: any). `miss`: why it is not the preferred one."""

    host: str | None
    miss: str = ""


@dataclass(frozen=True, slots=True)
class Wait:
    """Not yet."""

    why: str


@dataclass(frozen=True, slots=True)
class NoRoom:
    """Every slot has been taken for as long as the container may wait."""

    why: str


def choose_host(
    preferred: str | None,
    state: Mapping[str, int],
    slots: Mapping[str, int | None],
    used: Mapping[str, int],
    waited_s: float,
    affinity_s: float,
) -> Start | Wait | NoRoom:
    """`state`: by host, how much of the container's newest state is there. `slots`, `used`: by host; slots None: no limit."""
    free = {host: _free(n, used.get(host, 0)) for host, n in slots.items() if n is None or used.get(host, 0) < n}
    if preferred is not None and preferred in free:
        return Start(preferred)
    why = "" if preferred is None else f"no free slot on {preferred}" if preferred in slots else f"no executor on {preferred}"
    if preferred is not None and waited_s < affinity_s:
        return Wait(f"{why}, waiting for it")
    if free:
        best = max(sorted(free), key=lambda host: (state.get(host, 0), free[host]))
        return Start(best, f"{why} within {affinity_s:g} s" if why else "")
    why = f"all {sum(n or 0 for n in slots.values())} slots are taken" if slots else "no executor is available"
    return Wait(f"{why}, waiting for one") if waited_s < affinity_s or not slots else NoRoom(why)


def _free(slots: int | None, used: int) -> int:
    return 1 << 30 if slots is None else slots - used
