"""A job's document to settings: its values are checked, and what is wrong is told at its place. No file is read here: containers get their document
with the payload that starts them, and import this only.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from samzapy.config.checks_together import check_together
from samzapy.config.errors import ConfigError, Problem
from samzapy.config.key_errors import Finding, check_types
from samzapy.config.references import resolve, secret_texts, secret_values
from samzapy.config.schema import Settings
from samzapy.config.secrets import is_secret, keep_out
from samzapy.config.tree import Node, Route, dotted, from_plain, locate

TELLING, LONG = 6, 12  # characters of a secret that a message must not have in a row; of one that is looked for everywhere
UNSHOWN = "this key needs another value; its value is not shown, because the file or variable it comes from may hold a secret"


def settings_from_document(document: Mapping[str, Any], environ: Mapping[str, str]) -> Settings:
    """The settings of a document that travelled; references, secrets among them, are resolved here.

    Raises:
        ConfigError: a variable or file is missing here, or the document is not in order.
    """
    root = from_plain(document)
    problems: list[Problem] = []
    values, failed = resolve(root, environ, problems)
    secrets = secret_texts(root, environ)
    keep_out({*secrets, *secret_values(values)})
    settings, findings = check(values)
    problems += problems_of(findings, failed, root, secrets)
    if problems or settings is None:
        raise ConfigError(problems)
    return settings


def check(values: dict[str, Any]) -> tuple[Settings | None, list[Finding]]:
    """The settings that values are, references resolved, and what is wrong with them."""
    settings, findings = check_types(values)
    return settings, [*findings, *check_together(values)]


def problems_of(findings: list[Finding], failed: set[Route], root: Node, secrets: Mapping[str, set[Route]]) -> list[Problem]:
    """Findings at their places, without secrets; what only follows from a reference that could not be resolved is left out."""
    problem_at: dict[tuple[Route, bool], Problem] = {}
    for finding in findings:
        path = finding.path
        if any(path[: len(bad)] == bad for bad in failed):
            continue
        message, hint = _unrevealing(finding, secrets)
        place = locate(root, path, finding.at_key)
        problem = place.problem(path, message, hint) if place else Problem("", 0, 0, dotted(path), message, hint)
        problem_at.setdefault((path, finding.at_key), problem)
    return list(problem_at.values())


def _unrevealing(finding: Finding, secrets: Mapping[str, set[Route]]) -> tuple[str, str]:
    """Message and hint, without what was found if that is a secret, or the beginning of one: long values are shown shortened.

    What stands elsewhere in the file counts if it is long: a word like `json` may be in a message by itself.
    """
    near = {text for text, paths in secrets.items() if len(text) >= LONG or finding.path in paths}
    beginnings = {form[:TELLING] for text in near for form in (text, repr(text)[1:-1])}
    if any(beginning in finding.message + finding.hint for beginning in beginnings):
        return UNSHOWN, ""
    return (finding.message.partition(", found ")[0] if is_secret(finding.path) else finding.message), finding.hint
