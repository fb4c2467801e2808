"""The executor's side: what a Spark task does to be a container.

Spark forks a Python worker for the task; this function is the task. It is pickled by name, so executors import it from their own
samzapy. A container knows its host as Spark names it (local stores lie under that name): `localhost` for a local master, which the driver
tells; else what the executor's JVM was started with (`--hostname`, which is what the driver sees too), read from the command lines of
our ancestors, since PySpark hands it to nobody. Only where that fails is it the machine's own name: a wrong name costs a restore, never
a record.

Only the coordinator starts containers. Spark runs a task again whose executor was lost through no fault of the task's (its worker was
killed, its host decommissioned), and counts that as no failure, so spark.task.maxFailures=1 does not keep it from that. Such a second
attempt ends at once, without a container: its payload names an incarnation that has been used.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from samzapy.container.process import end_with_parent, log_to_stderr, run_entry
from samzapy.spark.directories import KeptDirectories, of_executor

_GENERATIONS = 4  # worker, daemon, executor, and one for a shell in between


def run_partition(payloads: Iterable[bytes]) -> Iterator[int | None]:
    """The task: run the container of each payload (there is one); yields its exit code, or None for an attempt that is not the first."""
    for text in payloads:
        if not is_first_attempt():
            yield None
            continue
        os.environ.pop("PYTHONSAFEPATH", None)  # it was for this process: the programs of the user's that a task starts have their own folders
        parent = os.getppid()
        end_with_parent(parent)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        payload = json.loads(text)
        payload["host"] = payload.get("host") or executor_host()
        log_to_stderr(payload, f"container {payload['container']} | ")
        kept = KeptDirectories(of_executor())
        code = run_entry(payload)
        kept.close()
        sys.stdout.flush()
        sys.stderr.flush()
        yield code


def is_first_attempt() -> bool:
    """Whether Spark runs this task for the first time."""
    from pyspark import TaskContext

    context = TaskContext.get()
    return context is None or context.attemptNumber() == 0


def executor_host() -> str:
    """The name by which Spark knows the executor that this process runs for."""
    pid = os.getpid()
    for _ in range(_GENERATIONS):
        arguments, pid = _process(pid)
        host = hostname_argument(arguments)
        if host is not None:
            return host
        if pid <= 0:
            break
    return os.environ.get("SPARK_EXECUTOR_POD_IP") or socket.gethostname()


def hostname_argument(arguments: list[str]) -> str | None:
    """What follows `--hostname` on the command line of an executor; None on any other."""
    if not any("ExecutorBackend" in a for a in arguments) or "--hostname" not in arguments[:-1]:
        return None
    return arguments[arguments.index("--hostname") + 1].strip("[]")


def _process(pid: int) -> tuple[list[str], int]:
    """Command line and parent of a process; an empty one and 0 if it cannot be looked at."""
    listing = Path(f"/proc/{pid}")
    try:
        if listing.exists():
            parent = int((listing / "stat").read_text().rsplit(")", 1)[1].split()[1])
            return [os.fsdecode(a) for a in (listing / "cmdline").read_bytes().split(b"\0")], parent
        line = subprocess.run(["ps", "-ww", "-o", "ppid=,command=", "-p", str(pid)], capture_output=True, text=True, check=False).stdout
    except OSError:
        return [], 0
    parent_text, *arguments = line.split() or ["0"]
    return arguments, int(parent_text)
