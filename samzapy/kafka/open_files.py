"""Whether this process has used up the files and sockets that it may open: then no client can connect, and no broker is to blame."""

from __future__ import annotations

import errno
import resource
import socket
from contextlib import ExitStack

NEEDED = 2  # sockets for a client's first connection and the one after it
USED_UP = frozenset({errno.EMFILE, errno.ENFILE})


def used_up() -> str:
    """What happened and what to do; "" if more can be opened."""
    with ExitStack() as opened:
        try:
            for _ in range(NEEDED):
                opened.enter_context(socket.socket())
        except OSError as error:
            if error.errno in USED_UP:
                return _words(error.errno)
    return ""


def _words(number: int | None) -> str:
    if number == errno.ENFILE:
        return "The cause is this host: all its processes together have used up the files and sockets that they may open. Raise fs.file-max."
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return (
        f"The cause is this process: it has used up the {limit} files and sockets that it may open. "
        "Close in the task what it opens, or raise the hard limit where the job, or Spark's worker, is started (`ulimit -n`)."
    )
