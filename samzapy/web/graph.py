"""The job as a graph: inputs, the tasks, stores, outputs, and what flows between them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def graph_of(about: Mapping[str, Any], status: Mapping[str, Any]) -> dict[str, Any]:
    """Nodes and edges. A rate is in records a second; null: not known."""
    rates, tasks = status["rates"], status["tasks"]
    nodes: list[dict[str, Any]] = []
    edges: list[dict[str, Any]] = []
    is_only = len(about["inputs"]) == 1  # a task counts its records and its lag over all its inputs
    for topic in about["inputs"]:
        facts = {"partitions": _partitions(topic["topic"], tasks), "lag": _lag(tasks) if is_only else None}
        nodes.append({"id": f"input {topic['topic']}", "kind": "input", "name": topic["topic"], **facts, **topic})
        edges.append({"from": f"input {topic['topic']}", "to": "job", "rate": rates["in"] if is_only else None})
    us = [task["us"] for task in tasks if task["us"] is not None]
    nodes.append(
        {
            "id": "job", "kind": "job", "name": about["task"], "tasks": len(tasks), "containers": len(status["containers"]), "loop": rates["loop"],
            "us": round(sum(us) / len(us), 1) if us else None, "rate": rates["in"],
        }
    )  # fmt: skip
    for store in about["stores"]:
        nodes.append({"id": f"store {store['name']}", "kind": "store", **store})
        edges.append({"from": "job", "to": f"store {store['name']}", "rate": None})
    for topic in about["outputs"]:
        nodes.append({"id": f"output {topic['topic']}", "kind": "output", "name": topic["topic"], **topic})
        edges.append({"from": "job", "to": f"output {topic['topic']}", "rate": rates["sent"].get(topic["topic"], 0.0)})
    if about["dead_letters"]:
        count = sum(task["dead_letters"] for task in tasks)
        nodes.append({"id": "dead letters", "kind": "dead letters", "name": about["dead_letters"], "count": count})
        edges.append({"from": "job", "to": "dead letters", "rate": None})
    return {"nodes": nodes, "edges": edges, "operators": about.get("operators", [])}


def _partitions(topic: str, tasks: list[Mapping[str, Any]]) -> int:
    return len({text for task in tasks for text in task["partitions"] if text.partition(".")[2].rpartition(".")[0] == topic})


def _lag(tasks: list[Mapping[str, Any]]) -> int | None:
    lags = [task["lag"] for task in tasks]
    return None if None in lags else sum(lags)
