"""`${VAR}`, `${VAR:-default}`, `${file:PATH}` inside scalar values, resolved after parsing, so that no value can change the structure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError
from ruamel.yaml.nodes import ScalarNode

from samzapy.config.document import PLAIN, KeyPath, scalar

REFERENCE = re.compile(r"\$\{(?:file:(?P<file>[^}]+)|(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>[^}]*))?|(?P<bad>[^}]*))\}")
MAX_SECRET_BYTES = 1 << 16
SECRET = re.compile(r"(password|passwd|secret|token|credential|jaas|private|sasl\.|ssl\.key|api[._-]?key)", re.IGNORECASE)

Told = Callable[[KeyPath, str, str], None]


def is_secret_key(path: KeyPath) -> bool:
    """Whether the value at this path is never shown and never leaves the process that uses it."""
    return any(isinstance(part, str) and SECRET.search(part) for part in path)


def redact(content: Any, path: KeyPath = ()) -> Any:
    """A copy that may be shown."""
    if isinstance(content, dict):
        return {k: redact(v, (*path, k)) for k, v in content.items()}
    if isinstance(content, list):
        return [redact(v, (*path, i)) for i, v in enumerate(content)]
    return "***" if is_secret_key(path) and content is not None else content


def resolve(content: Any, environ: Mapping[str, str], told: Told, path: KeyPath = (), secrets: bool = True) -> Any:
    """A copy with every reference resolved; `secrets=False` leaves those of secret keys as they stand. `told` hears of what is wrong."""
    if isinstance(content, dict):
        return {k: resolve(v, environ, told, (*path, k), secrets) for k, v in content.items()}
    if isinstance(content, list):
        return [resolve(v, environ, told, (*path, i), secrets) for i, v in enumerate(content)]
    if not isinstance(content, str) or "${" not in content or (not secrets and is_secret_key(path)):
        return content
    text = REFERENCE.sub(lambda found: _one(found, environ, lambda message, hint: told(path, message, hint)), content)
    whole = REFERENCE.fullmatch(content)
    return _typed(text) if whole and not whole["file"] and not is_secret_key(path) else text


def _one(found: re.Match[str], environ: Mapping[str, str], told: Callable[[str, str], None]) -> str:
    if found["bad"] is not None:
        told(f"{found[0]} is no reference", "write ${VAR}, ${VAR:-default} or ${file:PATH}")
        return ""
    if found["file"]:
        return _file(found["file"], told)
    value = environ.get(found["name"])
    if value is not None and (value or found["default"] is None):
        return value
    if found["default"] is not None:
        return found["default"]
    told(f"variable {found['name']} is not set", f"set it, or give a default: ${{{found['name']}:-…}}")
    return ""


def _file(name: str, told: Callable[[str, str], None]) -> str:
    try:
        data = Path(name).expanduser().read_bytes()
    except OSError as error:
        told(f"file {name} cannot be read: {error.strerror}", "check the path")
        return ""
    if len(data) > MAX_SECRET_BYTES:
        told(f"file {name} has more than {MAX_SECRET_BYTES >> 10} KiB", "name a file that holds one value")
        return ""
    return data.decode("utf-8", "replace").rstrip("\r\n")


def _typed(text: str) -> Any:
    """What YAML would read: so that a port from the environment is a number."""
    try:
        node = YAML(typ="safe", pure=True).compose(text)
        return scalar(node.value, str(node.tag).removeprefix(PLAIN)) if isinstance(node, ScalarNode) else text
    except (YAMLError, KeyError, ValueError):
        return text
