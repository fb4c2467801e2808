"""`samzapy run` with a link between each container and the coordinator that a test can cut: `python -m tests.recovery.driver JOB.yaml --local`.

The run is the command's own; only its launcher is wrapped, so that every container is told the address of a relay of its own instead of the
coordinator's. A running driver is asked by a file in the job's folder and SIGUSR1: `ask` writes the numbers of the containers that are to
be parted from it, and all others are (again) connected.
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import signal
import sys
import threading
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

from samzapy.cli.job import Job
from samzapy.cli.main import configure_logging
from samzapy.cli.running import How, Run
from samzapy.ports import ContainerHandle, Launcher
from tests.recovery.tcp_relay import TcpRelay

ASKED = "links.json"


def ask(folder: Path, driver: int, cut: Collection[int]) -> None:
    """Part exactly these containers from the coordinator of the run in `folder`."""
    draft = folder / f"{ASKED}.draft"
    draft.write_text(json.dumps(sorted(cut)))
    draft.replace(folder / ASKED)
    os.kill(driver, signal.SIGUSR1)


class Links:
    """A launcher whose containers reach the coordinator through relays: one per container number, for as long as the run lasts."""

    def __init__(self, launcher: Launcher, cut: Callable[[], Collection[int]]) -> None:
        self._launcher = launcher
        self._cut = cut
        self._lock = threading.Lock()
        self._relays: dict[int, TcpRelay] = {}

    @property
    def driver_host(self) -> str:
        return str(getattr(self._launcher, "driver_host", "127.0.0.1"))

    def slots(self, needed: int) -> int | None:
        return self._launcher.slots(needed)

    def hosts(self) -> Mapping[str, int | None]:
        return self._launcher.hosts()

    def leaving(self) -> Collection[str]:
        return self._launcher.leaving()

    def launch(self, container: int, payload: Mapping[str, Any], preferred_host: str | None) -> ContainerHandle:
        with self._lock:
            if container not in self._relays:
                self._relays[container] = TcpRelay(payload["control_url"])
            relay = self._relays[container]
        self.follow()
        return self._launcher.launch(container, {**payload, "control_url": relay.url}, preferred_host)

    def close(self) -> None:
        self._launcher.close()
        for relay in self._relays.values():
            relay.close()

    def follow(self) -> None:
        """Cut and mend as is asked now."""
        cut = self._cut()
        with self._lock:
            for number, relay in self._relays.items():
                (relay.cut if number in cut else relay.mend)()


class _Linked(Run):
    """`samzapy run` over Links."""

    def _launcher(self) -> Launcher:
        asked = self._job.loaded.sources[0].parent / ASKED
        links = Links(super()._launcher(), lambda: set(json.loads(asked.read_text())) if asked.exists() else set())
        # not in the handler: it may have interrupted the holder of the lock
        signal.signal(signal.SIGUSR1, lambda *_: threading.Thread(target=links.follow, name="links", daemon=True).start())
        return links


def main() -> int:
    parser = argparse.ArgumentParser("python -m tests.recovery.driver")
    parser.add_argument("job", type=Path)
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--master")
    where.add_argument("--local", action="store_true")
    parser.add_argument("--set", action="append", default=[])
    given = parser.parse_args()
    configure_logging(verbose=False)
    master = [f"spark.master={given.master}"] if given.master else []
    with Job(given.job, [], [*given.set, *master], classes=True) as job:
        return _Linked(job, secrets.token_hex(8), How(local=given.local), lambda url: None).run()


if __name__ == "__main__":
    sys.exit(main())
