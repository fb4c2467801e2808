"""The cache of Kafka's jars, filled by a stand-in for Java that plays Ivy."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from samzapy.api.errors import ClusterUnreachable, ConfigurationError, LauncherError
from samzapy.dev import jars as under_test
from samzapy.dev.jars import KAFKA_VERSION, kafka_jars
from samzapy.dev.java import Java

IVY = """#!/bin/sh
# ... -retrieve DIR/[artifact]-[revision].[ext]
echo run >> "$RUNS"
for argument do pattern=$argument; done
libs=${pattern%/*}
if [ -n "$FAIL" ]; then echo ":: UNRESOLVED DEPENDENCIES ::"; exit 1; fi
mkdir -p "$libs"
for jar in $JARS; do echo "[SUCCESSFUL ] $jar"; : > "$libs/$jar"; done
"""
WHOLE = "kafka_2.13-4.3.0.jar log4j-slf4j-impl-2.25.4.jar"


@pytest.fixture
def ivy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Java:
    program = tmp_path / "java"
    program.write_text(IVY)
    program.chmod(0o755)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("RUNS", str(tmp_path / "runs"))
    monkeypatch.setenv("JARS", WHOLE)
    monkeypatch.delenv("SAMZAPY_KAFKA_LIBS", raising=False)
    return Java(tmp_path, program, 17, "PATH")


def checksums() -> Path:
    """Of the empty files that the stand-in makes."""
    file = Path(os.environ["RUNS"]).with_name("sums")
    file.write_text("".join(f"{hashlib.sha256().hexdigest()}  {name}\n" for name in WHOLE.split()))
    return file


def runs() -> int:
    return len(Path(os.environ["RUNS"]).read_text().splitlines())


def test_they_are_fetched_once_and_progress_is_told(ivy: Java, tmp_path: Path) -> None:
    told: list[str] = []

    first = kafka_jars(ivy, told.append, checksums())

    assert tmp_path / "cache" / "samzapy" / f"kafka-{KAFKA_VERSION}" == first
    assert sorted(WHOLE.split()) == sorted(jar.name for jar in first.iterdir())
    assert "fetching Kafka" in told[0]
    assert first == kafka_jars(ivy, told.append, checksums())
    assert 1 == runs()


def test_a_fetch_that_fails_leaves_nothing_and_names_why(ivy: Java, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIL", "1")

    with pytest.raises(ClusterUnreachable, match=r"UNRESOLVED DEPENDENCIES.*kafka-fetch\.log"):
        kafka_jars(ivy, lambda _: None, checksums())

    assert ["kafka-fetch.log", "kafka.lock"] == sorted(path.name for path in (tmp_path / "cache" / "samzapy").iterdir())
    monkeypatch.delenv("FAIL")
    assert kafka_jars(ivy, lambda _: None, checksums()).is_dir()


def test_half_a_fetch_is_not_taken_for_a_whole_one(ivy: Java, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JARS", "kafka_2.13-4.3.0.jar")

    with pytest.raises(ClusterUnreachable):
        kafka_jars(ivy, lambda _: None, checksums())


def altered(libs: Path) -> None:
    (libs / WHOLE.split()[1]).write_bytes(b"something else")


def added(libs: Path) -> None:
    (libs / "zzz.jar").touch()


def removed(libs: Path) -> None:
    (libs / WHOLE.split()[1]).unlink()


@pytest.mark.parametrize(
    ("act", "words"), [(altered, "and should have e3b0c442"), (added, "zzz.jar is not one of them"), (removed, "is missing")]
)
def test_jars_that_are_others_are_not_run(ivy: Java, act: Callable[[Path], None], words: str) -> None:
    libs = kafka_jars(ivy, lambda _: None, checksums())
    act(libs)

    with pytest.raises(LauncherError, match=words) as refused:
        kafka_jars(ivy, lambda _: None, checksums())

    assert f"rm -r {libs}" in refused.value.remedy


def test_jars_that_come_as_others_are_not_kept(ivy: Java, tmp_path: Path) -> None:
    with pytest.raises(LauncherError, match="are not Kafka") as refused:
        kafka_jars(ivy, lambda _: None)

    assert "(and " in refused.value.message
    assert ["kafka.lock"] == [path.name for path in (tmp_path / "cache" / "samzapy").iterdir()]


def test_every_jar_is_written_down_with_its_checksum() -> None:
    lines = under_test.CHECKSUMS.read_text().splitlines()

    assert all(re.fullmatch(r"[0-9a-f]{64}  [A-Za-z0-9._-]+\.jar", line) for line in lines)
    assert {f"kafka_2.13-{KAFKA_VERSION}.jar", f"kafka-clients-{KAFKA_VERSION}.jar"} <= {line[66:] for line in lines}


def test_what_an_interrupted_fetch_left_is_cleared(ivy: Java, tmp_path: Path) -> None:
    left = tmp_path / "cache" / "samzapy" / "fetch-killed"
    left.mkdir(parents=True)

    kafka_jars(ivy, lambda _: None, checksums())

    assert not left.exists()


def test_clones_side_by_side_fetch_once(ivy: Java) -> None:
    program = (
        "import sys; from pathlib import Path; from samzapy.dev.java import Java; from samzapy.dev.jars import kafka_jars;"
        "print(kafka_jars(Java(Path(), Path(sys.argv[1]), 17, 'PATH'), lambda _: None, Path(sys.argv[2])))"
    )
    clones = [
        subprocess.Popen([sys.executable, "-c", program, str(ivy.executable), str(checksums())], stdout=subprocess.PIPE, text=True)
        for _ in range(4)
    ]

    said = {clone.communicate()[0] for clone in clones}

    assert [0] * 4 == [clone.returncode for clone in clones]
    assert 1 == len(said)
    assert 1 == runs()


def test_a_kafka_that_is_there_already_can_be_named(ivy: Java, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SAMZAPY_KAFKA_LIBS", str(tmp_path))
    with pytest.raises(ConfigurationError, match="holds no kafka_"):
        kafka_jars(ivy, lambda _: None, checksums())

    (tmp_path / "kafka_2.13-4.1.0.jar").touch()

    assert tmp_path == kafka_jars(ivy, lambda _: None, checksums())


def test_without_pyspark_the_line_that_installs_it_is_given(ivy: Java, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(under_test, "find_spec", lambda _: None)

    with pytest.raises(LauncherError, match="-m pip install 'pyspark"):
        kafka_jars(ivy, lambda _: None, checksums())
