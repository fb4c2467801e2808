"""The processes of a local cluster: what all that one start begins have in common."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from samzapy.dev.java import Java


@dataclass(frozen=True)
class Launch:
    """A start of a cluster.

    Attributes:
        jars: the directory of the program's jars.
        tied: what is started ends with the thread that starts it.
        timeout_s: how long it may take until all answer.
        overrides: settings of this start only.
    """

    java: Java
    jars: Path
    tied: bool
    timeout_s: float
    overrides: Mapping[str, str] = field(default_factory=dict)

    def command(self, directory: Path, options: Sequence[str], main: Sequence[str]) -> list[str]:
        """A JVM with these options, and the log settings of the cluster in `directory`; `main`: the class and its arguments."""
        logging = f"-Dlog4j2.configurationFile={directory / 'log4j2.properties'}"
        return [str(self.java.executable), *options, logging, "-cp", f"{self.jars}{os.sep}*", *main]
