"""The long proofs of the native part: its code under the compiler's sanitizers, and the same tests without it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from samzapy.native.build import build
from tests.unit.native.pairs import needs_native

ROOT = Path(__file__).parents[3]
LIMIT_S = 1500
SANITIZED = ("tests/unit/native", "tests/unit/store", "tests/unit/serde", "tests/unit/container/test_failing_records.py", "tests/unit/container/test_batches.py")
NOT_OF_SIZES = ("--deselect", "tests/unit/native/test_serdes.py::test_what_is_kept_takes_its_own_size")  # the sanitizer's memory is another
IN_PYTHON = ("tests/unit/store", "tests/unit/serde", "tests/unit/container", "tests/unit/testing", "tests/contract/test_task_store.py")

pytestmark = [pytest.mark.prove, pytest.mark.slow]


def passed(folder: Path, *tests: str, **env: str) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", "-p", "no:cacheprovider", "-m", "not prove and not kafka and not spark", *tests]
    done = subprocess.run(command, cwd=folder, env={**os.environ, **env}, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=LIMIT_S, check=False)
    assert done.returncode == 0, f"{done.stdout[-5000:]}\n{done.stderr[-3000:]}"


def library(name: str) -> str:
    """Where the compiler has this library; skips where it has none."""
    found = subprocess.run(["gcc", f"-print-file-name={name}"], capture_output=True, text=True, check=True).stdout.strip()
    if not Path(found).is_absolute():
        pytest.skip(f"gcc has no {name}")
    return found


@needs_native
@pytest.mark.timeout(LIMIT_S)
@pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc")
def test_no_sanitizer_finds_anything(tmp_path: Path) -> None:
    """Memory that is used after it was freed, or beyond its end, and whatever C leaves undefined."""
    preloaded = f"{library('libasan.so')}:{library('libubsan.so')}"
    for name in ("samzapy", "tests"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    source = tmp_path / "samzapy" / "native" / "hot_path.c"
    where = "from samzapy.native.source import fingerprint; print(fingerprint())"
    version = subprocess.run([sys.executable, "-c", where], cwd=tmp_path, capture_output=True, text=True, check=True).stdout.strip()
    found, why = build(source, version, ("-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=undefined", "-fno-omit-frame-pointer"))
    assert found is not None, why
    passed(tmp_path, *SANITIZED, *NOT_OF_SIZES, LD_PRELOAD=preloaded, PYTHONMALLOC="malloc", ASAN_OPTIONS="detect_leaks=0")


@pytest.mark.timeout(LIMIT_S)
def test_the_functions_in_python_pass_the_same_tests() -> None:
    passed(ROOT, *IN_PYTHON, SAMZAPY_NATIVE="0")
