"""The job's numbers in Prometheus' text form, made from the containers' last reports when somebody asks."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric, SummaryMetricFamily

ILLEGAL = re.compile(r"[^a-zA-Z0-9_]")


class _Collector:
    def __init__(self, status: Mapping[str, Any], reports: Mapping[int, Mapping[str, Any]]) -> None:
        self._status = status
        self._reports = reports
        self._job = f"{status['job']}-{status['id']}"

    def collect(self) -> Iterator[Metric]:
        yield from self._of_tasks()
        yield from self._of_containers()
        yield from self._of_users()

    def _of_tasks(self) -> Iterator[Metric]:
        labels = ["job", "container", "task"]
        processed = CounterMetricFamily(
            "samzapy_processed_records", "Records whose process() returned, since the container started.", labels=labels
        )
        skipped = CounterMetricFamily(
            "samzapy_skipped_records", "Records passed by (on_error: skip), since the container started.", labels=labels
        )
        dead = CounterMetricFamily(
            "samzapy_dead_letters", "Records set aside (on_error: dead_letter), since the container started.", labels=labels
        )
        lag = GaugeMetricFamily("samzapy_lag_records", "read_committed end minus next offset, over the task's partitions.", labels=labels)
        running = GaugeMetricFamily("samzapy_task_running", "1 while the task runs.", labels=labels)
        for task in self._status["tasks"]:
            values = [self._job, str(task["container"]), task["name"]]
            processed.add_metric(values, task["processed"])
            skipped.add_metric(values, task["skipped"])
            dead.add_metric(values, task["dead_letters"])
            running.add_metric(values, float(task["state"] == "RUNNING"))
            if task["lag"] is not None:
                lag.add_metric(values, task["lag"])
        yield from (processed, skipped, dead, lag, running)

    def _of_containers(self) -> Iterator[Metric]:
        labels = ["job", "container"]
        commits = SummaryMetricFamily("samzapy_commit_seconds", "Commits of the container and how long they took.", labels=labels)
        restarts = CounterMetricFamily("samzapy_container_restarts", "Restarts of the container in this run.", labels=labels)
        for number, report in self._reports.items():
            values = [self._job, str(number)]
            commits.add_metric(values, report.get("commits", 0), report.get("commit_seconds_sum", 0.0))
            restarts.add_metric(values, report.get("restarts", 0))
        yield from (commits, restarts)

    def _of_users(self) -> Iterator[Metric]:
        labels = ["job", "container", "task"]
        families: dict[str, Any] = {}
        for task in self._status["tasks"]:
            values = [self._job, str(task["container"]), task["name"]]
            metrics = task.get("metrics") or {}
            for name, n in metrics.get("counters", {}).items():
                _family(families, CounterMetricFamily, name, labels).add_metric(values, n)
            for name, x in metrics.get("gauges", {}).items():
                _family(families, GaugeMetricFamily, name, labels).add_metric(values, x)
            for name, t in metrics.get("timers", {}).items():
                _family(families, SummaryMetricFamily, f"{name}_seconds", labels).add_metric(values, t["count"], t["sum"])
        yield from families.values()


def _family(families: dict[str, Any], kind: Any, name: str, labels: list[str]) -> Any:
    full = f"samzapy_user_{ILLEGAL.sub('_', name)}"
    return families.setdefault(f"{kind.__name__} {full}", kind(full, "A metric of the task's own.", labels=labels))


def exposition(status: Mapping[str, Any], reports: Mapping[int, Mapping[str, Any]]) -> str:
    """The text that Prometheus scrapes."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Collector(status, reports))
    return generate_latest(registry).decode()
