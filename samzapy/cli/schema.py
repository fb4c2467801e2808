"""`samzapy schema`: the JSON Schema of the job file, for editors and for checks elsewhere. The same text as in `config/job.schema.json`. With
`--of`: that of what a command prints with `--json`."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from samzapy.api.errors import ConfigurationError
from samzapy.cli.json_forms import FORMS, schema_of
from samzapy.config.reference import json_schema


def schema(
    of: Annotated[
        str | None,
        typer.Option("--of", metavar="COMMAND", help='The schema of what this command prints with --json, e.g. "dlq list".', show_default=False),
    ] = None,
) -> None:
    """Print the JSON Schema of the job file."""
    if of is not None and of not in FORMS:
        raise ConfigurationError(f"--of {of}: no command of that name prints JSON.", f"These do: {', '.join(sorted(FORMS))}.")
    sys.stdout.write(json_schema() if of is None else schema_of(of))
