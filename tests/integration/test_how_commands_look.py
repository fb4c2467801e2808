"""Every command at terminals of 80 and 120 columns, with and without colour: no line is wider, no escape sequence where NO_COLOR is set.

Wider may be what is somebody else's or is to be copied whole: records, values, source code, a command or a script for a shell.
"""

from __future__ import annotations

import fcntl
import os
import pty
import re
import shlex
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator
from pathlib import Path

import pytest

from samzapy.cli.examples import EXAMPLES
from tests.broker import create_topic
from tests.integration.processes import until
from tests.integration.test_examples_of_help import Place

pytestmark = [pytest.mark.kafka, pytest.mark.prove, pytest.mark.timeout(1800)]
ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
COMMAND = re.compile(r"`[^`]*`|https?://\S+|(?:/[\w.+@-]+){2,}")  # stays whole, however long; so does an address, or the path of a file
AS_IT_IS = (
    "debug",
    "schema",
    "completion",
    "tail",
    "state get",
    "state scan",
    "state export",
    "topics JOB.yaml --acls",
    "plan JOB.yaml --graph",
)
MORE = (
    "samzapy", "samzapy state", "samzapy status", "samzapy stat JOB.yaml", "samzapy validate bad.yaml", "samzapy validate nothing.yaml",
    "samzapy state drop JOB.yaml counts", "samzapy checkpoint forget JOB.yaml visits", "samzapy dlq show JOB.yaml 9.9", "samzapy status stopped.yaml",
)  # fmt: skip
LEFT_OUT = ("run", "stop", "scale", "restart", "send", "init", "demo", "chaos", "dev", "top", "ui", "debug profile", "debug trace")
ENVIRONMENTS = {"colour": {"TERM": "xterm-256color"}, "no colour": {"TERM": "xterm-256color", "NO_COLOR": "1"}}
BAD = "job: bad\ntask: visits:VisitCountr\nkafka: {bootstrap.servers: x:1}\ninputs: [{topic: visits, valu: string}]\ncommit: {guarantee: exactly_onc}\n"


def shown(words: list[str], folder: Path, width: int, environment: dict[str, str]) -> str:
    """What a terminal of this width gets to see."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, width, 0, 0))
    base = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "NO_COLOR", "FORCE_COLOR")}
    command = [sys.executable, "-m", "samzapy", *words]
    child = subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs, env={**base, **environment})
    os.close(theirs)
    parts = []
    try:
        while part := os.read(ours, 1 << 16):
            parts.append(part)
    except OSError:  # Linux: nobody has the terminal open any more
        pass
    child.wait(100)
    os.close(ours)
    return b"".join(parts).decode().replace("\r\n", "\n")


def too_wide(text: str, width: int) -> list[str]:
    """The lines that are wider, though they could be folded."""
    lines = ESCAPE.sub("", text).split("\n")
    return [line for line in lines if len(line) > width and len(COMMAND.sub("", line)) == len(line)]


@pytest.fixture
def place(tmp_path: Path, kafka: str) -> Iterator[Place]:
    place = Place(tmp_path, kafka)
    create_topic(kafka, place.names["visits"], 2)
    create_topic(kafka, place.names["old-visits"], 2)
    (tmp_path / "bad.yaml").write_text(BAD)
    (tmp_path / "stopped.yaml").write_text(place.job.read_text().replace("job: help-", "job: stopped-"))
    sent = f"printf 'zoe\\tboom\\nada\\t/home\\n' | samzapy send {place.names['visits']} --key --kafka {kafka}"
    assert 0 == place.run(sent)[0]
    running = place.start("job.yaml", "--local", "--create-topics")
    try:
        until(lambda: place.run("samzapy status JOB.yaml")[0] == 0 or None, "it runs")
        yield place
    finally:
        running.terminate()
        running.wait(60)


def commands() -> Iterator[str]:
    for name, examples in EXAMPLES.items():
        if not name.startswith(LEFT_OUT):
            yield from (example for example in examples if "--watch" not in example and "--json" not in example and "|" not in example)
    yield from MORE


@pytest.mark.parametrize("width", [80, 120])
def test_no_line_is_wider_than_the_terminal_and_no_colour_is_none(place: Place, width: int) -> None:
    coloured = 0
    for example in commands():
        words = ["completion", "bash"] if "completion" in example else place.words(example) if " " in example else []
        for name, environment in ENVIRONMENTS.items():
            text = shown(words, place.folder, width, {**environment, "KAFKA_BOOTSTRAP": place.servers})
            assert text.strip() or "debug" in example, example
            assert name == "colour" or "\x1b" not in text, (example, text)
            coloured += "\x1b[" in text
            if not example.removeprefix("samzapy ").startswith(AS_IT_IS):
                assert [] == too_wide(text, width), (example, shlex.join(words), text)
    assert coloured >= 5


def test_a_wide_line_is_found() -> None:
    assert ["a" * 81] == too_wide("\x1b[1m" + "a" * 81 + "\x1b[0m\nb\n", 80)
    assert [] == too_wide("\x1b[1m" + "a" * 80 + "\x1b[0m\n", 80)
