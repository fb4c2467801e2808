"""What the launchers' tests start in place of a container: each tells of itself in a file, whose path is in the payload."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from samzapy.kafka.making import guard_clients, making


def _tell(payload: Mapping[str, Any], **facts: Any) -> None:
    file = Path(payload["file"])
    draft = file.with_suffix(".draft")
    draft.write_text(json.dumps({"pid": os.getpid(), "ppid": os.getppid(), **facts}))
    draft.replace(file)


def write_and_end(payload: Mapping[str, Any]) -> int:
    print("a line of the container")
    _tell(payload, given=dict(payload), path=sys.path, sigint=signal.getsignal(signal.SIGINT) is signal.SIG_IGN, environment=sorted(os.environ))
    return int(payload.get("code", 0))


def fail(payload: Mapping[str, Any]) -> int:
    raise ValueError("this entry always fails")


def write_a_long_line(payload: Mapping[str, Any]) -> int:
    sys.stdout.write("x" * 5_000_000 + "\n" + "y" * 65_536 + "\nshort")
    return 0


def alarm(payload: Mapping[str, Any]) -> int:
    """As a task's own alarm, or as that which watches the making of a client, ends a process; `in`: the file whose code is running then."""
    guard_clients(0.1)
    exec(compile("with making():\n    pause()", payload["in"], "exec"), {"making": making, "pause": signal.pause})
    return 0


def stay(payload: Mapping[str, Any]) -> int:
    """Until somebody ends it."""
    _tell(payload, host=payload.get("host"))
    threading.Event().wait()
    return 0


def stay_with_child(payload: Mapping[str, Any]) -> int:
    other = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])
    _tell(payload, other=other.pid)
    threading.Event().wait()
    return 0


def end(payload: Mapping[str, Any]) -> int:
    return 0
