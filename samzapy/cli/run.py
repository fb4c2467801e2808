"""`samzapy run`."""

from __future__ import annotations

import logging
import os
import secrets
import signal
import threading
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from samzapy import failpoints
from samzapy.api.errors import ConfigurationError
from samzapy.cli.common import JobFile, MoreFiles, Relayed, Sets, say
from samzapy.cli.job import Job
from samzapy.cli.loading import with_master
from samzapy.cli.this_process import this_process
from samzapy.container.process import open_files_limit
from samzapy.coordinator.control_app import control_app, control_connections
from samzapy.coordinator.host_names import HostNames
from samzapy.coordinator.http import Listener
from samzapy.coordinator.job_coordinator import JobCoordinator
from samzapy.coordinator.settings import CoordinatorSettings, InputTopics
from samzapy.coordinator.token import token_path, write_token
from samzapy.coordinator.topic_watch import TopicWatch
from samzapy.coordinator.web_app import web_app
from samzapy.dev.java import find_java, java_for_spark
from samzapy.memory import oom_kills
from samzapy.model.offsets import TopicPartition
from samzapy.model.ownership import FirstRun
from samzapy.ops.access import warn_of_missing
from samzapy.ops.topics import grown_tasks, prepare_topics, refuse_to_make_again
from samzapy.plan.assignment import check_slots
from samzapy.ports import Launcher, Log
from samzapy.spark.settings import is_local
from samzapy.wiring import ENTRY, changelog_topic, topic_names

LOG = logging.getLogger("samzapy")
KILLED = 128
LOCALHOST = "localhost"
LOOPBACK = "127.0.0.1"


def run(
    file: JobFile,
    more: MoreFiles = None,
    sets: Sets = None,
    master: Annotated[str | None, typer.Option(help="Spark's master, in place of the job file's.", show_default=False)] = None,
    local: Annotated[bool, typer.Option("--local", help="Containers as child processes, without Spark.")] = False,
    until_end: Annotated[bool, typer.Option("--until-end", help="Stop by itself at the inputs' ends as they are now.")] = False,
    takeover: Annotated[bool, typer.Option("--takeover", help="Replace another run that seems alive.")] = False,
) -> int:
    """Run a job in the foreground. Ctrl-C: final commit, exit 0; a second one: stop now."""
    with Job(file, more, with_master(sets, local, master), classes=True) as job:
        return _Run(job, local, until_end, takeover).run()


