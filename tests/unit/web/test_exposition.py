"""What Prometheus is told of a job, from its status document."""

from __future__ import annotations

import math
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from samzapy.web.exposition import metrics_text

TASK = {
    "name": "Partition 0", "state": "RUNNING", "container": 1, "lag": 7, "processed": 40, "skipped": 2, "dead_letters": 3, "behind_s": 0.5, "busy_s": 2.5,
    "stores": {"counts": {"restore": {"source": "local", "reason": "kept", "records": 12, "seconds": 0.25, "remaining": 8}}, "new": {}},
    "standby": [{"container": 2, "host": "b", "lag": 5}, {"container": 3, "host": "c", "lag": None}],
    "last_move": {"seconds": 1.5, "why": "home"},
    "metrics": {"counters": {"big ones": 4}, "gauges": {"level": 0.5, "ratio": None}, "timers": {"work": {"count": 2, "sum": 0.75}}},
}  # fmt: skip
WAITING = {**TASK, "name": "Partition 1", "state": "WAITING", "lag": None, "stores": {}, "standby": [], "metrics": {}}
WAITING.pop("last_move")
CONTAINER = {"id": 1, "restarts": 2, "affinity": {"hits": 5, "misses": 1, "reason": ""}, "state": "RUNNING", "memory_bytes": 64}
STATUS: dict[str, Any] = {"job": "views", "id": "1", "state": "RUNNING", "tasks": [TASK, WAITING], "containers": [CONTAINER]}
REPORTS = {
    1: {
        "commits": 9, "commit_seconds_sum": 0.9, "loop": {"process": 3.5}, "commit_why": {"interval": 8}, "sent": {"out": 70},
        "commit_parts": {"decide": {"counts": [0, 0, 4, 5, *[0] * 10], "sum": 0.3}}, "end_to_end": {"counts": [*[0] * 13, 2], "sum": 140.0},
    }
}  # fmt: skip


def told() -> dict[tuple[str, ...], float]:
    """Name and label values of each sample, without the job and in the order of the labels' names."""
    families = text_string_to_metric_families(metrics_text(STATUS, REPORTS))
    return {
        (s.name, *(v for k, v in sorted(s.labels.items()) if k != "job")): s.value
        for f in families
        for s in f.samples
        if not s.name.endswith("_created")
    }


def test_every_number_has_its_name() -> None:
    samples = told()

    first = ("1", "Partition 0")
    assert math.isnan(samples.pop(("samzapy_user_ratio", *first)))  # a gauge that is no finite number
    assert {
        ("samzapy_processed_records_total", *first): 40.0, ("samzapy_skipped_records_total", *first): 2.0,
        ("samzapy_dead_letters_total", *first): 3.0, ("samzapy_lag_records", *first): 7.0,
        ("samzapy_behind_seconds", *first): 0.5, ("samzapy_task_busy_seconds_total", *first): 2.5, ("samzapy_task_running", *first): 1.0,
        ("samzapy_task_moved_seconds", *first): 1.5, ("samzapy_standby_lag_records", "2", "Partition 0"): 5.0,
        ("samzapy_restored_records", "1", "local", "counts", "Partition 0"): 12.0,
        ("samzapy_restore_seconds", "1", "local", "counts", "Partition 0"): 0.25,
        ("samzapy_restore_remaining_records", "1", "local", "counts", "Partition 0"): 8.0,
        ("samzapy_user_big_ones_total", *first): 4.0, ("samzapy_user_level", *first): 0.5,
        ("samzapy_user_work_seconds_count", *first): 2.0, ("samzapy_user_work_seconds_sum", *first): 0.75,
    } == {key: value for key, value in samples.items() if "Partition 0" in key}  # fmt: skip
    assert {
        ("samzapy_commit_seconds_count", "1"): 9.0, ("samzapy_commit_seconds_sum", "1"): 0.9,
        ("samzapy_container_restarts_total", "1"): 2.0,
        ("samzapy_affinity_hits_total", "1"): 5.0, ("samzapy_affinity_misses_total", "1"): 1.0, ("samzapy_rss_bytes", "1"): 64.0,
        ("samzapy_end_to_end_seconds_count", "1"): 2.0, ("samzapy_end_to_end_seconds_sum", "1"): 140.0,
    } == {key: value for key, value in samples.items() if len(key) == 2 and key[1] == "1"}  # fmt: skip
    assert {
        ("samzapy_loop_seconds_total", "1", "process"): 3.5, ("samzapy_commits_total", "1", "interval"): 8.0,
        ("samzapy_sent_records_total", "1", "out"): 70.0, ("samzapy_commit_phase_seconds_bucket", "1", "0.025", "decide"): 4.0,
        ("samzapy_commit_phase_seconds_bucket", "1", "+Inf", "decide"): 9.0, ("samzapy_end_to_end_seconds_bucket", "1", "60.0"): 0.0,
        ("samzapy_end_to_end_seconds_bucket", "1", "+Inf"): 2.0, ("samzapy_job_state", "RUNNING"): 1.0, ("samzapy_tasks", "WAITING"): 1.0,
    }.items() <= samples.items()  # fmt: skip


def test_event_time_is_told_where_there_is_one() -> None:
    times = {"a+b": {"watermark": 1500, "behind_ms": 2, "ahead": 3, "waits_for": ""}, "c": {"watermark": None, "ahead": 0, "waits_for": ""}}
    families = text_string_to_metric_families(metrics_text({**STATUS, "tasks": [{**TASK, "time": times}]}, REPORTS))
    samples = {(s.name, s.labels["stage"]): s.value for f in families for s in f.samples if "stage" in s.labels and "_created" not in s.name}
    assert samples == {
        ("samzapy_watermark_seconds", "a+b"): 1.5, ("samzapy_ahead_records_total", "a+b"): 3.0, ("samzapy_ahead_records_total", "c"): 0.0,
    }  # fmt: skip


def test_what_is_not_known_is_not_told() -> None:
    of_the_waiting = {key[0]: value for key, value in told().items() if "Partition 1" in key}
    assert 0.0 == of_the_waiting["samzapy_task_running"]
    assert not {"samzapy_lag_records", "samzapy_task_moved_seconds", "samzapy_restored_records"} & set(of_the_waiting)


def test_a_container_that_said_nothing_yet_has_its_restarts() -> None:
    text = metrics_text(STATUS, {})
    assert 'samzapy_container_restarts_total{container="1",job="views-1"} 2.0' in text


def test_the_operators_of_a_program_are_counted_by_name() -> None:
    operators = {"1-filter": {"in": 5, "out": 3, "dropped": 2}, "totals": {"in": 3, "out": 3}, "4-to": {"in": 3}}
    text = metrics_text({**STATUS, "tasks": [{**TASK, "operators": operators}, WAITING]}, REPORTS)
    found = {
        (s.name.removeprefix("samzapy_operator_records_").removesuffix("_total"), s.labels["operator"]): s.value
        for family in text_string_to_metric_families(text)
        for s in family.samples
        if s.name.startswith("samzapy_operator_records_") and s.name.endswith("_total")
    }
    assert {
        ("in", "1-filter"): 5.0, ("out", "1-filter"): 3.0, ("dropped", "1-filter"): 2.0, ("in", "totals"): 3.0, ("out", "totals"): 3.0, ("in", "4-to"): 3.0,
    } == found  # fmt: skip
