"""Spark's keys that a job file may not set. The loader refuses them, the session sets them: both by this one table."""

from __future__ import annotations

from collections.abc import Mapping

# setting -> (value, why it is ours)
OWNED: Mapping[str, tuple[str, str]] = {
    "spark.task.maxFailures": ("1", "the coordinator decides on restarts"),
    "spark.stage.maxConsecutiveAttempts": ("1", "the coordinator decides on restarts"),
    "spark.speculation": ("false", "a container must not run twice"),
    "spark.dynamicAllocation.enabled": ("false", "containers keep their executors"),
    "spark.task.cpus": ("1", "a container is one slot"),
    "spark.python.use.daemon": ("true", "a container watches the daemon that forked it"),
    "spark.python.worker.reuse": ("false", "each container gets its own process"),
    "spark.python.worker.idleTimeoutSeconds": ("0", "a container may be silent for long"),
    "spark.python.worker.killOnIdleTimeout": ("false", "a container may be silent for long"),
    "spark.task.reaper.enabled": ("true", "samzapy waits until a cancelled container has ended"),
    "spark.excludeOnFailure.enabled": ("false", "the coordinator decides where containers run"),
    "spark.excludeOnFailure.application.enabled": ("false", "the coordinator decides where containers run"),
    "spark.excludeOnFailure.taskAndStage.enabled": ("false", "the coordinator decides where containers run"),
    "spark.scheduler.mode": ("FIFO", "every container gets its own slot"),
    "spark.submit.deployMode": ("client", "the coordinator runs in the driver, on this host"),
}
# setting -> the key of the job file that decides it
NAMED_ELSEWHERE: Mapping[str, str] = {
    "spark.app.name": "`job` and `id`",
    "spark.locality.wait": "`containers.host_affinity`",
    "spark.locality.wait.node": "`containers.host_affinity`",
    "spark.locality.wait.process": "`containers.host_affinity`",
    "spark.locality.wait.rack": "`containers.host_affinity`",
    "spark.master": "`spark: {master: …}`, or --master",
}


def refusal(key: str) -> tuple[str, str]:
    """(message, hint) for a key of `spark.conf` that may not be set; two empty texts for one that may."""
    if key in OWNED:
        value, why = OWNED[key]
        return f"{key!r} is always {value} with samzapy", f"{why[:1].upper()}{why[1:]}; remove the key."
    if key in NAMED_ELSEWHERE:
        return f"{key!r} must not be set in `spark.conf`", f"samzapy sets it from {NAMED_ELSEWHERE[key]}: set that instead."
    if not key.startswith("spark."):
        return f"{key!r} is not a property of Spark", f"did you mean 'spark.{key}'?"
    return "", ""
