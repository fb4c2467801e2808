"""Job files to settings: default < file < later file < `--set`. Every error of every source at once, at its place.

`document` is what containers get. References in it that may hold secrets (in secret keys, to files, to variables with such names) are not
resolved: that is done where they are used, so secrets travel nowhere. All others are, so that a variable that is set here and not there
cannot let the coordinator and its containers speak of two clusters.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from samzapy.config import task_class
from samzapy.config.checks_together import check_avro_files, serdes, time_functions
from samzapy.config.client_check import ClientCheck, check_client_keys
from samzapy.config.document import check, problems_of, settings_from_document
from samzapy.config.errors import ConfigError, Problem
from samzapy.config.fields import CLASS, RECORD
from samzapy.config.key_errors import Finding
from samzapy.config.origins import Origin, origins
from samzapy.config.overrides import apply_set
from samzapy.config.plain_scalars import read_scalar
from samzapy.config.program import OF_PROGRAMS, check_written
from samzapy.config.reader import Stop, parse, read_file
from samzapy.config.references import Interpolated, resolve, secret_texts, secret_values, written_secrets
from samzapy.config.registered import is_registered
from samzapy.config.scalars import shown
from samzapy.config.schema import Settings, known_keys, section_at
from samzapy.config.secrets import keep_out
from samzapy.config.tree import Node, Route, Table, dotted, hide_secrets, merged, plain

__all__ = ["Expand", "LoadedJob", "load_job", "settings_from_document"]

# What a program says in place of a job file: sections, of the document and the folders of its modules; or what is wrong with it.
Expand = Callable[[Mapping[str, Any], Sequence[Path]], tuple[Mapping[str, Any], list[Finding]]]


@dataclass(frozen=True, slots=True)
class LoadedJob:
    """A job file that is in order.

    Attributes:
        settings: what it says, references resolved.
        document: what it says, as plain JSON, for other processes; references that may hold secrets are unresolved.
        folders: where the user's modules and schema files are looked for: the file's folder, the working directory.
        sources: the files it came from.
        written_secrets: keys whose secrets are written in the files, and not referred to.
        origins: every key with its value, as it may be shown, and where it comes from.
    """

    settings: Settings
    document: dict[str, Any]
    folders: tuple[Path, ...]
    sources: tuple[Path, ...]
    written_secrets: tuple[str, ...] = ()
    origins: tuple[Origin, ...] = ()


def load_job(
    paths: Sequence[Path],
    sets: Sequence[str] = (),
    environ: Mapping[str, str] | None = None,
    check_client: ClientCheck | None = None,
    check_classes: bool = False,
    before_classes: Callable[[Settings], None] | None = None,
    expand: Expand | None = None,
) -> LoadedJob:
    """The job that the files and `--set`s say together.

    Args:
        paths: the job file and the files that override it.
        sets: `key=value`, as `--set` takes them.
        environ: variables for `${…}`; the process's own by default.
        check_client: asks the Kafka client about properties, without a connection.
        check_classes: import the task and the serdes of the user's.
        before_classes: called before that, which may take long, if nothing is wrong so far.
        expand: asks the program of a job with `app` for its inputs, outputs and stores; called if nothing is wrong so far.

    Raises:
        ConfigError: with everything that is wrong, sorted.
    """
    environ = os.environ if environ is None else environ
    problems: list[Problem] = []
    root = _read(paths, problems)
    if root is None:
        raise ConfigError(problems)
    for number, text in enumerate(sets, 1):
        root = apply_set(root, number, text, Path.cwd(), problems)
    folders = tuple(dict.fromkeys((paths[0].absolute().parent, Path.cwd())))
    values, failed = resolve(root, environ, problems)
    secrets = secret_texts(root, environ)
    keep_out({*secrets, *secret_values(values)})
    settings, findings = check(values)
    findings += check_written(values)
    findings += check_avro_files(values, folders)
    if check_client is not None:
        findings += check_client_keys(values, check_client)
    is_clean = settings is not None and not findings and not problems
    if is_clean and settings is not None and check_classes and before_classes is not None:
        before_classes(settings)
    sections: Mapping[str, Any] = {}
    if is_clean and expand is not None and values.get("app") is not None:
        sections, findings = expand(values, folders)
        if not findings:
            values |= sections
            settings, findings = check(values)
            findings = [_of_program(finding) for finding in findings]
    if check_classes:
        findings += _check_classes(values, folders, {finding.path for finding in findings})
    problems += problems_of(findings, failed, root, secrets)
    if problems or settings is None:
        raise ConfigError(problems)
    document = {**_travelling(root, environ, settings), **sections}
    return LoadedJob(settings, document, folders, tuple(paths), tuple(written_secrets(root)), origins(root, settings))


def _read(paths: Sequence[Path], problems: list[Problem]) -> Node | None:
    """All files merged, later ones win; None if one of them cannot be read as a map."""
    root: Node | None = None
    readable = bool(paths)
    for path in paths:
        try:
            node = parse(source := read_file(path), problems)
        except Stop as stop:
            problems.append(stop.problem)
            readable = False
            continue
        if node is None:
            hint = "A job file has at least job, kafka.bootstrap.servers, and either app, or task and inputs."
            problems.append(source.place(0, 0).problem((), "the file is empty", hint))
            readable = False
        elif not isinstance(node, Table):
            place = node.place or source.place(0, 0)
            message = f"expected keys and values, found {shown(plain(node))}"
            problems.append(place.problem((), message, "A job file begins with a line such as `job: page-views`."))
            readable = False
        else:
            hide_secrets(node)
            root = node if root is None else merged(root, node)
    return root if readable else None


def _of_program(finding: Finding) -> Finding:
    """What is wrong with what a program says is wrong with the program: the file has no line for it."""
    return Finding(("app",), f"{dotted(finding.path)}: {finding.message}", finding.hint) if finding.path[0] in OF_PROGRAMS else finding


def _check_classes(values: Mapping[str, Any], folders: Sequence[Path], wrong: set[Route]) -> list[Finding]:
    findings = []
    task = values.get("task")
    if isinstance(task, str) and ("task",) not in wrong and CLASS.fullmatch(task):
        try:
            task_class.import_task_class(task, folders)
        except ConfigError as error:
            findings += [Finding(("task",), problem.message, problem.hint) for problem in error.problems]
    for path, name in serdes(values):
        if path not in wrong and not name.startswith("avro:") and not is_registered(name) and CLASS.fullmatch(name.removeprefix(RECORD)):
            try:
                if name.startswith(RECORD):
                    is_kept = path[0] == "stores"
                    task_class.import_record_class(name.removeprefix(RECORD), folders, is_key_of_state=is_kept and path[-1] == "key", comes_back=is_kept)
                else:
                    task_class.import_serde_class(name, folders)
            except ConfigError as error:
                findings += [Finding(path, problem.message, problem.hint) for problem in error.problems]
    for path, name in time_functions(values):
        try:
            task_class.import_time_function(name, folders)
        except ConfigError as error:
            findings += [Finding(path, problem.message, problem.hint) for problem in error.problems if path not in wrong]
    return findings


def _travelling(root: Node, environ: Mapping[str, str], settings: Settings) -> dict[str, Any]:
    """The document for containers; a relative state directory is made absolute, because they run elsewhere."""
    values, _ = resolve(root, environ, [], keep_secrets=True)
    document: dict[str, Any] = _settled(values, ())
    state = document.get("state")
    given = state.get("dir") if isinstance(state, dict) else None
    if isinstance(state, dict) and isinstance(given, str) and not given.startswith(("/", "~", "$")):
        document["state"] = {**state, "dir": str(settings.state.dir)}
    return document


def _settled(value: Any, path: Route) -> Any:
    """Plain JSON: text that came out of a reference becomes what its setting reads in it, now that nothing tells it apart any more."""
    if isinstance(value, dict):
        return {key: _settled(item, (*path, key)) for key, item in value.items()}
    if isinstance(value, list):
        return [_settled(item, (*path, i)) for i, item in enumerate(value)]
    if not isinstance(value, Interpolated):
        return value
    section = section_at(path[:-1])
    name = known_keys(section).get(str(path[-1])) if section else None
    wanted = section.model_fields[name].annotation if section and name else str
    found = read_scalar(value)
    is_text = wanted is str or (str in get_args(wanted) and not isinstance(found, bool))  # the topic 2024.10 of `changelog` is not 2024.1
    return str(value) if is_text else found
