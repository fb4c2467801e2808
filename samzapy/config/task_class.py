"""Importing the user's classes, and saying in one line what is wrong with them."""

from __future__ import annotations

import importlib
import inspect
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from samzapy.api.errors import ConfigurationError
from samzapy.api.task import StreamTask
from samzapy.config.hints import did_you_mean


def import_class(spec: str, folders: Sequence[Path]) -> Any:
    """The class named `module:Class`; `folders` are importable first.

    Raises:
        ConfigurationError: the module cannot be imported, or has no such class.
    """
    module_name, _, name = spec.partition(":")
    for folder in reversed(folders):
        if str(folder) not in sys.path:
            sys.path.insert(0, str(folder))
    importlib.invalidate_caches()
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name and (module_name == error.name or module_name.startswith(error.name + ".")):
            looked = ", ".join(str(f) for f in folders)
            raise ConfigurationError(
                f"module {module_name!r} is not found", f"it is looked for in {looked}, and among what is installed"
            ) from None
        raise ConfigurationError(f"module {module_name!r} cannot be imported: {_brief(error)}", "install what it needs") from None
    except Exception as error:  # noqa: BLE001  whatever the user's module raises is theirs to see
        raise ConfigurationError(f"module {module_name!r} cannot be imported: {_brief(error)}", "mend the module") from None
    found = getattr(module, name, None)
    if found is None:
        classes = [n for n, v in vars(module).items() if inspect.isclass(v)]
        raise ConfigurationError(
            f"module {module_name!r} has no class {name!r}", did_you_mean(name, classes) or f"it has: {', '.join(classes) or 'no classes'}"
        )
    if not inspect.isclass(found):
        raise ConfigurationError(f"{spec} is a {type(found).__name__}, not a class", "name a class")
    return found


def import_task_class(task: str, folders: Sequence[Path]) -> type[StreamTask]:
    """The job's task class.

    Raises:
        ConfigurationError: not importable, not a StreamTask, without process(), or its constructor wants arguments.
    """
    found: type[StreamTask] = import_class(task, folders)
    if not issubclass(found, StreamTask):
        raise ConfigurationError(f"{task} is not a StreamTask", "derive it from samzapy.StreamTask")
    if found.process is StreamTask.process:
        raise ConfigurationError(f"{task} does not define process()", "add `def process(self, envelope, collector, coordinator)`")
    wanted = [
        p.name for p in inspect.signature(found).parameters.values()
        if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)
    ]  # fmt: skip
    if wanted:
        raise ConfigurationError(
            f"{task}'s constructor wants arguments: {', '.join(wanted)}", "take settings from context.params in init()"
        )
    return found


def _brief(error: BaseException) -> str:
    """`file.py:12: ValueError: text`, of the innermost frame that is the user's."""
    if isinstance(error, SyntaxError):
        return f"{Path(error.filename or '?').name}:{error.lineno}: SyntaxError: {error.msg}"
    frames = [
        f
        for f in traceback.extract_tb(error.__traceback__)
        if "importlib" not in f.filename and not f.filename.startswith("<frozen") and f.filename != __file__
    ]
    where = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}: " if frames else ""
    return f"{where}{type(error).__name__}: {error}"
