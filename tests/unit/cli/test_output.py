"""Output that cannot be written is told as that, and is no fault of samzapy's."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from samzapy.cli.output import checked_output

FULL = Path("/dev/full")
TOLD = "error[SZ350]: the output could not be written: No space left on device."

BUFFERED = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}

pytestmark = pytest.mark.skipif(not FULL.exists(), reason="needs /dev/full")


@pytest.mark.parametrize("arguments", [["schema"], ["--version"], ["--help"]])
def test_a_full_disk(arguments: list[str]) -> None:
    """More than a buffer, which fails when it is written, and less, which fails at the end."""
    with FULL.open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "samzapy", *arguments],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
            check=False,
            env=BUFFERED,
        )
    assert ([TOLD], 1) == (done.stderr.splitlines()[:1], done.returncode)
    assert 2 == len(done.stderr.splitlines()), "the error and what to do, nothing of Python's at exit"


def test_the_error_that_came_before_it_is_the_one_that_is_told() -> None:
    code = (
        "import sys\nfrom samzapy.api.errors import TopicMissing\nfrom samzapy.cli import main\n"
        "def app(**_):\n    print('a line')\n    raise TopicMissing('no topic.')\n"
        "main.app = app\nsys.exit(main.exit_code([]))\n"
    )
    with FULL.open("w") as full:
        done = subprocess.run(
            [sys.executable, "-c", code], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60, check=False, env=BUFFERED
        )
    assert ("error[SZ302]: no topic.\n", 4) == (done.stderr, done.returncode)


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_pipe_that_nobody_reads_any_more_is_no_error(unbuffered: str) -> None:
    """Found while the command writes, or when it has ended."""
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-m", "samzapy", "schema"],
        stdout=writing,
        stderr=subprocess.PIPE,
        text=True,
        timeout=60,
        check=False,
        env={**BUFFERED, "PYTHONUNBUFFERED": unbuffered},
    )
    os.close(writing)
    assert "" == done.stderr
    assert 0 == done.returncode


@pytest.mark.parametrize(
    ("arguments", "closed", "code"),
    [
        ("schema", ">&-", 1),
        ("schema", "2>&-", 0),
        ("schema", "<&- >&- 2>&-", 1),
        ("validate /no/such/file.yaml", ">&-", 2),
        ("validate /no/such/file.yaml", "2>&-", 2),
        ("validate /no/such/file.yaml", "<&- >&- 2>&-", 2),
    ],
)
def test_without_standard_streams_a_command_fails_only_where_its_result_is_lost(arguments: str, closed: str, code: int) -> None:
    done = subprocess.run(
        ["/bin/sh", "-c", f'exec "$0" -m samzapy {arguments} {closed}', sys.executable],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert code == done.returncode
    assert ((code, closed) == (1, ">&-")) == ("SZ350" in done.stderr)
    assert "SZ900" not in done.stderr
    assert "Traceback" not in done.stderr


def test_an_error_that_cannot_be_told_keeps_its_exit_code() -> None:
    with FULL.open("w") as full:
        done = subprocess.run([sys.executable, "-m", "samzapy", "validate", "/no/such/file.yaml"], stderr=full, timeout=60, check=False)
    assert 2 == done.returncode


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_what_the_terminals_encoding_does_not_have_is_escaped_and_a_document_stays_one(encoding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    keys, written = ["é", "日本", "\U0001f600", "\udce9"], io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding=encoding))
    with checked_output():
        print(json.dumps(keys, ensure_ascii=False))
    assert keys == json.loads(written.getvalue().decode(encoding))
