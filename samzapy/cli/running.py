"""A run's process, from its job file to its end: what is refused before anything starts, the coordinator, its listeners, signals."""

from __future__ import annotations

import errno
import logging
import os
import signal
import ssl
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from samzapy import __version__, failpoints
from samzapy.api import exit_codes
from samzapy.api.errors import ConfigurationError, LauncherError
from samzapy.cli.apart import Apart, StopTimes
from samzapy.cli.check_code import check_code
from samzapy.cli.common import Relayed, as_called, say, to_look
from samzapy.cli.job import Job
from samzapy.cli.jobs import jobs_of
from samzapy.cli.run_refusals import refuse_before_topics
from samzapy.cli.run_watch import RunWatch
from samzapy.cli.this_process import this_process, this_user
from samzapy.cli.web_listener import context_of, fixed_tokens, name_of
from samzapy.config.secrets import without_secrets
from samzapy.container.crash_place import left_by
from samzapy.container.process import open_files_limit
from samzapy.coordinator.control_app import control_app, control_connections
from samzapy.coordinator.history import RunFacts
from samzapy.coordinator.host_names import HostNames
from samzapy.coordinator.http import Listener
from samzapy.coordinator.job_coordinator import JobCoordinator
from samzapy.coordinator.switchboard import Switchboard
from samzapy.coordinator.token import delete_old_tokens, delete_token, token_path, write_token
from samzapy.kafka.own_certificate import own_certificate
from samzapy.log_form import TEXT
from samzapy.log_output import notes
from samzapy.memory import exclude_what_is_there, oom_kills
from samzapy.model.names import LOCALHOST
from samzapy.model.offsets import TopicPartition
from samzapy.ops.acls import warn_of_missing
from samzapy.ops.made_again import refuse_to_make_again
from samzapy.ops.prepare_topics import checked_topics, create_topics, grown_tasks, prepare_topics, topics_to_make
from samzapy.ops.schemas import prepare_schemas
from samzapy.ops.unknown_records import remove_unknown_records
from samzapy.plan.assignment import check_slots
from samzapy.plan.bounded_run import run_ends
from samzapy.ports import Launcher, Log
from samzapy.private_files import private_directory
from samzapy.store.problems import KEPT, StoreDiskFull
from samzapy.web.about import about_of
from samzapy.web.app import web_app
from samzapy.web.cluster import Cluster
from samzapy.web.contents import Contents
from samzapy.web.live import Live
from samzapy.web.looking import Looking
from samzapy.wiring.container import trace_path
from samzapy.wiring.coordinator import (
    container_payload,
    coordinator_settings,
    inline_launcher,
    input_topics,
    is_one_host,
    process_launcher,
    spark_launcher,
)
from samzapy.wiring.job_topics import JobTopics
from samzapy.wiring.local_state import local_state

LOG = logging.getLogger("samzapy")
LOOPBACK = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class How:
    """What the options of `samzapy run` say. `local`: without Spark; `inline`: in this process. `creates`: missing outputs, too."""

    local: bool
    inline: bool = False
    until_end: bool = False
    takeover: bool = False
    profile: Path | None = None
    log_format: str = TEXT
    creates: bool = False
    arguments: tuple[str, ...] = ()  # that name the job: its files, and single keys

    @property
    def options(self) -> str:
        """Those that say where containers run; "" with Spark."""
        return "--inline" if self.inline else "--local" if self.local else ""

    def words(self, master: str) -> str:
        """Where containers run and until when, as the options say it. `master`: Spark's."""
        return (self.options or f"Spark at {master}") + (" --until-end" if self.until_end else "") + (" --takeover" if self.takeover else "")


