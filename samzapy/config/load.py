"""From job files, overlays and `--set` to typed settings: everything that is wrong is told at once, each with its place.

default < file < later file (maps merge, lists are replaced) < --set
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from samzapy.api.errors import ConfigurationError
from samzapy.config.checks import CheckClient, client_findings, findings, fit_findings
from samzapy.config.document import Document, KeyPath, parse, read_document, show_path
from samzapy.config.errors import ConfigError, Problem
from samzapy.config.hints import BUILTIN_SERDES, RESERVED, unknown_key
from samzapy.config.interpolation import resolve
from samzapy.config.schema import NOT_BUILT, InputSettings, OutputSettings, Settings, StoreSettings
from samzapy.config.task_class import import_class, import_task_class

SET = "--set"
WHOLE_REST = (("kafka", "producer"), ("kafka", "consumer"), ("kafka",), ("spark", "conf"))  # below these, a key has dots of its own
ITEMS: dict[str, type[BaseModel]] = {"inputs": InputSettings, "outputs": OutputSettings, "stores": StoreSettings}


@dataclass(frozen=True, slots=True)
class LoadedJob:
    """A valid job.

    Attributes:
        settings: typed, every reference resolved.
        document: as plain data; references in secret keys are left as they stand: this is what containers are given.
        folders: where the job's modules and schemas are looked for.
    """

    settings: Settings
    document: dict[str, Any]
    folders: tuple[Path, ...]
    sources: tuple[Path, ...]


def load_job(
    paths: Sequence[Path],
    sets: Sequence[str] = (),
    environ: Mapping[str, str] | None = None,
    check_client: CheckClient | None = None,
    check_classes: bool = False,
) -> LoadedJob:
    """The job that the files and `--set`s describe.

    Raises:
        ConfigError: with all problems.
    """
    environ = os.environ if environ is None else environ
    folders = _folders(paths[0])
    document = Document()
    for file in paths:
        document.lay_over(read_document(file))
    for text in sets:
        _lay_set(document, text)
    problems = list(document.problems)
    if not isinstance(document.content, dict):
        if not problems:
            problems.append(document.place(()).problem("", "expected a map of settings at the top", "a job file begins with `job: NAME`"))
        raise ConfigError(problems)

    def told(path: KeyPath, message: str, hint: str) -> None:
        problems.append(document.place(path).problem(show_path(path), message, hint))

    content = resolve(document.content, environ, told)
    for path, of_key, message, hint in findings(content, folders):
        problems.append(document.place(path, of_key).problem(show_path(path), message, hint))
    if check_client is not None:
        for path, of_key, message, hint in client_findings(content.get("kafka"), check_client):
            problems.append(document.place(path, of_key).problem(show_path(path), message, hint))
    settings = _validated(content, document, problems)
    if check_classes:
        problems.extend(_class_problems(content, document, folders))
    if settings is not None:
        for path, of_key, message, hint in fit_findings(settings):
            problems.append(document.place(path, of_key).problem(show_path(path), message, hint))
    if problems or settings is None:
        raise ConfigError(_once(problems))
    sent = resolve(document.content, environ, lambda *_: None, secrets=False)
    return LoadedJob(settings, sent, folders, tuple(paths))


def settings_from_document(document: Mapping[str, Any], environ: Mapping[str, str]) -> Settings:
    """Settings from a document that was checked before, with what is still to be resolved taken from here.

    Raises:
        ConfigError: without places.
    """
    problems: list[Problem] = []
    content = resolve(
        dict(document), environ, lambda path, message, hint: problems.append(Problem("", 0, 0, show_path(path), message, hint))
    )
    settings = _validated(content, Document(content), problems)
    if problems or settings is None:
        raise ConfigError(_once(problems))
    return settings


def _folders(path: Path) -> tuple[Path, ...]:
    here = Path.cwd()
    folder = path.resolve().parent
    return (folder,) if folder == here else (folder, here)


# -- --set -------------------------------------------------------------------------------------------------------------------------------


def _lay_set(document: Document, text: str) -> None:
    name, equals, raw = text.partition("=")
    here = Problem(SET, 1, 1, "", f"expected KEY=VALUE, found {text!r}", "for example --set commit.interval=100ms", text)
    if not equals or not name.strip():
        document.problems.append(here)
        return
    value = parse(raw, SET) if raw.strip() else Document("")
    if value.problems or isinstance(value.content, dict | list):
        document.problems.append(Problem(SET, 1, len(name) + 2, name, f"{raw!r} is no YAML scalar", "quote it", text))
        return
    _place_set(document, set_path(name.strip()), value.content, text, len(name) + 2)


def set_path(name: str) -> KeyPath:
    """`a.b=c` as a path; numbers are list indexes; below kafka and spark.conf the rest is one key."""
    parts = name.split(".")
    for start in WHOLE_REST:
        if tuple(parts[: len(start)]) == start and len(parts) > len(start):
            return (*start, ".".join(parts[len(start) :]))
    return tuple(int(p) if p.isdigit() else p for p in parts)


def _place_set(document: Document, path: KeyPath, value: Any, text: str, column: int) -> None:
    from samzapy.config.document import Place

    place, key_place = Place(SET, 1, column, text), Place(SET, 1, 1, text)
    if document.content is None:
        document.content = {}
    target = document.content
    for depth, part in enumerate(path):
        problem = key_place.problem(show_path(path), "", "")
        if isinstance(part, int):
            if not isinstance(target, list) or part >= len(target):
                have = len(target) if isinstance(target, list) else 0
                document.problems.append(
                    Problem(
                        **{**_fields(problem), "message": f"there is no item {part}: the list has {have}", "hint": "items count from 0"}
                    )
                )
                return
        elif not isinstance(target, dict):
            document.problems.append(
                Problem(**{**_fields(problem), "message": f"{show_path(path[:depth])} is no map", "hint": "list items are set by index"})
            )
            return
        if depth == len(path) - 1:
            target[part] = value
            document.keys[path], document.values[path] = key_place, place
        else:
            if isinstance(part, str) and target.get(part) is None:
                target[part] = {}
                document.keys[path[: depth + 1]] = key_place
            target = target[part]


def _fields(problem: Problem) -> dict[str, Any]:
    return {name: getattr(problem, name) for name in Problem.__dataclass_fields__}


# -- the schema's errors, in words ---------------------------------------------------------------------------------------------------------


def _validated(content: Any, document: Document, problems: list[Problem]) -> Settings | None:
    try:
        return Settings.model_validate(content)
    except ValidationError as error:
        problems.extend(_reworded(error, document))
        return None


def _reworded(error: ValidationError, document: Document) -> Iterator[Problem]:
    seen: set[KeyPath] = set()
    for detail in error.errors(include_url=False, include_context=True):
        path = _real_path(detail["loc"], document.content, detail["type"])
        emptied = detail["type"] == "too_short" and bool(detail["input"])  # its items are wrong: each has been told
        if path in seen or emptied:
            continue
        seen.add(path)
        message, hint, of_key = _words(detail, path)
        place = document.place(path[:-1] if detail["type"] == "missing" else path, of_key)
        yield place.problem(show_path(path), message, hint)


def _real_path(loc: tuple[int | str, ...], content: Any, kind: str) -> KeyPath:
    """The part of pydantic's location that stands in the document; it adds names of union members."""
    path: list[str | int] = []
    here = content
    for part in loc:
        inside = (isinstance(here, dict) and part in here) or (isinstance(here, list) and isinstance(part, int) and part < len(here))
        if not inside:
            return (*path, part) if kind == "missing" and part == loc[-1] else tuple(path)
        path.append(part)
        here = here[part]
    return tuple(path)


