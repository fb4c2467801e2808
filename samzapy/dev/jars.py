"""Kafka's jars, fetched once per user through the Ivy that PySpark brings.

They lie in the user's cache under the version's name. A directory of that name is complete: it is filled aside, under a lock, and renamed
into place, so a second clone that starts at the same moment waits and then finds it, and an interrupted fetch is not mistaken for one.
`SAMZAPY_KAFKA_LIBS` names a Kafka's `libs` directory to use instead, `SAMZAPY_IVY_SETTINGS` an Ivy settings file (a mirror, a proxy).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from importlib.util import find_spec
from pathlib import Path

from samzapy.api.errors import ClusterUnreachable, ConfigurationError, LauncherError
from samzapy.dev.java import Java
from samzapy.dev.places import Progress, cache_dir, locked

KAFKA_VERSION = "4.3.0"
SCALA_VERSION = "2.13"
LOG4J_BINDING_VERSION = "2.25.4"
EXPECTED_JARS = 46

_MODULES = f"""<ivy-module version="2.0">
  <info organisation="samzapy" module="dev-kafka"/>
  <dependencies>
    <dependency org="org.apache.kafka" name="kafka_{SCALA_VERSION}" rev="{KAFKA_VERSION}" conf="default->default"/>
    <dependency org="org.apache.logging.log4j" name="log4j-slf4j-impl" rev="{LOG4J_BINDING_VERSION}" conf="default->default"/>
  </dependencies>
</ivy-module>
"""


def kafka_jars(java: Java, say: Progress) -> Path:
    """The directory that holds Kafka's jars, fetched now if this is the first time.

    Raises:
        ClusterUnreachable: they could not be fetched.
    """
    given = os.environ.get("SAMZAPY_KAFKA_LIBS")
    if given:
        if not list(Path(given).glob("kafka_*.jar")):
            raise ConfigurationError(
                f"SAMZAPY_KAFKA_LIBS={given} holds no kafka_*.jar.", "Name the libs directory of an unpacked Kafka, or unset it."
            )
        return Path(given)
    root = cache_dir()
    ready = root / f"kafka-{KAFKA_VERSION}"
    if ready.is_dir():
        return ready
    with locked(root / "kafka.lock"):
        if not ready.is_dir():
            _fetch(java, ready, say)
    return ready


def _fetch(java: Java, ready: Path, say: Progress) -> None:
    for left_behind in ready.parent.glob("fetch-*"):
        shutil.rmtree(left_behind, ignore_errors=True)
    work = Path(tempfile.mkdtemp(prefix="fetch-", dir=ready.parent))
    try:
        modules, libs, log = work / "ivy.xml", work / "libs", work / "log"
        modules.write_text(_MODULES)
        say(f"fetching Kafka {KAFKA_VERSION} (46 jars, 44 MB, once per user)")
        status = _run_ivy(_ivy_command(java, work, modules, libs), log, say)
        if status != 0 or not list(libs.glob(f"kafka_{SCALA_VERSION}-*.jar")) or not list(libs.glob("log4j-slf4j-impl-*.jar")):
            kept = ready.parent / "kafka-fetch.log"
            log.replace(kept)
            raise ClusterUnreachable(
                f"Kafka {KAFKA_VERSION} could not be fetched: {_last_complaint(kept)} (log: {kept}).",
                "Check the network and run this again; or set SAMZAPY_KAFKA_LIBS to a Kafka's libs directory, "
                "or SAMZAPY_IVY_SETTINGS to an Ivy settings file that names your mirror.",
            )
        libs.rename(ready)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _ivy_command(java: Java, work: Path, modules: Path, libs: Path) -> list[str]:
    command = [
        str(java.executable),
        "-cp",
        f"{pyspark_jars()}{os.sep}*",
        "org.apache.ivy.Main",
        "-cache",
        str(work / "cache"),
        "-ivy",
        str(modules),
    ]
    settings = os.environ.get("SAMZAPY_IVY_SETTINGS")
    if settings:
        command += ["-settings", settings]
    return [*command, "-confs", "default", "-retrieve", str(libs / "[artifact]-[revision].[ext]")]


def _run_ivy(command: list[str], log: Path, say: Progress) -> int:
    fetched = 0
    with (
        log.open("w") as out,
        subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
        ) as ivy,
    ):
        assert ivy.stdout is not None
        for line in ivy.stdout:
            out.write(line)
            if "[SUCCESSFUL ]" in line:
                fetched += 1
                if fetched % 5 == 0 or fetched == EXPECTED_JARS:
                    say(f"  {fetched} of {EXPECTED_JARS} jars")
    return ivy.returncode


def _last_complaint(log: Path) -> str:
    complaints = [
        line.strip() for line in log.read_text(errors="replace").splitlines() if "UNRESOLVED" in line or "FAILED" in line or "ERROR" in line
    ]
    return complaints[0] if complaints else "Ivy failed"


def pyspark_jars(needed_for: str = "whose Ivy fetches Kafka") -> Path:
    """PySpark's jars, found without importing it.

    Raises:
        LauncherError: PySpark is not installed.
    """
    package = find_spec("pyspark")
    if package is None or package.origin is None:
        raise LauncherError(f"PySpark is not installed, {needed_for}.", "Install it: pip install 'samzapy[spark]'")
    return Path(package.origin).parent / "jars"
