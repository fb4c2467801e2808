"""Whether the native part is used, and what is said where it is not."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from samzapy import native
from samzapy.native import build, source
from tests.unit.native.pairs import needs_native

SAYS = "from samzapy import native; from samzapy.store.overlay import OverlayStore; print(native.why_not or 'used', type(OverlayStore.get).__name__)"


def told(**env: str) -> str:
    done = subprocess.run([sys.executable, "-c", SAYS], capture_output=True, text=True, check=True, env={**os.environ, **env}, stdin=subprocess.DEVNULL)
    return done.stdout.strip()


@needs_native
def test_it_is_used_unless_it_is_switched_off() -> None:
    assert told(SAMZAPY_NATIVE="1") == "used StoreGet"
    assert told(SAMZAPY_NATIVE="0") == "SAMZAPY_NATIVE=0 function"


@needs_native
def test_one_of_another_source_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "fingerprint", lambda: "another")
    assert native._loaded() == (None, "it was built from another version of its source: run `python -m samzapy.native.build`")


def test_each_file_of_the_source_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for path in [*source.SOURCE.parent.glob("*.c"), *source.SOURCE.parent.glob("*.h")]:
        shutil.copy(path, tmp_path)
    monkeypatch.setattr(source, "SOURCE", tmp_path / "hot_path.c")
    seen = {source.fingerprint()}
    for path in sorted([*tmp_path.glob("*.c"), *tmp_path.glob("*.h")]):
        path.write_bytes(path.read_bytes() + b"\n")
        seen.add(source.fingerprint())
    assert len(seen) == 1 + len([*tmp_path.glob("*.[ch]")])


def test_without_a_compiler_or_headers_it_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")
    assert build.build(source.SOURCE, "x") == (None, "there is no C compiler (no-such-compiler)")
    monkeypatch.setenv("CC", sys.executable)
    monkeypatch.setattr(build.sysconfig, "get_path", lambda name: str(tmp_path))
    assert build.build(source.SOURCE, "x") == (None, f"{tmp_path} has no Python.h: on Debian, install python3-dev")


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_a_source_that_cannot_be_compiled_is_told_and_leaves_no_file(tmp_path: Path) -> None:
    broken = tmp_path / "hot_path.c"
    broken.write_text("int broken(")
    found, why = build.build(broken, "x")
    assert found is None
    assert "error" in why
    assert [path.name for path in tmp_path.iterdir()] == ["hot_path.c"]
