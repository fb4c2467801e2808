"""The job's numbers in Prometheus' text form, made at each request from the containers' last reports."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from itertools import accumulate
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
    SummaryMetricFamily,
)

from samzapy.container.task_metrics import shown_name
from samzapy.model.durations import BUCKETS_S
from samzapy.model.states import TaskState

RESTORE = ["job", "container", "task", "store", "source"]
OF_TASKS: Mapping[str, tuple[Any, str, str]] = {
    "processed": (CounterMetricFamily, "processed_records", "Records whose process() returned, since the container started."),
    "skipped": (CounterMetricFamily, "skipped_records", "Records skipped (on_error: skip), since the container started."),
    "dead_letters": (CounterMetricFamily, "dead_letters", "Records set aside (on_error: dead_letter), since the container started."),
    "lag": (GaugeMetricFamily, "lag_records", "read_committed end minus next offset, over the task's partitions."),
    "behind_s": (GaugeMetricFamily, "behind_seconds", "How old the task's last processed record is while others wait; 0 while none do."),
    "busy_s": (CounterMetricFamily, "task_busy_seconds", "Seconds spent on processing the task's records, since the container started."),
    "running": (GaugeMetricFamily, "task_running", "1 while the task runs."),
    "moved": (GaugeMetricFamily, "task_moved_seconds", "How long no container ran the task when it was last moved."),
}


class _Collector:
    def __init__(self, status: Mapping[str, Any], reports: Mapping[int, Mapping[str, Any]]) -> None:
        self._status = status
        self._reports = reports
        self._job = f"{status['job']}-{status['id']}"

    def collect(self) -> Iterator[Metric]:
        yield from self._of_job()
        yield from self._of_tasks()
        yield from self._of_operators()
        yield from self._of_containers()
        yield from self._of_loops()
        yield from self._of_users()

    def _of_job(self) -> Iterator[Metric]:
        yield InfoMetricFamily("samzapy_build", "The version of samzapy that runs the job.", {"version": version("samzapy")})
        state = GaugeMetricFamily("samzapy_job_state", "The job's state, in the label state; the value is always 1.", labels=["job", "state"])
        state.add_metric([self._job, self._status["state"]], 1)
        yield state
        for what in ("containers", "tasks"):
            family = GaugeMetricFamily(f"samzapy_{what}", f"How many of the job's {what} are in a state.", labels=["job", "state"])
            for name, n in sorted(Counter(one["state"] for one in self._status[what]).items()):
                family.add_metric([self._job, name], n)
            yield family

    def _of_tasks(self) -> Iterator[Metric]:
        labels = ["job", "container", "task"]
        families = {key: kind(f"samzapy_{name}", text, labels=labels) for key, (kind, name, text) in OF_TASKS.items()}
        records = GaugeMetricFamily("samzapy_restored_records", "Changelog records that the last restore of a store read.", labels=RESTORE)
        seconds = GaugeMetricFamily("samzapy_restore_seconds", "How long the last restore of a store took.", labels=RESTORE)
        remaining = GaugeMetricFamily(
            "samzapy_restore_remaining_records", "Changelog offsets that a running restore has still to read.", labels=RESTORE
        )
        behind = GaugeMetricFamily("samzapy_standby_lag_records", "Changelog records that a warm copy has not read yet.", labels=labels)
        for task in self._status["tasks"]:
            values = [self._job, str(task["container"]), task["name"]]
            for key, family in families.items():
                if task.get(key) is not None:
                    family.add_metric(values, task[key])
            families["running"].add_metric(values, float(task["state"] == TaskState.RUNNING))
            if "last_move" in task:
                families["moved"].add_metric(values, task["last_move"]["seconds"])
            for store, store_status in task["stores"].items():
                if restore := store_status.get("restore"):
                    records.add_metric([*values, store, restore["source"]], restore["records"])
                    seconds.add_metric([*values, store, restore["source"]], restore["seconds"])
                    remaining.add_metric([*values, store, restore["source"]], restore.get("remaining", 0))
            for copy in task["standby"]:
                if copy["lag"] is not None:
                    behind.add_metric([self._job, str(copy["container"]), task["name"]], copy["lag"])
        yield from (*families.values(), records, seconds, remaining, behind, *self._of_times())

    def _of_times(self) -> Iterator[Metric]:
        """Event time, of tasks that have one."""
        labels = ["job", "container", "task", "stage"]
        watermark = GaugeMetricFamily("samzapy_watermark_seconds", "How far event time has come, in seconds since 1970.", labels=labels)
        ahead = CounterMetricFamily("samzapy_ahead_records", "Records too far ahead to move time at once, since the container started.", labels=labels)
        for task in self._status["tasks"]:
            for stage, time in task.get("time", {}).items():
                values = [self._job, str(task["container"]), task["name"], stage]
                if time["watermark"] is not None:
                    watermark.add_metric(values, time["watermark"] / 1000)
                ahead.add_metric(values, time["ahead"])
        yield from (watermark, ahead) if watermark.samples else ()

    def _of_operators(self) -> Iterator[Metric]:
        labels = ["job", "container", "task", "operator"]
        families = {
            "in": CounterMetricFamily("samzapy_operator_records_in", "Records that an operator of a program received.", labels=labels),
            "out": CounterMetricFamily("samzapy_operator_records_out", "Records that an operator of a program passed on.", labels=labels),
            "late": CounterMetricFamily("samzapy_operator_records_late", "Records that came too late for all windows of an operator.", labels=labels),
            "dropped": CounterMetricFamily("samzapy_operator_records_dropped", "Records that an operator of a program dropped.", labels=labels),
        }
        for task in self._status["tasks"]:
            for operator, counts in (task.get("operators") or {}).items():
                for key, family in families.items():
                    if key in counts:
                        family.add_metric([self._job, str(task["container"]), task["name"], operator], counts[key])
        yield from families.values()

    def _of_containers(self) -> Iterator[Metric]:
        labels = ["job", "container"]
        commits = SummaryMetricFamily("samzapy_commit_seconds", "Commits of the container and how long they took.", labels=labels)
        restarts = CounterMetricFamily("samzapy_container_restarts", "Restarts of the container in this run.", labels=labels)
        hits = CounterMetricFamily("samzapy_affinity_hits", "Starts of the container on its preferred host.", labels=labels)
        misses = CounterMetricFamily("samzapy_affinity_misses", "Starts of the container on another host than the preferred one.", labels=labels)
        for container in self._status["containers"]:
            values, report = [self._job, str(container["id"])], self._reports.get(container["id"], {})
            commits.add_metric(values, report.get("commits", 0), report.get("commit_seconds_sum", 0.0))
            restarts.add_metric(values, container["restarts"])
            hits.add_metric(values, container["affinity"]["hits"])
            misses.add_metric(values, container["affinity"]["misses"])
        yield from (commits, restarts, hits, misses)

    def _of_loops(self) -> Iterator[Metric]:
        labels = ["job", "container"]
        loop = CounterMetricFamily("samzapy_loop_seconds", "The run loop's time by what it did.", labels=[*labels, "phase"])
        why = CounterMetricFamily("samzapy_commits", "Commits by their cause.", labels=[*labels, "why"])
        sent = CounterMetricFamily("samzapy_sent_records", "Records handed to the producer.", labels=[*labels, "topic"])
        rss = GaugeMetricFamily("samzapy_rss_bytes", "Memory of the container's process.", labels=labels)
        phases = HistogramMetricFamily("samzapy_commit_phase_seconds", "Parts of commits: send, decide, apply.", labels=[*labels, "phase"])
        age = HistogramMetricFamily(
            "samzapy_end_to_end_seconds", "Age of records when their effect is committed: the newest and the oldest of each task and commit.",
            labels=labels,
        )  # fmt: skip
        for container in self._status["containers"]:
            values, report = [self._job, str(container["id"])], self._reports.get(container["id"], {})
            for family, counts in ((loop, report.get("loop", {})), (why, report.get("commit_why", {})), (sent, report.get("sent", {}))):
                for name, n in counts.items():
                    family.add_metric([*values, name], n)
            if container.get("memory_bytes") is not None:
                rss.add_metric(values, container["memory_bytes"])
            for phase, histogram in report.get("commit_parts", {}).items():
                phases.add_metric([*values, phase], *_buckets(histogram))
            if "end_to_end" in report:
                age.add_metric(values, *_buckets(report["end_to_end"]))
        yield from (loop, why, sent, rss, phases, age)

    def _of_users(self) -> Iterator[Metric]:
        labels = ["job", "container", "task"]
        families: dict[str, Any] = {}
        for task in self._status["tasks"]:
            values = [self._job, str(task["container"]), task["name"]]
            metrics = task.get("metrics") or {}
            for name, n in metrics.get("counters", {}).items():
                _family(families, CounterMetricFamily, name, labels).add_metric(values, n)
            for name, x in metrics.get("gauges", {}).items():
                _family(families, GaugeMetricFamily, name, labels).add_metric(values, math.nan if x is None else x)
            for name, t in metrics.get("timers", {}).items():
                _family(families, SummaryMetricFamily, f"{name}_seconds", labels).add_metric(values, t["count"], t["sum"])
        yield from families.values()


def _buckets(histogram: Mapping[str, Any]) -> tuple[list[tuple[str, float]], float]:
    """As Prometheus counts them: each bucket has what is below it, too."""
    bounds = [*map(str, BUCKETS_S), "+Inf"]
    return list(zip(bounds, accumulate(histogram["counts"]), strict=True)), histogram["sum"]


def _family(families: dict[str, Any], kind: Any, name: str, labels: list[str]) -> Any:
    full = shown_name(name)
    return families.setdefault(f"{kind.__name__} {full}", kind(full, "A metric of the task's own.", labels=labels))


def metrics_text(status: Mapping[str, Any], reports: Mapping[int, Mapping[str, Any]]) -> str:
    """The text that Prometheus scrapes."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Collector(status, reports))
    return generate_latest(registry).decode()
