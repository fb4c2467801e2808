"""The documents that commands print with --json, held against the forms that `samzapy schema` shows."""

from __future__ import annotations

from pydantic import TypeAdapter

from samzapy.cli.json_forms import FORMS


def check(command: str, line: str) -> None:
    """Check a document against its form.

    Raises:
        pydantic.ValidationError: it has another.
    """
    TypeAdapter(FORMS[command][1]).validate_json(line, strict=True)