def _model_at(path: KeyPath) -> type[BaseModel]:
    model: type[BaseModel] = Settings
    for part in path:
        if part in ITEMS and model is Settings:
            model = ITEMS[str(part)]
            continue
        found = next((f.annotation for n, f in model.model_fields.items() if (f.alias or n) == part), None)
        inner = [t for t in (found, *get_args(found)) if isinstance(t, type) and issubclass(t, BaseModel)]
        model = inner[0] if inner else model
    return model


def _names(model: type[BaseModel]) -> list[str]:
    return [f.alias or n for n, f in model.model_fields.items()]


def _words(detail: ErrorDetails, path: KeyPath) -> tuple[str, str, bool]:
    """(message, hint, is it about the key)."""
    kind, given, context = detail["type"], detail["input"], detail.get("ctx", {})
    if kind == "extra_forbidden":
        key = str(path[-1])
        in_store = path[0] == "stores"
        if key in RESERVED:
            return f"{key!r} is {NOT_BUILT}", "leave it out for now", True
        return f"unknown key {key!r}", unknown_key(key, _names(_model_at(path[:-1])), in_store, len(path) == 1), True
    if kind == "missing":
        return f"required key {path[-1]!r} is missing", "add it", False
    if kind == "value_error":
        message = str(context.get("error", detail["msg"]))
        return message, "leave it out for now" if NOT_BUILT in message else _unit_hint(message), False
    if kind == "literal_error":
        return f"expected {context['expected']}, found {given!r}", "choose one of them", False
    limits = {"greater_than_equal": "at least", "less_than_equal": "at most", "greater_than": "more than", "less_than": "less than"}
    if kind in limits:
        bound = next(iter(context.values()))
        unit = (
            " ms"
            if isinstance(given, str) and path[-1] != "memory" and path[-1] != "max_uncommitted"
            else " bytes"
            if isinstance(given, str)
            else ""
        )
        return f"expected {limits[kind]} {bound}{unit}, found {given!r}", "choose another value", False
    if kind in ("too_short", "string_too_short"):
        return "must not be empty", "give at least one", False
    return f"expected {_expected(kind)}, found {_shown(given)}", _type_hint(kind, given), False


