"""A command's job file: loaded with all errors at once, and named from then on in what the command says."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

from samzapy.api.errors import ConfigurationError
from samzapy.cli.common import called_with
from samzapy.config.load import LoadedJob
from samzapy.config.schema import Settings
from samzapy.config.secrets import is_secret
from samzapy.config.task_class import import_task_class, named_as_pythons_own, never_called, unused_process
from samzapy.kafka.client import check_properties
from samzapy.wiring.job_file import load_program

LOG = logging.getLogger("samzapy")


def load(
    job: Path, more: list[Path] | None, sets: list[str] | None, classes: bool = False, before_classes: Callable[[Settings], None] | None = None
) -> LoadedJob:
    """The job file with all overrides. From now on, commands in messages name it (`as_called`). `before_classes`: as in `load_job`.

    Raises:
        ConfigError: with all problems at once.
    """
    public = [one for one in sets or [] if not _may_hold_secret(one)]
    called_with([str(job), *(w for file in more or [] for w in ("--file", str(file)))], public)
    loaded = load_program([job, *(more or [])], sets or [], check_client=check_properties, check_classes=classes, before_classes=before_classes)
    task = loaded.settings.task
    if classes and task is not None:
        found = import_task_class(task, loaded.folders)
        for told in filter(None, (unused_process(found), *never_called(found, loaded.settings.window_ms is not None))):
            LOG.warning("task: %s", told)
    if classes and (both := read_and_written(loaded.settings)):
        LOG.warning(
            "%s: an input and an output of this job, so what the job writes there it reads again. Make sure that this ends, or write to another topic",
            ", ".join(both),
        )
    if classes and (files := named_as_pythons_own(loaded.folders)):
        LOG.warning("these files have the names of Python's own modules, so an import may find the wrong one: rename %s", ", ".join(map(str, files)))
    if classes and loaded.written_secrets:
        LOG.warning(
            "%s: a secret is written in the job file, where whoever reads the file sees it: refer to it instead, as ${NAME} or ${file:PATH}",
            ", ".join(loaded.written_secrets),
        )
    return loaded


def read_and_written(settings: Settings) -> list[str]:
    """The topics that the job reads and writes. Those between the stages of a program are in neither list."""
    return sorted({one.topic for one in settings.inputs} & {one.topic for one in settings.outputs})


def with_master(sets: list[str] | None, local: bool, master: str | None) -> list[str]:
    """`--set`, and `--master` as one more of them.

    Raises:
        ConfigurationError: `--local` and `--master` are given together.
    """
    if local and master:
        raise ConfigurationError("--local runs without Spark, --master names one.", "Give one of the two.")
    return [*(sets or []), *([f"spark.master={master}"] if master else [])]


def _may_hold_secret(override: str) -> bool:
    key, _, value = override.partition("=")
    section, _, below = key.partition(".")
    return is_secret((section, below)) or is_secret((section, value))
