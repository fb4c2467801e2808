"""When samzapy is installed or its wheel is built: compile what runs for each record, if there is a C compiler (samzapy/native)."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

NATIVE = Path("samzapy") / "native"


class NativePart(BuildHookInterface[Any]):
    """Without a compiler the wheel is for any machine, and samzapy runs on its Python functions."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """By path, because samzapy cannot be imported where its requirements are not installed yet."""
        folder = Path(self.root) / NATIVE
        source = runpy.run_path(str(folder / "source.py"))
        found, why = runpy.run_path(str(folder / "build.py"))["build"](source["SOURCE"], source["fingerprint"]())
        if found is None:
            self.app.display_warning(f"samzapy's native part was not built: {why}. samzapy runs without it, more slowly.")
            return
        build_data["artifacts"].append((NATIVE / found.name).as_posix())
        build_data.update(pure_python=False, infer_tag=True)
