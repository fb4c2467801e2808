"""`python -m samzapy.local.child PARENT`: a container's process under `--local`.

The payload (JSON, with the control token) comes through stdin, so nothing of it is in the process list or the environment. SIGINT, SIGTERM
and SIGHUP do not end a container: a terminal and a service manager send them to all of its processes, and the driver, which gets them too,
needs its containers alive for their final commits. When the driver ends, the container does.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
import threading

from samzapy.container.process import end_with_parent, log_to_stderr, run_entry

LOG = logging.getLogger("samzapy")


def main() -> int:
    end_with_parent(int(sys.argv[1]))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # as `nohup` has it
            signal.signal(number, _go_on)  # not SIG_IGN: what the task starts would inherit that
    payload = json.loads(sys.stdin.buffer.read())
    log_to_stderr(payload)
    return run_entry(payload)


def _go_on(number: int, _: object) -> None:
    threading.Thread(  # not here: the handler may have interrupted a log call
        target=LOG.info,
        args=("got %s and goes on until the driver, process %d, has it make its final commit", signal.Signals(number).name, os.getppid()),
        daemon=True,
    ).start()


def _exit(code: int) -> None:
    """Exit without waiting for threads that the user's code or a client library has not ended."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code & 0xFF)


if __name__ == "__main__":
    _exit(main())
