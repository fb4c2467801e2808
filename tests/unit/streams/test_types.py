"""What a type checker says of programs: nothing of a right one, and of a wrong one each mistake, at its line."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
TYPED = Path(__file__).parent / "typed"
FOUND = re.compile(r"(\w+\.py):(\d+): error: .*\[([a-z-]+)\]$")
WANTED = re.compile(r"  # ([a-z, -]+)$")


def test_mypy_accepts_a_right_program_and_finds_each_mistake_of_a_wrong_one() -> None:
    right, wrong = TYPED / "right_program.py", TYPED / "wrong_program.py"
    command = [sys.executable, "-m", "mypy", "--no-error-summary", str(right), str(wrong)]  # strict, as pyproject.toml says
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    found = {(match[1], int(match[2]), match[3]) for line in done.stdout.splitlines() if (match := FOUND.search(line))}
    wanted = {
        (wrong.name, number, code)
        for number, line in enumerate(wrong.read_text().splitlines(), 1)
        if (match := WANTED.search(line))
        for code in match[1].split(", ")
    }

    assert len(wanted) > 10
    assert wanted == found, done.stdout + done.stderr
