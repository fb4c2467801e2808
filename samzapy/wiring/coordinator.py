"""A run's coordinator from its job's settings: its values, its launcher, what containers are started with, and what it watches."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from samzapy.api.errors import TopicMissing
from samzapy.config.schema import Settings
from samzapy.coordinator.settings import CoordinatorSettings, InputTopics
from samzapy.coordinator.topic_watch import TopicWatch
from samzapy.dev.java import find_java, java_for_spark
from samzapy.log_form import TEXT
from samzapy.model.job_model import TaskModel
from samzapy.model.names import LOCALHOST
from samzapy.model.ownership import FirstRun
from samzapy.plan.internal_topics import internal_topics
from samzapy.ports import Clock, Launcher, Log
from samzapy.spark.settings import is_local
from samzapy.wiring.container import ENTRY
from samzapy.wiring.job_topics import JobTopics

SHORTEST_WAIT_S = 5.0


def coordinator_settings(
    settings: Settings, tasks: int | None = None, *, takeover: bool = False
) -> CoordinatorSettings:
    """The coordinator's values. `tasks`: how many there are; no more containers than tasks are started. None: no container is started."""
    containers = settings.containers
    return CoordinatorSettings(
        containers=containers.count if tasks is None else min(containers.count, tasks),
        standby=containers.standby,
        host_affinity_s=containers.host_affinity_ms / 1000,
        lease_s=containers.lease_ms / 1000,
        max_restarts=containers.max_restarts,
        restart_window_s=containers.restart_window_ms / 1000,
        stop_timeout_s=settings.commit.timeout_ms / 1000,
        takeover=takeover,
        has_changelogs=bool(JobTopics.of(settings).changelogs),
        memory_bytes=containers.memory_bytes,
    )


def container_payload(
    settings: Settings, document: Mapping[str, Any], folders: Sequence[Path], cluster_id: str, token: str, *, local: bool, profile: Path | None = None,
    log_format: str = TEXT,
) -> dict[str, Any]:
    """What every container of a run is started with (JSON). Secrets are in it as references, but for the run's token.

    `log_format`: of the containers' logs. `profile`: the folder, on each container's host, that takes the profiles of the run loops.
    """
    return {
        "entry": ENTRY,
        "job": f"{settings.job}-{settings.id}",
        "log_format": log_format,
        "document": for_containers(document),
        "folders": [str(f) for f in folders],
        "host": LOCALHOST if is_one_host(settings, local=local) else "",  # elsewhere the executor knows
        "cluster_id": cluster_id,
        "token": token,
        **({"profile": str(profile.absolute())} if profile else {}),
    }


def for_containers(document: Mapping[str, Any]) -> dict[str, Any]:
    """The job file as containers get it. They have no web listener and no Spark session, so tokens and keys of these stay with the driver."""
    return {key: value for key, value in document.items() if key not in ("web", "spark")}


def is_one_host(settings: Settings, *, local: bool) -> bool:
    """Whether all containers run on the driver's host."""
    return local or is_local(settings.spark.master)


def process_launcher(output: Any) -> Launcher:
    """Containers as child processes; what they write goes to `output`."""
    from samzapy.local.launcher import ProcessLauncher

    return ProcessLauncher(output)


def inline_launcher() -> Launcher:
    """The container as a thread of this process."""
    from samzapy.local.inline import InlineLauncher

    return InlineLauncher()


def spark_launcher(settings: Settings) -> Launcher:
    """Containers as tasks of a Spark session, which is started here."""
    from samzapy.spark.launcher import SparkLauncher
    from samzapy.spark.session import start_session

    java = java_for_spark(find_java())
    session = start_session(
        settings.spark.master,
        {k: str(v) for k, v in settings.spark.conf.items()},
        f"samzapy {settings.job}-{settings.id}",
        str(java.home),
        max(SHORTEST_WAIT_S, settings.containers.host_affinity_ms / 1000),
    )
    return SparkLauncher(session)


def input_topics(
    settings: Settings, tasks: int, find_tasks: Callable[[], Mapping[str, TaskModel]], log: Log, clock: Clock
) -> InputTopics:
    """The inputs as they are now, how to look for partitions that come later, and what is compared with the job's first run.

    `find_tasks`: all tasks, with the partitions that there are when it is called.
    """
    names = JobTopics.of(settings)
    with log.admin() as admin:
        wanted = [*names.all, names.job.checkpoint_topic, names.job.coordinator_topic]
        facts = admin.topics(wanted)
    if missing := [topic for topic in wanted if topic not in facts]:
        raise TopicMissing(f"Kafka does not show topic {missing[0]}, which was there a moment ago.", "If nobody deleted it, start the job again.")
    inputs = {topic: facts[topic] for topic in names.read}
    first_run = FirstRun(facts[names.job.checkpoint_topic].topic_id, tasks if names.is_bound else 0)
    between = {topic: facts[topic].partitions for topic in names.internal}
    internal = internal_topics(names.job, tasks, names.changelogs.values(), names.dead_letters is not None, between=between)
    watch = TopicWatch(log, clock, {t: f.topic_id for t, f in facts.items()}, {t: f.partitions for t, f in inputs.items()}, internal, names.keyed)
    known = {f.topic_id: (f.name, f.partitions) for f in inputs.values()}
    timed = frozenset(topic for topics in settings.stages.timed for topic in topics) if settings.stages else frozenset()
    return InputTopics(known, lambda: watch.grown(find_tasks), first_run, watch.check, timed)