class Run:
    """One run of a job, in this process. `tell_url`: is told where the run can be asked, once it has the lease."""

    def __init__(self, job: Job, run_id: str, how: How, tell_url: Callable[[str], None]) -> None:
        self._job = job
        self._run_id = run_id
        self._settings = job.settings
        self._how = how
        self._tell_url = tell_url
        self._signals: list[int] = []
        self._killed_at: float | None = None
        self._tls: ssl.SSLContext | None = None

    def run(self) -> int:
        """Until it ends; the exit code."""
        failpoints.arm(os.environ)
        open_files_limit()

        # Everything that can be refused is refused before a process is started; and a run that is refused, by Spark too, has created no topic.
        settings, log = self._settings, self._job.log
        self._tls = context_of(settings.web)
        if self._how.profile and is_one_host(settings, local=self._how.local):
            _check_folder(self._how.profile)
        refuse_to_make_again(settings, log, self._job.clock)
        made = topics_to_make(settings, log) if self._how.creates else {}
        tasks = checked_topics(settings, log, self._job.clock, made)
        refuse_before_topics(self._job.loaded, log, self._job.clock)
        prepare_schemas(settings, self._job.loaded.folders)
        warn_of_missing(settings, log)
        cluster_id = self._job.cluster_id()
        wanted = coordinator_settings(settings, len(tasks), takeover=self._how.takeover)
        own_state: Path | None = None
        if is_one_host(settings, local=self._how.local):
            own_state = local_state(settings, cluster_id, LOCALHOST)
            wanted = replace(wanted, oom_kills=oom_kills, last_place=lambda number, pid: left_by(trace_path(settings, cluster_id, LOCALHOST, number), pid))
        self._warn_of_idle(wanted.containers)
        read = [p for t in tasks.values() for p in t.inputs if p.topic in JobTopics.of(settings).inputs]
        first = {one.topic for one in settings.inputs if one.bootstrap}
        ends = run_ends(read, made, ends_now([p for p in read if p.topic not in made], log, first)) if self._how.until_end else None

        run_id = self._run_id
        token_file = token_path(Path(settings.state.dir), cluster_id, str(self._job.names), run_id)
        token = _new_token(token_file, settings.state.dir, own_state)
        launcher: Launcher | None = None
        coordinator: JobCoordinator | None = None
        try:
            launcher = self._launcher()
            if not self._how.local and not self._how.takeover:  # the run that is replaced may hold the slots until it is fenced
                self._check_slots(wanted.containers, launcher.slots(wanted.containers))
            for name in create_topics(settings, log, self._job.clock) if self._how.creates else ():
                say(f"created {name}")
            tasks = prepare_topics(settings, log, self._job.clock)
            remove_unknown_records(settings, log, self._job.clock)
            loaded = self._job.loaded
            payload = container_payload(
                settings, loaded.document, loaded.folders, cluster_id, token, local=self._how.local, profile=self._how.profile,
                log_format=self._how.log_format,
            )
            begun_with = len(tasks)
            topics = input_topics(settings, len(tasks), lambda: grown_tasks(settings, log, begun_with), log, self._job.clock)
            coordinator = JobCoordinator(
                job=self._job.names,
                run_id=run_id,
                tasks=tasks,
                payload=payload,
                ends=ends,
                settings=wanted,
                log=log,
                clock=self._job.clock,
                launcher=launcher,
                process=this_process(),
                is_alive=self._job.answers,
                input_topics=topics,
                has_begun=partial(self._has_begun, token_file),
                facts=self._run_facts(),
            )
            return self._until_over(coordinator, launcher, token, token_file, len(tasks))
        finally:
            if coordinator is None:  # nobody else does it
                if launcher is not None:
                    launcher.close()
                _delete(token_file)

    def _until_over(self, coordinator: JobCoordinator, launcher: Launcher, token: str, token_file: Path, tasks: int) -> int:
        """Listen for people and containers while the job runs; the exit code."""
        web = self._settings.web
        control_host = str(getattr(launcher, "driver_host", LOOPBACK))  # where containers can reach this driver
        switchboard = Switchboard()
        looking = Looking(coordinator.roster, switchboard)
        about = about_of(self._job.loaded, as_called("JOB.yaml"), to_look())
        live = Live(coordinator, about, notes, looking.hasten, self._how.options, partial(check_code, self._how.arguments))
        contents = Contents(
            self._settings, self._job.loaded.folders, self._job.log, self._job.clock, note=live.note, this_run=coordinator.history.record,
            file=lambda: [origin.to_json() for origin in self._job.again().origins],
        )  # fmt: skip
        cluster = Cluster(lambda: jobs_of(self._job.log))
        names = HostNames(web.host, web.names)
        app = web_app(live, live, contents, token, names, looking, cluster, fixed_tokens(web))
        listeners = [
            Listener(app, web.host, web.port, tls=self._tls, name=name_of(web)),
            Listener(control_app(coordinator.roster, token, switchboard), control_host, 0, control_connections(tasks)),
        ]
        coordinator.listens_at(listeners[0].url, listeners[1].url)
        for listener in listeners:
            listener.start()
        self._take_signals(coordinator)
        is_shown = not self._how.inline and self._how.log_format == TEXT
        here = is_one_host(self._settings, local=self._how.local)
        watch = RunWatch(
            coordinator.roster, self._job.log, self._job.clock, self._job.names.checkpoint_topic, is_shown=is_shown, is_elsewhere=not here,
            certificate=lambda: own_certificate(self._settings.kafka_client),
        )
        try:
            with watch:
                code = Apart(
                    coordinator.run, lambda: self._facts(coordinator), launcher.close, self._settings.commit.timeout_ms / 1000, self._job.clock
                ).run()
            if code == 0:  # the last words of a run that failed are why
                say(watch.summary(has_stages=bool(JobTopics.of(self._settings).internal)))
        finally:
            switchboard.close()
            for listener in listeners:
                listener.stop()
            _delete(token_file)
        return code or exit_codes.of_run(None, self._signals)

    def _has_begun(self, token_file: Path, url: str) -> None:
        exclude_what_is_there()
        delete_old_tokens(token_file)
        self._tell_url(url)

    def _run_facts(self) -> RunFacts:
        config = [origin.to_json() for origin in self._job.loaded.origins]
        master = str(self._settings.spark.master)
        return RunFacts(started_by=this_user(), how=self._how.words(master), version=__version__, config=config, hide=without_secrets)

    def _facts(self, coordinator: JobCoordinator) -> StopTimes:
        return StopTimes(coordinator.seen_at, coordinator.roster.stop_asked_at, self._killed_at)

    def _launcher(self) -> Launcher:
        if self._how.inline:
            return inline_launcher()
        if self._how.local:
            return process_launcher(Relayed())
        say("starting Spark …")
        started = time.monotonic()
        launcher = spark_launcher(self._settings)
        say(f"Spark runs ({time.monotonic() - started:.1f} s)")
        return launcher

    def _check_slots(self, containers: int, slots: int | None) -> None:
        try:
            check_slots(containers, slots, self._settings.spark.master)
        except LauncherError as error:
            other = self._job.lease()
            if slots or other is None or other.ended:
                raise
            raise LauncherError(
                f"{error.message} Another run of this job, process {other.pid} on {other.host}, has not ended, and may hold them.",
                f"Stop that run with `samzapy stop JOB.yaml`. If it does not answer, end its process on {other.host}: `kill -9 {other.pid}`. If "
                "that run is not the reason: "
                f"{error.remedy[0].lower()}{error.remedy[1:]}",
            ) from None

    def _warn_of_idle(self, containers: int) -> None:
        if self._settings.containers.standby and is_one_host(self._settings, local=self._how.local):
            LOG.warning("containers.standby: no warm copies are kept: all containers are on this host, and a copy belongs on another one")
        if containers < self._settings.containers.count:
            told = "containers.count is %d, but the job has only %d tasks: containers that would have none are not started"
            LOG.warning(told, self._settings.containers.count, containers)

    def _take_signals(self, coordinator: Any) -> None:
        def handle(number: int, _: Any) -> None:
            if number == signal.SIGHUP and self._signals:
                return  # when a terminal closes, its shell sends one and the kernel another
            self._signals.append(number)
            if len(self._signals) == 1:
                say("stopping after a final commit (interrupt again to stop now)")
                # not here: the handler may have interrupted the holder of the coordinator's lock
                threading.Thread(target=coordinator.request_stop, args=(_signal_named(number),), daemon=True).start()
            else:
                self._killed_at = self._killed_at or self._job.clock.monotonic()
                coordinator.kill_now()

        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:  # `nohup` has it ignored
                signal.signal(number, handle)


