"""A coordinator's settings, as values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from samzapy.model import lease_times
from samzapy.model.job_model import TaskModel
from samzapy.model.ownership import FirstRun


@dataclass(kw_only=True, frozen=True, slots=True)
class CoordinatorSettings:
    """Durations in seconds."""

    containers: int = 1
    standby: int = 0
    host_affinity_s: float = 5.0
    lease_s: float = lease_times.LEASE_MS / 1000
    max_restarts: int = 8
    restart_window_s: float = 300.0
    stop_timeout_s: float = 60.0
    register_timeout_s: float = 300.0  # a process imports the job's modules before it registers
    growth_s: float = 3.0
    tick_s: float = 0.05
    takeover: bool = False
    has_changelogs: bool = False
    memory_bytes: int = 0  # `containers.memory`
    oom_kills: Callable[[], int] = field(compare=False, default=lambda: 0)  # processes that the kernel killed for lack of memory, so far
    last_place: Callable[[int, int], str] = field(compare=False, default=lambda container, pid: "")  # where the process of a container was at its end


@dataclass(frozen=True, slots=True)
class Process:
    """This process, by what another coordinator needs to check whether it still runs."""

    host: str
    pid: int
    start: str
    is_gone: Callable[[str, int, str], bool] = field(compare=False, default=lambda host, pid, start: False)


@dataclass(frozen=True, slots=True)
class InputTopics:
    """The input topics: by topic id, name and partition count now; and `find_tasks`, which finds tasks that came since.

    `find_tasks` returns all tasks, or raises ConfigurationError where the job cannot go on with the partitions that there are now. `first_run`: what
    every run of the job must find as the first one found it; None: nothing is compared. `check` raises where a topic of the job is gone,
    and returns what is wrong with the settings of the internal ones ("": nothing). `timed`: those over which event time goes.
    """

    inputs: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    find_tasks: Callable[[], Mapping[str, TaskModel]] | None = None
    first_run: FirstRun | None = None
    check: Callable[[], str] | None = None
    timed: frozenset[str] = frozenset()
