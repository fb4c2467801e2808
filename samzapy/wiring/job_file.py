"""A job file, with what its program says in place of sections. What programs need is imported for programs only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from samzapy.config.key_errors import Finding
from samzapy.config.load import LoadedJob, load_job


def load_program(paths: Sequence[Path], sets: Sequence[str] = (), environ: Mapping[str, str] | None = None, **rest: Any) -> LoadedJob:
    """`load_job`; a program is asked for the job's inputs, outputs and stores before any of them is checked. Arguments and errors as there."""
    return load_job(paths, sets, environ, expand=_expand, **rest)


def _expand(document: Mapping[str, Any], folders: Sequence[Path]) -> tuple[Mapping[str, Any], list[Finding]]:
    from samzapy.wiring.program import expand

    return expand(document, folders)
