"""The classes that a job file names, imported and looked at before anything starts: an error is told in one line, at the key that named it.

This is the only place of samzapy.config that runs the user's code, and it does so only when asked.
"""

from __future__ import annotations

import difflib
import importlib
import importlib.machinery
import inspect
import pkgutil
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from samzapy.api.errors import ConfigurationError
from samzapy.api.serde import holds_records
from samzapy.api.task import StreamTask
from samzapy.config import model_names, user_import
from samzapy.config.errors import ConfigError, Problem
from samzapy.config.key_class import REMEDY, why_no_key
from samzapy.config.scalars import near

HOOKS = {"init": 1, "process": 3, "process_batch": 3, "window": 2, "end_of_stream": 2, "close": 0}  # and how many arguments each has
NEAR = 0.88  # how alike two names are, from 0 to 1, of which one is probably a misspelt other


def import_task_class(task: str, folders: Sequence[Path]) -> type[StreamTask]:
    """The StreamTask that `module:Class` names; `folders` are put in front of sys.path.

    Raises:
        ConfigError: it cannot be imported, is not a StreamTask, has no usable `process` or `process_batch`, or cannot be made without arguments.
    """
    found, module = _import("task", task, folders)
    name = task.partition(":")[2]
    if not inspect.isclass(found) or not issubclass(found, StreamTask):
        hint = f"did you mean {_meant_task(module, name)}?" if _tasks_of(module) else f"Write class {name}(StreamTask)."
        raise _refusal("task", f"{name} in {module.__name__} is not a StreamTask", hint)
    if found.process is StreamTask.process and found.process_batch is StreamTask.process_batch:
        raise _refusal("task", f"{name} has no method `process`", "Define process(self, envelope, collector, coordinator), or process_batch.")
    for hook, arguments in HOOKS.items():
        _check_hook(found, name, hook, arguments)
    needed = _required_arguments(found)
    if needed:
        hint = "It is created without arguments: read `context.params` in `init`."
        raise _refusal("task", f"{name}.__init__ requires {', '.join(needed)}", hint)
    return found


def import_program(name: str, folders: Sequence[Path]) -> Any:
    """What `app: module:name` names; whether it is a program is for others to say.

    Raises:
        ConfigError: it cannot be imported.
    """
    return _import("app", name, folders)[0]


def unused_process(found: type[StreamTask]) -> str:
    """What to know about a class that defines `process` and `process_batch`; "" if it does not."""
    if found.process is StreamTask.process or found.process_batch is StreamTask.process_batch:
        return ""
    return f"{found.__name__} defines process and process_batch: process_batch is used, and process is called only if your own code calls it"


def never_called(found: type[StreamTask], has_window: bool) -> Iterator[str]:
    """What to know about a class: methods that look like hooks under another name, and an interval for a hook that it does not define."""
    hooks = [name for name in HOOKS if name != "close"]  # too short a word
    for name, value in vars(found).items():
        if inspect.isfunction(value) and name not in HOOKS and not name.startswith("_"):
            near_it = difflib.get_close_matches(name, hooks, 1, NEAR)
            if near_it:
                yield f"samzapy never calls {found.__name__}.{name}: if it is a hook, its name is {near_it[0]}"
    if has_window and found.window is StreamTask.window:
        yield f"`window` of the job file has no effect: {found.__name__} defines no method window(collector, coordinator)"


def import_serde_class(name: str, folders: Sequence[Path]) -> type[Any]:
    """The class of a serde that `module:Class` names.

    Raises:
        ConfigError: it cannot be imported, has no `encode` or `decode`, or cannot be made without arguments.
    """
    found, _ = _import("serde", name, folders)
    if not inspect.isclass(found):
        raise _refusal("serde", f"{name} is not a class", "Name a class with `encode` and `decode`.")
    missing = [method for method in ("encode", "decode") if not callable(getattr(found, method, None))]
    if missing:
        raise _refusal(
            "serde", f"serde {name} has no method {' and no '.join(missing)}", "Define encode(self, value) and decode(self, data)."
        )
    needed = _required_arguments(found)
    if needed:
        raise _refusal("serde", f"serde {name} requires {', '.join(needed)} to be created", "Give its arguments defaults.")
    return found