def _unit_hint(message: str) -> str:
    return "write the number with its unit" if "duration" in message or "size" in message else "see the key reference"


def _expected(kind: str) -> str:
    table = {
        "string_type": "text", "int_type": "a whole number", "bool_type": "true or false", "dict_type": "a map", "model_type": "a map",
        "tuple_type": "a list", "list_type": "a list", "float_type": "a number", "int_parsing": "a whole number", "float_parsing": "a number",
    }  # fmt: skip
    return table.get(kind, "another type")


def _type_hint(kind: str, given: Any) -> str:
    if kind == "string_type" and isinstance(given, int | float | bool):
        return f'put it in quotes: "{given}"'
    if kind in ("tuple_type", "list_type"):
        return "begin each item with `- `"
    if kind in ("dict_type", "model_type"):
        return "write `key: value` pairs below it"
    return "see the key reference"


def _shown(value: Any) -> str:
    names = {dict: "a map", list: "a list", type(None): "nothing"}
    return names.get(type(value)) or repr(value)[:80]


def _once(problems: Sequence[Problem]) -> list[Problem]:
    """One problem a place and path: what is said of a key by two checks is said once."""
    chosen: dict[tuple[str, int, int, str], Problem] = {}
    for problem in problems:
        chosen.setdefault((problem.file, problem.line, problem.column, problem.path), problem)
    return list(chosen.values())


# -- the user's classes ----------------------------------------------------------------------------------------------------------------------


def _class_problems(content: Mapping[str, Any], document: Document, folders: Sequence[Path]) -> Iterator[Problem]:
    task = content.get("task")
    if isinstance(task, str) and ":" in task:
        try:
            import_task_class(task, folders)
        except ConfigurationError as error:
            yield document.place(("task",)).problem("task", error.message, error.remedy)
    for path, name in _serde_names(content):
        if ":" in name and not name.startswith("avro:") and name not in BUILTIN_SERDES:
            try:
                import_class(name, folders)
            except ConfigurationError as error:
                yield document.place(path).problem(show_path(path), error.message, error.remedy)


def _serde_names(content: Mapping[str, Any]) -> Iterator[tuple[KeyPath, str]]:
    for section in ("inputs", "outputs", "stores"):
        entries = content.get(section)
        pairs = entries.items() if isinstance(entries, dict) else enumerate(entries) if isinstance(entries, list) else ()
        for index, entry in pairs:
            for side in ("key", "value"):
                if isinstance(entry, dict) and isinstance(entry.get(side), str):
                    yield (section, index, side), entry[side]
