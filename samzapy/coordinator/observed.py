"""What follows from containers' reports and the times at which they came: rates, shares of their loops' time, and how that went so far.

Written when a report comes, so that a status costs no more than it has tasks. Callers hold the roster's lock.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

from samzapy.plan.pace import Pace, badge, behind_s, caught_up_in_s, eta_s, shares
from samzapy.ports import Clock

FINE_S, FINE = 2.0, 300  # ten minutes
COARSE_S, COARSE = 30.0, 720  # six hours
LOOK_S, TASKS = 1.0, 1000
LAG_S = 15.0  # how fast the lag grows is told over this time: a report may be some seconds old
RECENT_MS = 60_000  # the commits that are summed up


class Observed:
    """Paces of containers and tasks, and the history of the job's numbers."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._containers: dict[int, Pace] = {}
        self._tasks: dict[str, Pace] = {}
        self._lags: deque[tuple[float, int]] = deque()  # of the last LAG_S seconds
        self._looked_at = float("-inf")
        self._every_s = LOOK_S
        self._series = {FINE_S: deque[dict[str, Any]](maxlen=FINE), COARSE_S: deque[dict[str, Any]](maxlen=COARSE)}
        self._next_at = dict.fromkeys(self._series, 0.0)

    def take(self, container: int, report: Mapping[str, Any]) -> None:
        """A report came."""
        now = self._clock.monotonic()
        counters = {name: float(seconds) for name, seconds in report.get("loop", {}).items()}
        counters["sent"] = float(sum(report.get("sent", {}).values()))
        for topic, n in report.get("sent", {}).items():
            counters[f"sent {topic}"] = float(n)
        self._containers[container] = self._containers.get(container, Pace()).with_report(now, counters)
        for task in report.get("tasks", ()):
            done = {"processed": float(task.get("processed", 0)), "busy_s": float(task.get("busy_s", 0.0))}
            if task.get("lag") is not None:
                done["arrived"] = self._arrived(task["name"], done["processed"], task["lag"])
            self._tasks[task["name"]] = self._tasks.get(task["name"], Pace()).with_report(now, done)

    def _arrived(self, task: str, processed: float, lag: int) -> float:
        """How many records it has processed or has before it. The lag is asked for less often than records are counted, so this never goes back."""
        marks = self._tasks.get(task, Pace()).marks
        before = marks[-1].counters if marks else {}
        is_new = processed < before.get("processed", 0.0)
        return processed + lag if is_new else max(processed + lag, before.get("arrived", 0.0))

    # -- the parts of the status document ------------------------------------------------------------------------------------------------

    def container(self, number: int) -> dict[str, Any]:
        """What is added to a container's part of the status."""
        of_loop = shares(self._containers.get(number, Pace()).rates)
        return {"loop": of_loop, "badge": badge(of_loop)}

    def task(self, name: str, report: Mapping[str, Any]) -> dict[str, Any]:
        """What is added to a task's part of the status: records a second, the share of time that they take, microseconds for each, and how old
        the last one is while others wait."""
        rates = self._tasks.get(name, Pace()).rates if report else {}
        rate, busy = rates.get("processed"), rates.get("busy_s")
        return {
            "rate": None if rate is None else round(rate, 1),
            "arriving": round(rates["arrived"], 1) if "arrived" in rates else None,
            "busy": None if busy is None else round(busy, 4),
            "busy_s": report.get("busy_s"),
            "us": round(1e6 * busy / rate, 1) if rate and busy is not None else None,
            "behind_s": behind_s(report.get("lag"), int(report.get("event_ms", 0)), self._clock.now_ms()),
        }

    def restore(self, restore: Mapping[str, Any]) -> dict[str, Any]:
        """What is added to a restore that is under way: offsets a second, and the seconds that are left."""
        left_s = eta_s(restore)
        return {"rate": round(float(restore["remaining"]) / left_s, 1), "eta_s": left_s} if left_s else {}

    def job(self, tasks: Sequence[Mapping[str, Any]], commits: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """What the job does as a whole."""
        lags = [task["lag"] for task in tasks]
        lag = None if None in lags else sum(lags)
        behind = [task["behind_s"] for task in tasks if task["behind_s"] is not None]
        sent: dict[str, float] = {}
        for pace in self._containers.values():
            for name, rate in pace.rates.items():
                if name.startswith("sent "):
                    sent[name[5:]] = round(sent.get(name[5:], 0.0) + rate, 1)
        lag_rate = self._lag_rate()
        recent = [c for c in commits if c["at_ms"] >= self._clock.now_ms() - RECENT_MS]
        return {
            "in": round(sum(task["rate"] or 0.0 for task in tasks), 1), "out": round(sum(sent.values()), 1), "sent": sent,
            "lag": lag, "behind_s": max(behind, default=None), "lag_rate": round(lag_rate, 1),
            "caught_up_in_s": caught_up_in_s(lag, lag_rate),
            "loop": self._loop(), "commits": _summed_up(recent),
            "end_to_end": {
                "least_s": min((c["newest_s"] for c in recent if "newest_s" in c), default=None),
                "most_s": max((c["oldest_s"] for c in recent if "oldest_s" in c), default=None),
            },
        }  # fmt: skip

    def _loop(self) -> dict[str, float]:
        summed: dict[str, float] = {}
        for pace in self._containers.values():
            for phase, rate in pace.rates.items():
                summed[phase] = summed.get(phase, 0.0) + rate
        return shares(summed)

    # -- over time -----------------------------------------------------------------------------------------------------------------------

    @property
    def is_due(self) -> bool:
        """Whether to `look` again."""
        return self._clock.monotonic() - self._looked_at >= self._every_s

    def _lag_rate(self) -> float:
        if len(self._lags) < 2:
            return 0.0
        (began, first), (ended, last) = self._lags[0], self._lags[-1]
        return (last - first) / (ended - began)

    def look(self, tasks: Sequence[Mapping[str, Any]], rate: Mapping[str, Any]) -> None:
        """The job's numbers as they are now; every LOOK_S seconds, and the more seldom the more tasks there are. `rate`: as `job` gives them."""
        lag = rate["lag"]
        now = self._looked_at = self._clock.monotonic()
        self._every_s = LOOK_S * max(1.0, len(tasks) / TASKS)
        if lag is not None:
            self._lags.append((now, lag))
        while self._lags and now - self._lags[0][0] > LAG_S:
            self._lags.popleft()
        point = {"at_ms": self._clock.now_ms(), **{name: rate[name] for name in ("in", "out", "lag", "behind_s")}, **rate["loop"]}
        for step_s, points in self._series.items():
            if now >= self._next_at[step_s]:
                self._next_at[step_s] = now + step_s
                points.append(point)

    def series(self, step_s: float) -> list[dict[str, Any]]:
        """The job's numbers every FINE_S seconds for ten minutes, or every COARSE_S for six hours, oldest first."""
        return list(self._series[COARSE_S if step_s >= COARSE_S else FINE_S])


def _summed_up(commits: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    seconds = sorted(float(c["seconds"]) for c in commits)
    if not seconds:
        return {"count": 0, "p50_s": None, "p99_s": None}
    return {"count": len(seconds), "p50_s": seconds[len(seconds) // 2], "p99_s": seconds[min(len(seconds) - 1, int(len(seconds) * 0.99))]}