def import_record_class(name: str, folders: Sequence[Path], *, is_key_of_state: bool = False, comes_back: bool = False) -> type[Any]:
    """The class of the objects that a serde `record:module:Class` reads and writes. `comes_back`: samzapy reads what it writes with it.

    Raises:
        ConfigError: it cannot be imported, does not declare its fields, or cannot be what it is to be.
    """
    found, _ = _import("serde", name, folders)
    if not inspect.isclass(found) or not holds_records(found):
        hint = "Name a dataclass, msgspec.Struct, NamedTuple, TypedDict or pydantic model."
        raise _refusal("serde", f"record:{name} does not declare its fields", hint)
    if is_key_of_state and (why := why_no_key(found)):
        raise _refusal("serde", f"objects of record:{name} cannot be keys of a store: {why}, and state is found by the bytes of its key", REMEDY)
    if comes_back and (why := model_names.other_names(found)):
        raise _refusal("serde", f"{why}; what is kept of record:{name} could not be read back", model_names.REMEDY)
    return found


def import_time_function(name: str, folders: Sequence[Path]) -> Callable[[Any], Any]:
    """The function that `inputs[].time.from` names; it is called with a record's value.

    Raises:
        ConfigError: it cannot be imported, or cannot be called with one argument.
    """
    found, _ = _import("inputs[].time.from", name, folders)
    if not callable(found):
        raise _refusal("inputs[].time.from", f"{name} is not a function", "Name a function of the value.")
    try:
        inspect.signature(found).bind(None)
    except TypeError:
        raise _refusal("inputs[].time.from", f"{name} cannot be called with a value alone", "Define it with one parameter.") from None
    except ValueError:  # a builtin without a signature
        pass
    return found  # type: ignore[no-any-return]


def _import(key: str, name: str, folders: Sequence[Path]) -> tuple[Any, ModuleType]:
    module_name, _, class_path = name.partition(":")
    _refuse_pythons_own(key, module_name.partition(".")[0], folders)
    for folder in reversed(folders):
        if str(folder) not in sys.path:
            sys.path.insert(0, str(folder))
    importlib.invalidate_caches()
    module = _import_module(key, module_name, folders)
    found: Any = module
    for part in class_path.split("."):
        if not hasattr(found, part):
            raise _no_class(key, module, class_path, part)
        found = getattr(found, part)
    return found, module


def _refuse_pythons_own(key: str, name: str, folders: Sequence[Path]) -> None:
    """A module of the user's with the name of one of Python's own is found or not, depending on who has imported that one before."""
    if name in sys.stdlib_module_names:
        for folder in folders:
            for mine in (folder / f"{name}.py", folder / name / "__init__.py"):
                if mine.exists():
                    raise _refusal(key, f"{mine} has the name of one of Python's own modules", f"Rename it: Python may import its own {name!r} instead.")


def named_as_pythons_own(folders: Sequence[Path]) -> list[Path]:
    """Files and packages beside the job file, or in the working directory, that have the name of one of Python's own modules."""
    found = (path for folder in folders for path in sorted(folder.iterdir()) if path.stem in sys.stdlib_module_names)
    return [path for path in found if (path.suffix == ".py" and path.is_file()) or (path / "__init__.py").is_file()]


def _import_module(key: str, name: str, folders: Sequence[Path]) -> ModuleType:
    try:
        return user_import.import_module(name)
    except ModuleNotFoundError as error:
        if error.name and (name == error.name or name.startswith(f"{error.name}.")):
            raise _no_module(key, error.name, folders) from None
        raise _broken(key, name, error) from None
    except ConfigurationError as error:  # a program of streams, refused where it is defined
        raise _refusal(key, error.message, error.remedy) from None
    except (Exception, SystemExit) as error:  # noqa: BLE001  what a user's module raises at import may be anything
        raise _broken(key, name, error) from None


