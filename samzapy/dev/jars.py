"""Kafka's jars, fetched once per user through the Ivy that PySpark brings.

They lie in the user's cache under the version's name. A directory of that name is complete: it is filled aside, under a lock, and renamed
into place, so a second clone that starts at the same moment waits and then finds it, and an interrupted fetch is not mistaken for one.
Each jar must be the one whose SHA-256 is written down beside this file: after it was fetched, and again before it is run. Ivy checks only
what the place that it fetches from says itself.
`SAMZAPY_KAFKA_LIBS` names a Kafka's `libs` directory to use instead, which is not checked; `SAMZAPY_IVY_SETTINGS` an Ivy settings file (a
mirror, a proxy).
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from samzapy.api.errors import ClusterUnreachable, ConfigurationError, LauncherError
from samzapy.config.extras import line_for
from samzapy.dev.java import Java
from samzapy.dev.places import Progress, cache_dir, locked
from samzapy.printable import printable

KAFKA_VERSION = "4.3.0"
SCALA_VERSION = "2.13"
LOG4J_BINDING_VERSION = "2.25.4"
CHECKSUMS = Path(__file__).with_name(f"kafka-{KAFKA_VERSION}.sha256")  # made anew with the version: sha256sum *.jar

_MODULES = f"""<ivy-module version="2.0">
  <info organisation="samzapy" module="dev-kafka"/>
  <dependencies>
    <dependency org="org.apache.kafka" name="kafka_{SCALA_VERSION}" rev="{KAFKA_VERSION}" conf="default->default"/>
    <dependency org="org.apache.logging.log4j" name="log4j-slf4j-impl" rev="{LOG4J_BINDING_VERSION}" conf="default->default"/>
  </dependencies>
</ivy-module>
"""


def kafka_jars(java: Java, say: Progress, checksums: Path = CHECKSUMS) -> Path:
    """The directory that holds Kafka's jars, fetched now if this is the first time.

    Raises:
        ClusterUnreachable: they could not be fetched. LauncherError: they are not those that `checksums` names.
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
    known = _known(checksums)
    if not ready.is_dir():
        with locked(root / "kafka.lock"):
            if not ready.is_dir():
                _fetch(java, ready, say, known)
                return ready
    _check(ready, known, f"Remove that directory and run this again, and check who else may write to it: rm -r {ready}")
    return ready


def _known(checksums: Path) -> dict[str, str]:
    """By a jar's name, its SHA-256."""
    return {name: digest for digest, _, name in (line.partition("  ") for line in checksums.read_text().splitlines())}


def _check(libs: Path, known: Mapping[str, str], remedy: str) -> None:
    """See that these are Kafka's jars, all of them, and nothing else: whatever lies there is run."""
    found = {path.name: _sha256(path) for path in libs.iterdir()}
    wrong = [f"{name} is missing" for name in sorted(known.keys() - found.keys())]
    wrong += [f"{name} is not one of them" for name in sorted(found.keys() - known.keys())]
    wrong += [f"{n} has SHA-256 {found[n]} and should have {known[n]}" for n in sorted(found) if n in known and found[n] != known[n]]
    if wrong:
        more = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
        raise LauncherError(f"the jars in {libs} are not Kafka {KAFKA_VERSION} as samzapy knows it: {printable(wrong[0])}{more}.", remedy)


def _sha256(path: Path) -> str:
    if not path.is_file():
        return "none, it is not a file"
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _fetch(java: Java, ready: Path, say: Progress, known: Mapping[str, str]) -> None:
    for left_behind in ready.parent.glob("fetch-*"):
        shutil.rmtree(left_behind, ignore_errors=True)
    work = Path(tempfile.mkdtemp(prefix="fetch-", dir=ready.parent))
    try:
        modules, libs, log = work / "ivy.xml", work / "libs", work / "log"
        modules.write_text(_MODULES)
        say(f"fetching Kafka {KAFKA_VERSION} ({len(known)} jars, 44 MB, once per user)")
        status = _run_ivy(_ivy_command(java, work, modules, libs), log, say, len(known))
        if status != 0 or not list(libs.glob(f"kafka_{SCALA_VERSION}-*.jar")) or not list(libs.glob("log4j-slf4j-impl-*.jar")):
            kept = ready.parent / "kafka-fetch.log"
            log.replace(kept)
            raise ClusterUnreachable(
                f"Kafka {KAFKA_VERSION} could not be fetched: {_last_complaint(kept)} (log: {kept}).",
                "Check the network and run this again; or set SAMZAPY_KAFKA_LIBS to a Kafka's libs directory, "
                "or SAMZAPY_IVY_SETTINGS to an Ivy settings file that names your mirror.",
            )
        _check(
            libs,
            known,
            "Fetch from another place (SAMZAPY_IVY_SETTINGS), or set SAMZAPY_KAFKA_LIBS to a Kafka's libs directory that you trust.",
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


def _run_ivy(command: list[str], log: Path, say: Progress, expected: int) -> int:
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
                if fetched % 5 == 0 or fetched == expected:
                    say(f"  {fetched} of {expected} jars")
    return ivy.returncode


def _last_complaint(log: Path) -> str:
    complaints = [
        line.strip() for line in log.read_text(errors="replace").splitlines() if "UNRESOLVED" in line or "FAILED" in line or "ERROR" in line
    ]
    return complaints[0] if complaints else "Ivy failed"


def pyspark_jars(needed_for: str = "and its Ivy is needed to fetch Kafka") -> Path:
    """PySpark's jars, found without importing it.

    Raises:
        LauncherError: PySpark is not installed.
    """
    package = find_spec("pyspark")
    if package is None or package.origin is None:
        raise LauncherError(f"PySpark is not installed, {needed_for}.", f"Install it: {line_for('spark')}")
    return Path(package.origin).parent / "jars"
