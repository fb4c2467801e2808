"""`samzapy schema`: the JSON Schema of the job file, for editors and for checks elsewhere. The same text as in `config/job.schema.json`."""

from __future__ import annotations

import sys

from samzapy.config.reference import json_schema


def schema() -> None:
    """Print the JSON Schema of the job file."""
    sys.stdout.write(json_schema())