def _no_module(key: str, name: str, folders: Sequence[Path]) -> ConfigError:
    parent, _, last = name.rpartition(".")
    places = [str(folder) for folder in folders]
    if parent and parent in sys.modules:
        places = list(getattr(sys.modules[parent], "__path__", places))
    meant = near(last, [info.name for info in pkgutil.iter_modules(places)])
    looked = " and ".join(dict.fromkeys(str(folder) for folder in folders)) or "sys.path"
    hint = f"did you mean {f'{parent}.{meant}' if parent else meant!r}?" if meant else f"Searched: {looked}."
    return _refusal(key, f"there is no module {name!r}", hint)


def _broken(key: str, name: str, error: BaseException) -> ConfigError:
    """An import that failed in the user's code: file, line and exception, in one line."""
    if isinstance(error, SyntaxError) and error.filename:
        where, line = error.filename, error.lineno
        what = f"{type(error).__name__}: {error.msg}"
    else:
        ours = str(Path(__file__).parents[1])
        frames = [f for f in traceback.extract_tb(error.__traceback__) if "importlib" not in f.filename and not f.filename.startswith(f"{ours}/")]
        where, line = (frames[-1].filename, frames[-1].lineno) if frames else (name, 0)
        what = f"it ends the process: {error}" if isinstance(error, user_import.EndsProcess) else _one_line(error)
    hint = f"Correct that line. The whole traceback: python -c 'import {name}'."
    if isinstance(error, ModuleNotFoundError) and error.name:
        hint = f"Install the package that has the module {error.name!r}, or put the module beside the job file."
    return _refusal(key, f"importing {name} failed at {where}:{line}: {what}", hint)


def _one_line(error: BaseException) -> str:
    return " ".join(traceback.format_exception_only(error)[-1].split())


def _no_class(key: str, module: ModuleType, class_path: str, part: str) -> ConfigError:
    if key == "task" and _tasks_of(module):
        hint = f"did you mean {_meant_task(module, part)}?"
    else:
        meant = near(part, [n for n, v in vars(module).items() if inspect.isclass(v) or key == "app"])
        hint = f"did you mean {meant}?" if meant else f"{module.__name__} is {getattr(module, '__file__', 'no file')}."
    what = "" if key == "app" else "class "
    return _refusal(key, f"module {module.__name__!r} has no {what}{class_path!r}", hint)


def _tasks_of(module: ModuleType) -> list[str]:
    return sorted(n for n, v in vars(module).items() if inspect.isclass(v) and issubclass(v, StreamTask) and v is not StreamTask)


def _meant_task(module: ModuleType, name: str) -> str:
    tasks = _tasks_of(module)
    return near(name, tasks) or " or ".join(tasks)


def _check_hook(found: type[StreamTask], name: str, hook: str, arguments: int) -> None:
    function: Callable[..., Any] = getattr(found, hook)
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function) or inspect.isgeneratorfunction(function):
        raise _refusal(
            "task", f"{name}.{hook} is a coroutine or generator: it would never run", "Write a plain def without await and yield."
        )
    try:
        inspect.signature(function).bind(*[None] * (arguments + (0 if _is_static(found, hook) else 1)))
    except TypeError:
        wanted = list(inspect.signature(getattr(StreamTask, hook)).parameters)
        raise _refusal("task", f"{name}.{hook} has the wrong arguments", f"Define {hook}({', '.join(wanted)}).") from None
    except ValueError:  # a signature that Python does not know is not ours to judge
        return


def _is_static(found: type, hook: str) -> bool:
    return isinstance(inspect.getattr_static(found, hook), staticmethod | classmethod)


def _required_arguments(found: type) -> list[str]:
    try:
        parameters = inspect.signature(found).parameters.values()
    except ValueError:
        return []
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return [p.name for p in parameters if p.default is inspect.Parameter.empty and p.kind in kinds]


def _refusal(key: str, message: str, hint: str) -> ConfigError:
    return ConfigError([Problem("", 0, 0, key, message, hint)])
