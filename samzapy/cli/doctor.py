"""`samzapy doctor`: gathers what `samzapy.ops.doctor` judges. Changes nothing, starts no JVM, and a check that fails does not hide the others."""

from __future__ import annotations

import importlib.metadata
import os
import re
import resource
import shlex
import shutil
import socket
import sys
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from samzapy import native
from samzapy.api.errors import ConfigurationError, SamzapyError
from samzapy.cli.common import AsJson, MoreFiles, Sets, as_called, named, print_json
from samzapy.cli.folding import folded, width_of
from samzapy.cli.job import Job
from samzapy.cli.loading import load
from samzapy.cli.run_refusals import what_a_run_refuses
from samzapy.clock import SystemClock
from samzapy.config.errors import ConfigError
from samzapy.config.extras import line_for
from samzapy.config.load import LoadedJob
from samzapy.config.schema import DEFAULT_STATE_DIR, Settings
from samzapy.config.spark_keys import NAMED_ELSEWHERE, OWNED
from samzapy.dev.java import OLDEST_VERSION, look_for_java
from samzapy.dev.places import state_dir
from samzapy.dev.spark import LocalSpark
from samzapy.dev.spark_probe import Master, ask_master
from samzapy.http_client import NO_ANSWER, ask
from samzapy.kafka.own_certificate import own_certificate
from samzapy.ops import doctor as rules
from samzapy.ops.acls import missing_access
from samzapy.ops.doctor import Check, State
from samzapy.ops.inspection import job_in_kafka
from samzapy.ops.prepare_topics import made_by_hand
from samzapy.ops.schemas import what_schemas_lack
from samzapy.ops.topic_rows import topic_rows
from samzapy.ops.transaction_timeout import limit_ms, try_init
from samzapy.plan.finding import ACT
from samzapy.ports import Log
from samzapy.private_files import private_directory
from samzapy.spark.settings import LOOPBACK, is_local, master_addresses
from samzapy.store.rocks import MAX_OPEN_FILES
from samzapy.wiring.clients import kafka_log

FAILED = 1
NEEDS_PYTHON = ">=3.11"
REST_PORT = 6066
WEB_PORT = 8080
PROBE_S = 3.0
_WIDTH = 120


def doctor(
    job: Annotated[
        Path | None, typer.Argument(metavar="[JOB.yaml]", help="A job file: also check what this job needs.", show_default=False)
    ] = None,
    more: MoreFiles = None,
    sets: Sets = None,
    as_json: AsJson = False,
) -> int:
    """Check this machine, or a job, and print a fix for each problem; exit code 1 if a job could not run."""
    checks = [replace(check, found=as_called(check.found), remedy=as_called(check.remedy)) for check in _checks(job, more, sets)]
    failed = rules.has_failed(checks)
    if as_json:
        rows = [{"name": c.name, "state": str(c.state), "found": c.found, "remedy": c.remedy} for c in checks]
        print_json({"ok": not failed, "checks": rows})
    else:
        for check in checks:
            print(_as_text(check))
    return FAILED if failed else 0


def _as_text(check: Check) -> str:
    indent = " " * 6
    text = textwrap.fill(f"{check.state:<4}  {check.name}: {check.found}", width_of(sys.stdout) or _WIDTH, subsequent_indent=indent, break_on_hyphens=False)
    return f"{text}\n" + folded(f"{indent}-> {check.remedy}", sys.stdout) if check.remedy else text


