"""Completion offers commands, options, files, and the names that the job file among the words has; and a shell takes what is offered."""

from __future__ import annotations

import os
import pty
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from samzapy.cli.commands import COMMANDS
from samzapy.cli.completion import SCRIPTS, candidates

JOB = """
job: visits
task: visits:Visits
kafka: {bootstrap.servers: "localhost:9"}
inputs: [{topic: visits}]
outputs: [{topic: counts}]
stores: {seen: {}, totals: {}}
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "visits.yaml").write_text(JOB)
    (tmp_path / "visits.py").write_text("from samzapy import StreamTask\n\n\nclass Visits(StreamTask):\n    def process(self, *_):\n        pass\n")
    (tmp_path / "sub").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("", {*COMMANDS}),
        ("sta", {"status", "state"}),
        ("state ", {"get", "scan", "export", "restore", "verify", "drop"}),
        ("state get ", {"visits.yaml", "sub/"}),
        ("run vis", {"visits.yaml", "visits.py"}),
        ("state get visits.yaml ", {"seen", "totals"}),
        ("state get visits.yaml se", {"seen"}),
        ("state restore visits.yaml --store ", {"seen", "totals"}),
        ("state get nothing.yaml ", set()),
        ("tail --job visits.yaml ", {"visits", "counts", "visits-1-seen-changelog", "visits-1-totals-changelog"}),
        ("checkpoint set visits.yaml --topic vis", {"visits", "visits-1-seen-changelog", "visits-1-totals-changelog"}),
        ("run visits.yaml --until", {"--until-end"}),
        ("stop visits.yaml --file ", {"visits.yaml", "sub/"}),
        ("completion ", {*SCRIPTS}),
        ("status visits.yaml ", set()),
    ],
)
def test_what_is_offered(line: str, expected: set[str]) -> None:
    assert expected == candidates(line.split(" "))


def test_a_broken_job_file_offers_nothing(folder: Path) -> None:
    (folder / "visits.yaml").write_text("job: [")
    assert set() == candidates(["state", "get", "visits.yaml", ""])


def environment(folder: Path) -> dict[str, str]:
    """In which `samzapy` is this one."""
    bin_ = folder / "bin"
    bin_.mkdir()
    (bin_ / "samzapy").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m samzapy "$@"\n')
    (bin_ / "samzapy").chmod(0o755)
    return {**os.environ, "PATH": f"{bin_}:{os.environ['PATH']}", "TERM": "dumb", "HOME": str(folder)}


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")
def test_bash_takes_it(folder: Path) -> None:
    script = (
        'eval "$(samzapy completion bash)"\n'
        'COMP_WORDS=(samzapy state scan visits.yaml "to"); COMP_CWORD=4; _samzapy; printf "%s\\n" "${COMPREPLY[@]}"\n'
        "complete -p samzapy\n"
    )
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=120, env=environment(folder), cwd=folder)
    assert ["totals", "complete -F _samzapy samzapy"] == done.stdout.splitlines(), done.stderr


@pytest.mark.prove
@pytest.mark.skipif(shutil.which("fish") is None, reason="no fish")
def test_fish_takes_it(folder: Path) -> None:
    script = 'samzapy completion fish | source; complete -C "samzapy state scan visits.yaml to"; complete -C "samzapy stat"'
    done = subprocess.run(["fish", "-N", "-c", script], capture_output=True, text=True, timeout=120, env=environment(folder), cwd=folder)
    assert ["totals", "state", "status"] == done.stdout.split(), done.stderr


@pytest.mark.prove
@pytest.mark.skipif(shutil.which("zsh") is None, reason="no zsh")
def test_zsh_takes_it_at_its_prompt(folder: Path) -> None:
    """At a terminal: what Tab makes of a line is run, and prints it."""
    begin = 'autoload -Uz compinit && compinit -u -D; eval "$(samzapy completion zsh)"; samzapy() { print -r -- "<$*>" > line; exit; }\n'
    begin = begin.replace("samzapy() {", "real=$(whence -p samzapy); samzapy() { [[ $1 == completion ]] && { $real $@; return; };")
    pid, terminal = pty.fork()
    if pid == 0:
        os.execvpe("zsh", ["zsh", "-f", "-i"], environment(folder))
    os.write(terminal, f"{begin}samzapy state sc\tvisits.yaml to\t\n".encode())
    with suppress(OSError):  # it has ended
        while os.read(terminal, 65536):
            pass
    os.waitpid(pid, 0)
    assert "<state scan visits.yaml totals>" == (folder / "line").read_text().strip().replace(" >", ">")


@pytest.mark.parametrize("shell", SCRIPTS)
def test_a_script_is_one_that_its_shell_can_read(shell: str, folder: Path) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell}")
    (folder / "script").write_text(SCRIPTS[shell])
    done = subprocess.run([shell, "-n", "script"], capture_output=True, text=True, timeout=60, cwd=folder)
    assert (0, "") == (done.returncode, done.stderr)