class _Run:
    def __init__(self, job: Job, local: bool, until_end: bool, takeover: bool) -> None:
        self._job = job
        self._loaded = job.loaded
        self._settings = job.settings
        self._log = job.log
        self._local = local
        self._until_end = until_end
        self._takeover = takeover
        self._signals: list[int] = []

    def run(self) -> int:
        failpoints.arm(os.environ)
        open_files_limit()
        settings, containers = self._settings, self._settings.containers
        refuse_to_make_again(settings, self._log, self._job.clock)
        tasks = prepare_topics(settings, self._log)
        warn_of_missing(settings, self._log)
        job, run_id, clock = self._job.names, secrets.token_hex(8), self._job.clock
        count = min(containers.count, len(tasks))
        self._warn_of_idle(count)
        ends = ends_now([p for t in tasks.values() for p in t.inputs], self._log) if self._until_end else None
        cluster_id = self._job.cluster_id()
        token_file = token_path(Path(settings.state.dir), cluster_id, str(job), run_id)
        token = _new_token(token_file, settings.state.dir)
        launcher = self._launcher()
        coordinator: JobCoordinator | None = None
        try:
            if not self._local:
                check_slots(count, launcher.slots(), settings.spark.master)
            payload = {
                "entry": ENTRY, "document": self._loaded.document, "folders": [str(f) for f in self._job.loaded.folders],
                "host": LOCALHOST if self._local or is_local(settings.spark.master) else "",  # elsewhere the executor knows
                "cluster_id": cluster_id, "token": token,
            }  # fmt: skip
            pace = CoordinatorSettings(
                count, containers.standby, containers.host_affinity_ms / 1000, containers.heartbeat_ms / 1000, containers.lease_ms / 1000,
                containers.max_restarts, containers.restart_window_ms / 1000, stop_timeout_s=settings.commit.timeout_ms / 1000,
                takeover=self._takeover, has_changelogs=any(changelog_topic(settings, s) for s in settings.stores),
                memory_bytes=containers.memory_bytes, oom_kills=oom_kills,
            )  # fmt: skip
            process = this_process()
            coordinator = JobCoordinator(
                job, run_id, tasks, payload, ends, pace, self._log, clock, launcher, process, self._job.answers, self._input_topics(len(tasks))
            )
            names = HostNames(settings.web.host, settings.web.names)
            listeners = [
                Listener(web_app(coordinator, token, names), settings.web.host, settings.web.port),
                Listener(control_app(coordinator.roster, token), self._control_host(launcher), 0, control_connections(len(tasks))),
            ]
            coordinator.listens_at(listeners[0].url, listeners[1].url)
            for listener in listeners:
                listener.start()
            self._take_signals(coordinator)
            try:
                code = coordinator.run()
            finally:
                token_file.unlink(missing_ok=True)
                for listener in listeners:
                    listener.stop()
            return KILLED + self._signals[-1] if len(self._signals) > 1 and code == 0 else code
        finally:
            if coordinator is None:
                launcher.close()

    def _launcher(self) -> Launcher:
        if self._local:
            from samzapy.local.launcher import ProcessLauncher

            return ProcessLauncher(Relayed())
        from samzapy.spark.launcher import SparkLauncher
        from samzapy.spark.session import start_session

        settings = self._settings
        say("starting Spark …")
        started = time.monotonic()
        java = java_for_spark(find_java())
        session = start_session(
            settings.spark.master,
            {k: str(v) for k, v in settings.spark.conf.items()},
            f"samzapy {settings.job}-{settings.id}",
            str(java.home),
            max(5.0, settings.containers.host_affinity_ms / 1000),
        )
        say(f"Spark runs ({time.monotonic() - started:.1f} s)")
        return SparkLauncher(session)

    def _control_host(self, launcher: Launcher) -> str:
        """Where containers can reach this driver."""
        return str(getattr(launcher, "driver_host", LOOPBACK))

    def _warn_of_idle(self, containers: int) -> None:
        if self._settings.containers.standby and (self._local or is_local(self._settings.spark.master)):
            LOG.warning("containers.standby: no warm copies are kept: all containers are on this host, and a copy belongs on another one")
        if containers < self._settings.containers.count:
            LOG.warning("%d containers for %d tasks: the others are not started", self._settings.containers.count, containers)

    def _input_topics(self, tasks: int) -> Any:
        """The inputs as they are now, how to look for partitions that come later, and what is compared with the job's first run."""
        job = self._job.names
        with self._log.admin() as admin:
            facts = admin.topics([*topic_names(self._settings), job.checkpoint_topic, job.coordinator_topic])
        inputs = {i.topic: facts[i.topic] for i in self._settings.inputs}
        first_run = FirstRun(facts[job.checkpoint_topic].topic_id, tasks if self._settings.stores else 0)
        watch = TopicWatch(
            self._log, self._job.clock, {t: f.topic_id for t, f in facts.items()}, {t: f.partitions for t, f in inputs.items()}
        )
        known = {f.topic_id: (f.name, f.partitions) for f in inputs.values()}
        return InputTopics(known, lambda: watch.grown(lambda: grown_tasks(self._settings, self._log)), first_run, watch.check)

    def _take_signals(self, coordinator: Any) -> None:
        def handle(number: int, _: Any) -> None:
            self._signals.append(number)
            if len(self._signals) == 1:
                say("stopping: final commit (once more: stop now)")
                # not here: the handler may have interrupted the holder of the coordinator's lock
                threading.Thread(target=coordinator.request_stop, daemon=True).start()
            else:
                coordinator.kill_now()

        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, handle)


def ends_now(places: Iterable[TopicPartition], log: Log) -> Mapping[str, int]:
    """Where a bounded run ends: what is committed now; and it is said where more is written, but behind an open transaction."""
    with log.admin() as admin, log.restore_consumer("ends") as consumer:
        written = admin.high_watermarks(places)  # first: what is written in between is behind no open transaction
        ends = {place: bounds.end for place, bounds in consumer.bounds_of(written).items()}
    for place, end in sorted(ends.items()):
        if end < written[place]:
            LOG.warning(
                "%s: another application's transaction is open at %d; that transaction and the records after it are not part of this run", place, end
            )
    return {str(place): end for place, end in ends.items()}


def _new_token(path: Path, state: Path) -> str:
    """The run's token, written; the first thing that needs the state directory, so what is wrong with that shows here."""
    try:
        return write_token(path, state)
    except OSError as error:
        raise ConfigurationError(
            f"state.dir {state} cannot be used: {error.filename or path}: {error.strerror}.",
            "Name a directory that this user can write to.",
        ) from None
