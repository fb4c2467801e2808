"""`python -m samzapy.local.child PARENT`: a container's process under `--local`.

The payload (JSON, with the control token) comes through stdin, so nothing of it is in the process list or the environment. Ctrl-C in a
terminal is the coordinator's to handle: it asks containers for a final commit, so here the signal is ignored.
"""

from __future__ import annotations

import json
import os
import signal
import sys

from samzapy.container.process import end_with_parent, log_to_stderr, run_entry


def main() -> int:
    end_with_parent(int(sys.argv[1]))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    payload = json.loads(sys.stdin.buffer.read())
    log_to_stderr(payload)
    return run_entry(payload)


def _exit(code: int) -> None:
    """Exit without waiting for threads that the user's code or a client library has not ended."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code & 0xFF)


if __name__ == "__main__":
    _exit(main())
