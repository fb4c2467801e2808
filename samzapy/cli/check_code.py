"""Whether containers could be started with the code as it is now: asked of `samzapy restart --dry-run`, in a process of its own, as importing the
user's modules may do anything."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence

from samzapy.api import exit_codes
from samzapy.api.errors import ConfigurationError

LIMIT_S = 90.0
MAX_SAID = 2000  # characters
UNCHANGED = "No container was restarted."


def check_code(job: Sequence[str]) -> None:
    """`job`: the arguments that name the job: its files, and single keys.

    Raises:
        ConfigurationError: the code cannot be imported, or cannot go on with the job's state; or that could not be found out.
    """
    command = [sys.executable, "-m", "samzapy", "restart", *job, "--dry-run", f"--timeout={LIMIT_S - 15:.0f}"]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=LIMIT_S, check=False)
    except subprocess.TimeoutExpired:
        raise ConfigurationError(
            f"whether the new code can be used could not be found out within {LIMIT_S:.0f} s.",
            f"{UNCHANGED} Its modules may take long to import, or Kafka does not answer: `samzapy restart JOB.yaml --dry-run` shows which.",
        ) from None
    if done.returncode:
        said = done.stderr[done.stderr.find("error[") :] if "error[" in done.stderr else done.stderr
        said = said.strip()[-MAX_SAID:] or f"its check ended with {done.returncode}"
        if done.returncode == exit_codes.UNREACHABLE:
            raise ConfigurationError(f"the new code could not be checked: {said}", f"{UNCHANGED} Restart again when Kafka answers.")
        raise ConfigurationError(f"the new code cannot be used: {said}", f"{UNCHANGED} Correct the code, and restart again.")
