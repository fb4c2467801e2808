"""What a result was measured on, without which figures mean nothing."""

from __future__ import annotations

import os
import platform
import subprocess
from importlib.metadata import version
from pathlib import Path
from typing import Any

import confluent_kafka

from samzapy.dev.jars import KAFKA_VERSION
from tests.bench.place import ROOT

PACKAGES = ("samzapy", "confluent-kafka", "rocksdict", "orjson", "pyspark")


def described() -> dict[str, Any]:
    """Commit, machine and versions."""
    return {
        "commit": _commit(),
        "machine": {
            "processor": _first_value("/proc/cpuinfo", "model name") or platform.processor() or platform.machine(),
            "cores": os.cpu_count(),
            "memory": _first_value("/proc/meminfo", "MemTotal"),
            "system": platform.platform(),
        },
        "versions": {
            "python": platform.python_version(), "librdkafka": confluent_kafka.libversion()[0], "kafka": KAFKA_VERSION,
            **{name: version(name) for name in PACKAGES},
        },
    }  # fmt: skip


def _commit() -> str:
    def git(*words: str) -> str:
        return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()

    changed = git("status", "--porcelain", "--untracked-files=no")
    return (git("rev-parse", "--short=12", "HEAD") or "unknown") + (" with changes" if changed else "")


def _first_value(path: str, key: str) -> str:
    try:
        lines = Path(path).read_text().splitlines()
    except OSError:
        return ""
    return next((" ".join(line.split(":", 1)[1].split()) for line in lines if line.startswith(key)), "")