def _checks(job: Path | None, more: list[Path] | None, sets: list[str] | None) -> Iterator[Check]:
    yield from _machine()
    if job is None:
        yield _state_dir(Path(os.environ.get("SAMZAPY_STATE", DEFAULT_STATE_DIR)), True)
        yield _open_files(1)
        return
    try:
        loaded = load(job, more, sets, classes=True)
    except ConfigError as error:
        count, first = len(error.problems), error.problems[0].render().splitlines()[0]
        yield Check("job file", State.FAIL, first if count == 1 else f"{count} errors, the first: {first}", f"samzapy validate {as_word(job)}")
        return
    settings = loaded.settings
    yield Check("job file", State.OK, f"{job}: {settings.job}-{settings.id}")
    yield _state_dir(Path(settings.state.dir), _is_here(settings.spark.master))
    kafka, tasks = _kafka(loaded, job)
    yield from kafka
    yield from _schemas(loaded)
    containers = min(settings.containers.count, tasks) if tasks else settings.containers.count
    yield _open_files(len(settings.stores) * -(-(tasks or 1) // containers))
    yield from _spark(settings, containers)
    yield rules.check_web_host(settings.web.host)


# -- this machine ------------------------------------------------------------------------------------------------------------------------


def _machine() -> Iterator[Check]:
    try:
        needed = importlib.metadata.metadata("samzapy")["Requires-Python"]
        requirements = importlib.metadata.requires("samzapy") or []
    except importlib.metadata.PackageNotFoundError:
        needed, requirements = NEEDS_PYTHON, []
    yield rules.check_python(sys.version_info[:3], needed, sys.executable)
    if requirements:
        installed = {rules.normalised(d.name): d.version for d in importlib.metadata.distributions()}
        yield from rules.check_packages(requirements, installed)
    else:
        found = "samzapy runs from a folder and is not installed, so its requirements are unknown"
        yield Check("packages", State.WARN, found, line_for("spark"))
    yield rules.check_native(native.why_not)
    version, where = look_for_java()
    yield rules.check_java(version, where, OLDEST_VERSION)


def _state_dir(directory: Path, is_here: bool) -> Check:
    try:
        directory = directory.expanduser().absolute()
    except RuntimeError:
        found = f"{str(directory)!r} begins with the home directory of a user who is not known here"
        return Check("state.dir", State.FAIL, found, "Name a path that begins with /, or set HOME.")
    there = next(place for place in (directory, *directory.parents) if place.exists())
    try:
        private_directory(directory, directory, make=False)
    except ConfigurationError as error:
        return Check("state.dir", State.FAIL, error.message, error.remedy)
    is_writable = there.is_dir() and os.access(there, os.W_OK | os.X_OK)
    return rules.check_state_dir(str(directory), is_writable, shutil.disk_usage(there).free, is_here)


def _open_files(stores: int) -> Check:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)  # to which each process of a job raises its own limit
    return rules.check_open_files(sys.maxsize if hard == resource.RLIM_INFINITY else hard, stores, MAX_OPEN_FILES)


def _schemas(loaded: LoadedJob) -> Iterator[Check]:
    found = loaded.settings.schema_registry
    if found is not None:
        lacks = what_schemas_lack(loaded.settings, loaded.folders)
        yield Check("schemas", State.OK, found.url) if lacks is None else Check("schemas", State.FAIL, lacks.message, lacks.remedy)


# -- Kafka -------------------------------------------------------------------------------------------------------------------------------


def _kafka(loaded: LoadedJob, job: Path) -> tuple[list[Check], int | None]:
    """What Kafka has for the job, and how many tasks that makes."""
    log = kafka_log(loaded.settings)
    own = own_certificate(loaded.settings.kafka_client)
    finding = own.finding() if own is not None else None
    told = [] if finding is None else [Check("certificate", State.FAIL if finding.severity == ACT else State.WARN, finding.sentence, finding.remedy)]
    try:
        reached = _reach(log)
    except SamzapyError as error:
        return [*told, Check("kafka", State.FAIL, error.message, error.remedy)], None
    try:
        tasks, checks = _topics(loaded.settings, log, job)
    except SamzapyError as error:
        tasks, checks = None, [Check("topics", State.FAIL, error.message, error.remedy or f"samzapy topics {as_word(job)}")]
    found = [*told, reached, _transactions(loaded.settings, log), *checks, *_access(loaded.settings, log)]
    return found if rules.has_failed(found) else [*found, _run(loaded, log)], tasks


def _run(loaded: LoadedJob, log: Log) -> Check:
    """What `run` would refuse besides: what the coordinator topic says of earlier runs."""
    try:
        job = Job.of(loaded, log)
        refused = what_a_run_refuses(job)
    except SamzapyError as error:
        refused = error
    if refused is not None:
        return Check("run", State.FAIL, refused.message, refused.remedy)
    return Check("run", State.OK, "nothing that earlier runs left in Kafka stands in its way")


def as_word(job: Path) -> str:
    """The job file, for a shell."""
    return shlex.quote(named(str(job)))


def _reach(log: Log) -> Check:
    with log.admin() as admin:
        brokers = admin.broker_count()
        return Check("kafka", State.OK, f"cluster {admin.cluster_id()}, {brokers} {'broker' if brokers == 1 else 'brokers'}")


def _transactions(settings: Settings, log: Log) -> Check:
    try:
        with log.admin() as admin:
            limit = limit_ms(admin)
        refused = try_init(settings, log) if limit is None else None
    except SamzapyError as error:
        return Check("commit.timeout", State.WARN, error.message, error.remedy)
    return rules.check_transaction_timeout(settings.commit.timeout_ms, limit, refused)


def _access(settings: Settings, log: Log) -> list[Check]:
    try:
        missing = missing_access(settings, log)
    except SamzapyError as error:
        return [Check("access", State.WARN, error.message, error.remedy)]
    return rules.check_access([(str(one), one.command) for one in missing])


def _topics(settings: Settings, log: Log, job: Path) -> tuple[int | None, list[Check]]:
    rows = [rules.TopicRow(kind, topic, role, state) for kind, (topic, role, _, _, state) in topic_rows(settings, log, SystemClock())]
    tasks = len(job_in_kafka(settings, log).tasks)
    return tasks or None, rules.check_topics(rows, as_word(job), lambda topic: made_by_hand(settings, topic))


# -- Spark -------------------------------------------------------------------------------------------------------------------------------


def _spark(settings: Settings, containers: int) -> Iterator[Check]:
    master, conf = settings.spark.master, {key: str(value) for key, value in settings.spark.conf.items()}
    file = _defaults_file()
    defaults = rules.read_defaults(file.read_text(errors="replace")) if file else {}
    yield from rules.check_spark_settings(conf, defaults, str(file) if file else "", OWNED, NAMED_ELSEWHERE)
    yield rules.check_authentication(master, {**defaults, **conf})
    addresses = master_addresses(master)
    rest = next((f"http://{host}:{REST_PORT}" for host, _ in addresses if _takes_jobs(host)), "")
    looked = rest or ", ".join(f"{host}:{REST_PORT}" for host, _ in addresses)
    yield rules.check_rest(master, looked, bool(rest))
    silent = [f"{host}:{port}" for host, port in addresses if not _listens(host, port)]
    if addresses and len(silent) == len(addresses):
        remedy = "Start it, or correct spark.master; one on this machine: samzapy dev spark start"
        yield Check("spark.master", State.FAIL, f"no Spark master answers at {', '.join(silent)}", remedy)
        return
    yield Check("spark.master", State.OK, master)
    yield rules.check_slots(containers, *_cores(master, conf))


def _defaults_file() -> Path | None:
    """The spark-defaults.conf that PySpark would read."""
    folder = os.environ.get("SPARK_CONF_DIR")
    home = os.environ.get("SPARK_HOME")
    package = find_spec("pyspark")
    if not folder and not home and (package is None or package.origin is None):
        return None
    place = Path(folder) if folder else Path(home or Path(str(package.origin if package else "")).parent) / "conf"
    file = place / "spark-defaults.conf"
    return file if file.is_file() else None


def _cores(master: str, conf: Mapping[str, str]) -> tuple[int | None, int | None, str]:
    """Cores, free cores, and of what; None where only a started session would know."""
    if is_local(master):
        found = re.fullmatch(r"local(?:\[(\d+|\*)(?:,.*)?\])?", master)
        cores = (os.cpu_count() or 1) if found and found[1] == "*" else int(found[1] or 1) if found else None
        return cores, cores, master
    master_state = _asked(master)
    if master_state is None:
        return None, None, f"the web page of {master} was not found" if master.startswith("spark:") else master
    cap = conf.get("spark.cores.max", "")
    most = min(master_state.cores, int(cap)) if cap.isdigit() else master_state.cores
    return most, min(master_state.free_cores, most), master_state.url


def _asked(master: str) -> Master | None:
    """What a standalone master says, if its web page is at the usual port, or it is one of `samzapy dev spark`."""
    ours = [place.parent for place in state_dir().glob("spark*/cluster.json")]
    clusters = [cluster for place in ours if (cluster := LocalSpark.at(place)) is not None]
    for host, port in master_addresses(master):
        url = f"spark://{host}:{port}"
        pages = [WEB_PORT, *(cluster.ui_port for cluster in clusters if cluster.url == url)]
        for page in pages:
            master_state = ask_master(host, page, PROBE_S)
            if master_state is not None and master_state.url == url and master_state.is_leading:
                return master_state
    return None


def _takes_jobs(host: str) -> bool:
    """Whether a standalone master's REST server answers there: it says which Spark it is, whatever it is asked."""
    try:
        answer = ask("GET", host, REST_PORT, "/v1/submissions/status/none", PROBE_S).json()
    except NO_ANSWER:
        return False
    return isinstance(answer, dict) and "serverSparkVersion" in answer


def _listens(host: str, port: int) -> bool:
    try:
        socket.create_connection((host, port), PROBE_S).close()
    except OSError:
        return False
    return True


def _is_here(master: str) -> bool:
    """Whether containers run on this machine."""
    addresses = master_addresses(master)
    return is_local(master) or (bool(addresses) and all(host in ("localhost", LOOPBACK) for host, _ in addresses))
