"""Spark's settings for containers that run for weeks: ours, the user's, and which of them may meet.

A container is one task that never ends by itself. Whatever Spark does to tasks that look stuck or slow (retries, speculation, reuse of
workers, idle time-outs, fewer executors) would run a container twice or end it without the coordinator, so these settings are
ours (`samzapy.config.spark_keys`): a job file that sets one is refused by name, with the reason. Everything else is a default that
`spark.conf` overrides.

Nor may Spark give up a whole job over what happened to its parts in weeks. It keeps two counts of failed executors. The one of Kubernetes
and YARN never forgets and ends the application at twice their number: it is lifted here. The other is the standalone master's
(spark.deploy.maxExecutorRetries, 10, set where the master starts): every executor that starts resets it to 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from samzapy.api.errors import ConfigurationError
from samzapy.config.spark_keys import OWNED, refusal

LOG_SETTINGS = Path(__file__).with_name("log4j2.properties")
LOG_OPTION = "-Dlog4j2.configurationFile="
JAVA_OPTIONS = "spark.driver.extraJavaOptions"
LOOPBACK = "127.0.0.1"

DEFAULTS: Mapping[str, str] = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # A container writes its stacks by itself (container/crash_place.py). Spark's way is a directory below /tmp without which no worker starts any more.
    "spark.python.worker.faulthandler.enabled": "false",
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
    """Refuse what a job file may not set; the loader refuses it too, by the same table.

    Raises:
        ConfigurationError: names every such key, and what to do.
    """
    found = [f"{message}: {hint.rstrip('.')}" for key in sorted(conf) for message, hint in [refusal(key)] if message]
    if found:
        raise ConfigurationError(f"spark.conf: {'; '.join(found)}.", "Remove it from the job file.")


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
