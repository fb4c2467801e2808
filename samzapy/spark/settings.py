"""Spark's settings for containers that run for weeks: ours, the user's, and which of them may meet.

A container is one task that never ends by itself. Whatever Spark does to tasks that look stuck or slow (retries, speculation, reuse of
workers, idle time-outs, fewer executors) would run a container twice or end it behind the coordinator's back, so these settings are
ours: a job file that sets one is refused by name, with the reason. Everything else is a default that `spark.conf` overrides.

Nor may Spark give up a whole job over what happened to its parts in weeks. It keeps two counts of failed executors. The one of Kubernetes
and YARN never forgets and ends the application at twice their number: it is lifted here. The other is the standalone master's
(spark.deploy.maxExecutorRetries, 10, set where the master starts): it starts anew with every executor that comes to run.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from samzapy.api.errors import ConfigurationError

LOG_SETTINGS = Path(__file__).with_name("log4j2.properties")
LOG_OPTION = "-Dlog4j2.configurationFile="
JAVA_OPTIONS = "spark.driver.extraJavaOptions"
LOOPBACK = "127.0.0.1"

# setting -> (value, why it is ours)
OWNED: Mapping[str, tuple[str, str]] = {
    "spark.task.maxFailures": ("1", "the coordinator decides on restarts"),
    "spark.stage.maxConsecutiveAttempts": ("1", "the coordinator decides on restarts"),
    "spark.speculation": ("false", "a container must not run twice"),
    "spark.dynamicAllocation.enabled": ("false", "containers keep their executors"),
    "spark.task.cpus": ("1", "a container is one slot"),
    "spark.python.use.daemon": ("true", "a container watches the daemon that forked it"),
    "spark.python.worker.reuse": ("false", "each container gets a process of its own"),
    "spark.python.worker.idleTimeoutSeconds": ("0", "a container may be silent for long"),
    "spark.python.worker.killOnIdleTimeout": ("false", "a container may be silent for long"),
    "spark.task.reaper.enabled": ("true", "a cancelled container has to be seen to its end"),
    "spark.excludeOnFailure.enabled": ("false", "the coordinator decides where containers run"),
    "spark.excludeOnFailure.application.enabled": ("false", "the coordinator decides where containers run"),
    "spark.excludeOnFailure.taskAndStage.enabled": ("false", "the coordinator decides where containers run"),
    "spark.scheduler.mode": ("FIFO", "every container gets a slot of its own"),
    "spark.submit.deployMode": ("client", "the coordinator is the driver, here"),
}
NAMED_ELSEWHERE: Mapping[str, str] = {
    "spark.master": "spark.master beside spark.conf, or --master",
    "spark.app.name": "job and id",
    "spark.locality.wait": "containers.host_affinity",
    "spark.locality.wait.process": "containers.host_affinity",
    "spark.locality.wait.node": "containers.host_affinity",
    "spark.locality.wait.rack": "containers.host_affinity",
}
DEFAULTS: Mapping[str, str] = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.python.worker.faulthandler.enabled": "true",
    "spark.python.task.killTimeout": "500ms",
    "spark.task.reaper.pollingInterval": "5s",
    "spark.cleaner.periodicGC.interval": "12h",
    "spark.decommission.enabled": "true",  # without it the signal that announces the end of a host ends its executors at once
    "spark.executor.maxNumFailures": "2147483647",
    "spark.ui.retainedJobs": "100",  # each restart is a job
    "spark.ui.retainedStages": "100",
    "spark.ui.retainedTasks": "1000",
    "spark.ui.retainedDeadExecutors": "100",
    "spark.eventLog.enabled": "false",
    "spark.log.level": "ERROR",
}
# With one machine nothing listens beyond it, and a JVM that computes nothing starts faster without the optimising compiler.
LOCAL_DEFAULTS: Mapping[str, str] = {"spark.driver.host": LOOPBACK, "spark.driver.bindAddress": LOOPBACK}
LOCAL_JAVA_OPTIONS = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xshare:auto"


def is_local(master: str) -> bool:
    """Whether containers run on this machine, as children of the driver's JVM."""
    return master == "local" or master.startswith("local[")


def check_conf(conf: Mapping[str, str]) -> None:
    """Refuse what a job file may not set.

    Raises:
        ConfigurationError: names every such key, and why.
    """
    wrong = [_why_not(key) for key in sorted(conf)]
    found = "; ".join(w for w in wrong if w)
    if found:
        raise ConfigurationError(f"spark.conf: {found}.", "Remove it from the job file.")


def _why_not(key: str) -> str:
    if not key.startswith("spark."):
        return f"{key!r} is none of Spark's settings: they begin with 'spark.'"
    if key in OWNED:
        value, why = OWNED[key]
        return f"{key!r} is always {value} with samzapy: {why}"
    if key in NAMED_ELSEWHERE:
        return f"{key!r} is set by {NAMED_ELSEWHERE[key]}"
    return ""


def session_settings(master: str, conf: Mapping[str, str], app_name: str, locality_wait_s: float) -> dict[str, str]:
    """All settings of a session: defaults < `conf` < ours.

    Raises:
        ConfigurationError: `conf` sets what it may not.
    """
    check_conf(conf)
    local = is_local(master)
    masters = [host for host, _ in master_addresses(master)]
    near = local or (bool(masters) and all(host == "localhost" or host.startswith("127.") for host in masters))
    result = {
        **DEFAULTS,
        **(LOCAL_DEFAULTS if near else {}),
        **conf,
        **{key: value for key, (value, _) in OWNED.items()},
        "spark.master": master,
        "spark.app.name": app_name,
        "spark.locality.wait": f"{int(locality_wait_s * 1000)}ms",
    }
    result[JAVA_OPTIONS] = _java_options(conf.get(JAVA_OPTIONS, ""), local)
    return result


def _java_options(theirs: str, local: bool) -> str:
    ours = [LOCAL_JAVA_OPTIONS] if local and "-XX:" not in theirs else []
    if "log4j2.configurationFile" not in theirs and "log4j.configurationFile" not in theirs:
        ours.append(f'"{LOG_OPTION}{LOG_SETTINGS.as_uri()}"')
    return " ".join([*ours, theirs]).strip()


def master_addresses(master: str) -> list[tuple[str, int]]:
    """Host and port of each master that a spark:// URL names; none for other masters."""
    if not master.startswith("spark://"):
        return []
    found = []
    for address in master.removeprefix("spark://").split(","):
        parts = urlsplit(f"//{address}")
        try:
            host, port = parts.hostname, parts.port
        except ValueError:
            host, port = None, None
        if not host or not port:
            raise ConfigurationError(f"spark.master: {master!r} does not name host and port.", "Write spark://HOST:PORT.")
        found.append((host, port))
    return found


def properties_text(settings: Mapping[str, str]) -> str:
    """The settings as a Java properties file."""
    return "".join(f"{_escaped(key, key=True)}={_escaped(value)}\n" for key, value in sorted(settings.items()))


def _escaped(text: str, key: bool = False) -> str:
    text = text.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")
    if key:
        for letter in " =:#!":
            text = text.replace(letter, "\\" + letter)
    elif text.startswith(" "):
        text = "\\" + text
    return text
