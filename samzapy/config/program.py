"""What a job runs: a `task`, or an `app`, and what belongs to either."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from samzapy.config.key_errors import Finding, example

OF_PROGRAMS = ("inputs", "outputs", "stages")


def check_program(document: Mapping[str, Any]) -> Iterator[Finding]:
    """That there is one of both, and that a task has inputs."""
    task, app = (document.get(key) is not None for key in ("task", "app"))
    if task and app:
        yield Finding(("app",), "a job has `task` or `app`, not both", "Remove one of them.", at_key=True)
        return
    if not task and not app:
        yield Finding(("task",), "missing required key 'task'", f"{example(('task',))[:-1]}, or an `app`.")
    if not app and document.get("inputs") is None:
        yield Finding(("inputs",), "missing required key 'inputs'", example(("inputs",)))
    elif not app and document["inputs"] == []:
        yield Finding(("inputs",), "expected at least one entry, found none", example(("inputs",)))
    if task and document.get("stages") is not None:
        yield Finding(("stages",), "`stages` cannot be set: it comes from the program", "Remove it.", at_key=True)
    if task and document.get("streams") is not None:
        yield Finding(("streams",), "`streams` belongs to a job with `app`", "Write the topics under `inputs` and `outputs`.", at_key=True)


def as_written(document: Mapping[str, Any]) -> dict[str, Any]:
    """A document as a person may write it: without what its program says."""
    if document.get("app") is None:
        return dict(document)
    stores = {name: {key: store[key] for key in ("engine",) if key in store} for name, store in (document.get("stores") or {}).items()}
    return {**{key: value for key, value in document.items() if key not in OF_PROGRAMS}, "stores": stores}


def check_written(document: Mapping[str, Any]) -> Iterator[Finding]:
    """Of a job file as a person wrote it: what an `app` says for itself."""
    for key in OF_PROGRAMS if document.get("app") is not None else ():
        if document.get(key) is not None:
            hint = "Remove it; `streams:` says where a stream of the program really is."
            yield Finding((key,), f"`{key}` of a job with `app` is defined by the program", hint, at_key=True)
