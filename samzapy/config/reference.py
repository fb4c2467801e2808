"""The key reference and the JSON schema, made from the settings' types: `python -m samzapy.config.reference --check | --write`.

They cannot drift: a test compares what is in `config/` with what is made here.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

from pydantic.fields import FieldInfo

from samzapy.config.kafka_keys import JAVA, LOADS_CODE, OWNED
from samzapy.config.schema import LISTS, MAPS, NESTED, SECTIONS, Section, Settings, known_keys
from samzapy.config.units import format_duration, format_size

FOLDER = Path("config")
MARKDOWN, SCHEMA = FOLDER / "REFERENCE.md", FOLDER / "job.schema.json"
INTRODUCTION = """# The job file's keys

Made by `python -m samzapy.config.reference --write`; do not edit.

Write durations as `500ms`, `10s`, `5m`, `2h`, `7d`, and sizes as `64MiB`. Values may contain the references `${VAR}`, `${VAR:-default}` and `${file:PATH}`;
write `$${` for a literal `${`. A job file overrides the defaults, each further file (`-f`) overrides the files before it (maps are merged, lists are
replaced), and `--set a.b=c` overrides all files. References that may hold secrets are those in secret keys of `kafka`, `params`, `spark`, `schema_registry`
and `web`, those to files, and those to variables with names like `DB_PASSWORD`. Their values are not sent to containers: each process resolves them on its
own host.

To let an editor complete and check a job file with `job.schema.json`, write as its first line `# yaml-language-server: $schema=job.schema.json`.
"""


def markdown() -> str:
    """The key reference."""
    parts = [INTRODUCTION, _table("Top-level keys", "", Settings)]
    for name, model in SECTIONS.items():
        where = f"{name}[]" if name in LISTS else f"{name}.<name>" if name in MAPS else name
        parts.append(_table(f"`{where}`: {_first_line(model)}", f"{where}.", model))
        for (owner, key), nested in NESTED.items():
            if owner == name:
                parts.append(_table(f"`{where}.{key}`: {_first_line(nested)}", f"{where}.{key}.", nested))
    parts.append("\n".join(_kafka()) + "\n")
    return "\n".join(parts)


def json_schema() -> str:
    """The JSON schema of the job file."""
    schema = Settings.model_json_schema(by_alias=True)
    schema |= {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "A samzapy job file"}
    schema["oneOf"] = [{"required": ["task", "inputs"]}, {"required": ["app"]}]
    models: list[type[Section]] = [Settings, *SECTIONS.values(), *NESTED.values()]
    for model in models:
        place = schema if model is Settings else schema["$defs"][model.__name__]
        for key, name in known_keys(model).items():
            field = model.model_fields[name]
            default = _default(field, name)
            place["properties"][key].pop("default", None)
            if default not in (None, "", "none"):
                plain = not name.endswith(("_ms", "_bytes")) and isinstance(field.default, int)
                place["properties"][key]["default"] = field.default if plain else default
    return json.dumps(schema, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def _table(title: str, prefix: str, model: type[Section]) -> str:
    lines = [f"## {title}", "", "| key | default | unit or form | meaning |", "|---|---|---|---|"]
    for key, name in known_keys(model).items():
        field = model.model_fields[name]
        cells = (f"`{prefix}{key}`", _shown_default(field, name), _form(field, name), (field.description or "").replace("|", "\\|"))
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _kafka() -> Iterator[str]:
    yield "## `kafka`: keys that are refused"
    yield ""
    yield "All other keys are librdkafka's own; `kafka.producer` and `kafka.consumer` override for one kind of client."
    yield ""
    yield "| key | why, or what to set |"
    yield "|---|---|"
    for key, why in sorted(OWNED.items()):
        yield f"| `{key}` | {why} |"
    for key in sorted(LOADS_CODE):
        yield f"| `{key}` | would run code |"
    for key, ours in sorted(JAVA.items()):
        yield f"| `{key}` | {ours} |"


def _first_line(model: type[Section]) -> str:
    text = (model.__doc__ or "").strip().splitlines()[0].rstrip(".")
    return text[:1].lower() + text[1:]


def _default(field: FieldInfo, name: str) -> str | None:
    """The default as it would be written; "" for a map or list that is empty, None if the key is required."""
    if field.is_required():
        return None
    value = field.get_default(call_default_factory=True, validated_data={})
    if value is None:
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return format_duration(value) if name.endswith("_ms") else format_size(value) if name.endswith("_bytes") else str(value)
    if isinstance(value, Path):
        return "~/.samzapy/state"
    return value if isinstance(value, str) else ""


def _shown_default(field: FieldInfo, name: str) -> str:
    default = _default(field, name)
    return "**required**" if default is None else f"`{default}`" if default not in ("", "none") else default


def _form(field: FieldInfo, name: str) -> str:
    words = [*get_args(field.annotation)]
    if name.endswith("_ms"):
        return "duration"
    if name.endswith("_bytes"):
        return "size"
    if words and all(isinstance(word, str) for word in words):
        return " / ".join(f"`{word}`" for word in words)
    return _kind(field.annotation)


def _kind(annotation: Any) -> str:
    text = str(annotation)
    if annotation is bool:
        return "true / false"
    if "bool" in text:
        return "true / false / text"
    if annotation is int or "[int" in text:
        return "whole number"
    if text.startswith("tuple"):
        return "list"
    kinds = [kind for kind in (annotation, *get_args(annotation)) if isinstance(kind, type)]
    if text.startswith("dict") or any(issubclass(kind, Section) for kind in kinds):
        return "map"
    return "text"


def drifted(root: Path) -> list[Path]:
    """The files under `root` that are not what they would be if they were made now."""
    made = {MARKDOWN: markdown(), SCHEMA: json_schema()}
    return [name for name, text in made.items() if not (root / name).is_file() or (root / name).read_text(encoding="utf-8") != text]


def main(arguments: list[str]) -> int:
    """Check or write the files under the working directory."""
    root = Path.cwd()
    if arguments == ["--write"]:
        for name, text in ((MARKDOWN, markdown()), (SCHEMA, json_schema())):
            (root / name).write_text(text, encoding="utf-8")
        return 0
    if arguments != ["--check"]:
        sys.stderr.write("usage: python -m samzapy.config.reference --check | --write\n")
        return 2
    for name in drifted(root):
        sys.stderr.write(f"{name} is out of date: run python -m samzapy.config.reference --write\n")
    return 1 if drifted(root) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