def _signal_named(number: int) -> str:
    return f"signal {signal.Signals(number).name}" + (" (Ctrl-C)" if number == signal.SIGINT else "")


def ends_now(partitions: Iterable[TopicPartition], log: Log, whole: Collection[str]) -> Mapping[str, int]:
    """The ends of topics: all that is committed now. Says so if an open transaction hides more records. `whole`: topics, as those of tables, that are read
    to what is written now: where a transaction is open, the run waits for its end."""
    with log.admin() as admin, log.restore_consumer("ends") as consumer:
        written = admin.high_watermarks(
            partitions
        )  # first: records written between the two requests must not look as if a transaction hid them
        ends = {partition: bounds.end for partition, bounds in consumer.bounds_of(written).items()}
    for partition, end in sorted(ends.items()):
        if end < written[partition]:
            waits = "the run waits until that transaction has ended, because this topic is read before the others"
            then = waits if partition.topic in whole else "that transaction and the records after it are not part of this run"
            LOG.warning("%s: another application's transaction is open at offset %d; %s", partition, end, then)
    return {str(partition): written[partition] if partition.topic in whole else end for partition, end in ends.items()}


def _check_folder(profile: Path) -> None:
    try:
        profile.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigurationError(f"--profile {profile}: {error.strerror}.", "Name a folder that this user can write to.") from None


def _delete(token_file: Path) -> None:
    if failed := delete_token(token_file):
        LOG.warning("%s", failed)


def _new_token(path: Path, state: Path, own_state: Path | None) -> str:
    """The run's token, written; the first thing that needs the state directory, so what is wrong with that shows here.

    Args:
        own_state: the folder of the job's local stores, if its containers run on this host.

    Raises:
        StoreDiskFull: a later start may find room: the exit code says so to what starts the job again. ConfigurationError: anything else.
    """
    try:
        if own_state is not None:
            private_directory(own_state, state, make=False)
        return write_token(path, state)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise StoreDiskFull(f"state.dir {state}: {error.strerror}.", f"Make room, or choose another `state.dir`; {KEPT}") from None
        raise ConfigurationError(
            f"state.dir {state} cannot be used: {error.filename or path}: {error.strerror}.",
            "Name a directory that this user can write to.",
        ) from None
