"""The peers: what makes the environment of each, and the command that runs it.

Each has an environment of its own, in a folder that the first run fills from the package registries: Python packages with pip, jars with the Ivy
that PySpark brings.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

from samzapy.dev.jars import KAFKA_VERSION
from samzapy.dev.java import find_java
from samzapy.dev.spark import pyspark_jars
from tests.bench.place import PARTITIONS

HERE = Path(__file__).parent
QUIX, BYTEWAX = ("quixstreams==3.28.1",), ("bytewax==0.21.1", "confluent-kafka==2.12.2")
KAFKA_STREAMS = (("org.apache.kafka", "kafka-streams", KAFKA_VERSION),)
FLINK_VERSION = "2.0.2"
FLINK = (
    *(("org.apache.flink", name, FLINK_VERSION) for name in ("flink-streaming-java", "flink-clients", "flink-connector-base")),
    ("org.apache.flink", "flink-connector-kafka", "4.0.1-2.0"),
)
MAKE_S = 900.0

Command = Callable[[str, str, str, str], tuple[list[str], dict[str, str]]]
"""From brokers, input, output and a folder for state: what to run, and what to add to its environment."""
Modules = tuple[tuple[str, str, str], ...]  # organisation, name, version


class Missing(Exception):
    """A peer that cannot be made here; the text says why."""


def quix(program: str, peers: Path) -> Command:
    """With exactly-once processing."""
    python = _python(peers / "quix", QUIX)
    return lambda servers, given, output, folder: ([python, str(HERE / program), servers, given, output, f"{folder}/state"], {})


def bytewax(peers: Path) -> Command:
    """Its state is in memory, with snapshots."""
    python = _python(peers / "bytewax", BYTEWAX)
    return lambda servers, given, output, folder: (
        [python, "-m", "bytewax.run", f"{HERE / 'bytewax_w2.py'}:flow"], {"PEER_SERVERS": servers, "PEER_INPUT": given, "PEER_OUTPUT": output}
    )  # fmt: skip


def kafka_streams(bench: str, threads: int, peers: Path) -> Command:
    """In a JVM that compiles the program itself."""
    java = _compiling_java()
    libs = _jars(java, peers / f"kafka-streams-{KAFKA_VERSION}", KAFKA_STREAMS)
    source = str(HERE / "KafkaStreamsPeer.java")
    return lambda servers, given, output, folder: (
        [java, "-cp", f"{libs}{os.sep}*", source, bench, servers, given, output, f"{folder}/state", str(threads), str(PARTITIONS)], {}
    )  # fmt: skip


def flink(bench: str, parallelism: int, peers: Path) -> Command:
    """In a cluster inside one JVM. It is compiled first: Flink looks for the program's classes on the class path."""
    java = _compiling_java()
    libs, classes = _jars(java, peers / f"flink-{FLINK_VERSION}", FLINK), peers / "flink-classes"
    path = os.pathsep.join(str(jar) for jar in sorted(libs.glob("*.jar")))
    shutil.rmtree(classes, ignore_errors=True)
    compiler = [java, "-m", "jdk.compiler/com.sun.tools.javac.Main", "-d", str(classes), "-cp", path, str(HERE / "FlinkPeer.java")]
    done = subprocess.run(compiler, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=MAKE_S, check=False)
    if done.returncode:
        raise Missing(f"its program could not be compiled: {done.stderr.strip()[-1000:]}")
    opened = "--add-opens=java.base/java.util=ALL-UNNAMED"  # for Kryo, with which Flink copies what it has no serializer for
    return lambda servers, given, output, folder: (
        [java, opened, "-cp", f"{classes}{os.pathsep}{path}", "FlinkPeer", bench, servers, given, output, f"{folder}/checkpoints", str(parallelism)], {}
    )  # fmt: skip


PEERS: dict[str, dict[str, Callable[[Path], Command]]] = {  # by benchmark
    "w2": {
        "quix": partial(quix, "quix_w2.py"), "bytewax": bytewax, "kafka_streams": partial(kafka_streams, "w2", 1),
        "kafka_streams_2": partial(kafka_streams, "w2", 2), "flink": partial(flink, "w2", 2),
    },
    "w3": {"quix": partial(quix, "quix_w3.py"), "flink": partial(flink, "w3", 2), "flink_1_slot": partial(flink, "w3", 1)},
    "latency": {"kafka_streams": partial(kafka_streams, "latency", 1)},
    "restore": {"kafka_streams": partial(kafka_streams, "restore", 1), "kafka_streams_2": partial(kafka_streams, "restore", 2)},
}  # fmt: skip


def _python(folder: Path, packages: tuple[str, ...]) -> str:
    """Python with these packages, made once."""
    if not (folder / "made").exists():
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True, timeout=MAKE_S)
        pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages]
        done = subprocess.run(pip, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=MAKE_S, check=False)
        if done.returncode:
            raise Missing(f"{', '.join(packages)} could not be installed: {done.stderr.strip().splitlines()[-1:]}")
        (folder / "made").touch()
    return str(folder / "bin" / "python")


def _compiling_java() -> str:
    java = str(find_java().executable)
    modules = subprocess.run([java, "--list-modules"], capture_output=True, text=True, timeout=MAKE_S, check=True).stdout
    if "jdk.compiler" not in modules:
        raise Missing(f"{java} has no compiler: a JDK is needed, a JRE is not enough")
    return java


def _jars(java: str, libs: Path, modules: Modules) -> Path:
    """These modules and all that they need, fetched once."""
    if not libs.is_dir():
        work = Path(tempfile.mkdtemp(prefix="fetch-", dir=libs.parent))
        wanted = "\n".join(f'<dependency org="{org}" name="{name}" rev="{version}" conf="default->default"/>' for org, name, version in modules)
        (work / "ivy.xml").write_text(
            f'<ivy-module version="2.0"><info organisation="samzapy" module="bench-peer"/><dependencies>{wanted}</dependencies></ivy-module>'
        )
        ivy = [java, "-cp", f"{pyspark_jars('which bring Ivy')}{os.sep}*", "org.apache.ivy.Main", "-cache", str(work / "cache"), "-confs", "default"]
        ivy += ["-ivy", str(work / "ivy.xml"), "-retrieve", str(work / "libs" / "[artifact]-[revision].[ext]")]
        done = subprocess.run(ivy, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=MAKE_S, check=False)
        if done.returncode or any(not (work / "libs" / f"{name}-{version}.jar").exists() for _, name, version in modules):
            raise Missing(f"its jars could not be fetched: {done.stdout.strip().splitlines()[-1:]}")
        (work / "libs").rename(libs)
        shutil.rmtree(work, ignore_errors=True)
    return libs
