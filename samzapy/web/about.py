"""What a job is made of, from its job file: topics, stores, configuration."""

from __future__ import annotations

from typing import Any

from samzapy.config.load import LoadedJob
from samzapy.plan.on_error_policy import sets_aside
from samzapy.streams.picture import drawn
from samzapy.wiring.job_topics import job_of
from samzapy.wiring.program import graph_of


def about_of(loaded: LoadedJob, called: str = "", called_to_look: str = "") -> dict[str, Any]:
    """As plain values. `called`: what stands for JOB.yaml in commands; `called_to_look`: in those that only look."""
    settings, names = loaded.settings, job_of(loaded.settings)
    return {
        "job": names.name, "id": names.id, "called": called, "called_to_look": called_to_look,
        "task": (settings.task or settings.app or names.name).rpartition(":")[2],
        "inputs": [{"topic": i.topic, "bootstrap": i.bootstrap, "broadcast": i.broadcast, "serdes": f"{i.key} → {i.value}"} for i in settings.inputs],
        "outputs": [{"topic": o.topic, "serdes": f"{o.key} → {o.value}"} for o in settings.outputs],
        "stores": [{"name": name, "changelog": store.changelog, "serdes": f"{store.key} → {store.value}"} for name, store in settings.stores.items()],
        "operators": _operators(loaded),
        "dead_letters": names.dead_letter_topic if sets_aside(settings.on_error.then) else "",
        "config": [origin.to_json() for origin in loaded.origins],
        "guarantee": settings.commit.guarantee, "commit_interval_s": settings.commit.interval_ms / 1000,
        "containers": settings.containers.count,
    }  # fmt: skip


def _operators(loaded: LoadedJob) -> list[dict[str, Any]]:
    """Of a program of streams; a task has none."""
    return [] if loaded.settings.app is None else drawn(*graph_of(loaded.settings, loaded.folders))
