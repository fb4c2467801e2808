"""The types of single settings, as `schema.py` uses them: names, topics, serdes, paths, hosts, and the plain ones of `scalars.py`."""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, WithJsonSchema

from samzapy.config.plain_scalars import read_scalar
from samzapy.config.references import Interpolated
from samzapy.config.registered import BY_BOTH, BY_RECORD, BY_TOPIC, REGISTRY, is_registered
from samzapy.config.scalars import choice, duration, flag, near, shown, size, text, whole, wrong
from samzapy.config.units import DURATION_PATTERN, SIZE_PATTERN
from samzapy.model.names import JOB_ID, JOB_NAME, TOPIC_NAME

SERDES = ("string", "integer", "json", "bytes")
RECORD = "record:"
REFERENCE = r"\$\{"
CLASS = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")
STORE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
MAX_STORE_NAME = 80
MAX_PATH, MAX_PATH_PART = 2048, 255  # bytes; below the path come cluster, host, job, task and store
MAX_HOST, MAX_LABEL = 253, 63  # characters of a host name, and between its dots
MAX_SPARK_NUMBER = 1_000_000
_SPARK_MASTER = re.compile(
    r"local(\[(\d+|\*)(,\s*\d+)?\])?|local-cluster\[\d+,\s*\d+,\s*\d+\]|spark://[^\s/]+:\d+(,[^\s/]+:\d+)*|yarn|k8s://\S+"
)
_HOST = re.compile(r"[A-Za-z0-9._:\[\]-]+")
_TOKEN = re.compile(r"[A-Za-z0-9\-._~+/=]{16,200}")


def job_name(value: Any) -> str:
    name = text(value, "a name")
    if not JOB_NAME.fullmatch(name):
        raise wrong(
            f"expected letters, digits, '-' and '_', at most 80, found {shown(name)}",
            "It becomes part of the names of topics, a group and directories, so it must not be a path." if "/" in name or "\\" in name or ".." in name
            else foreign if (foreign := foreign_letter(name))
            else f"Write {suggested_name(name)!r}." if suggested_name(name) else "Write a name such as page-views.",
        )  # fmt: skip
    return name


def job_id(value: Any) -> str:
    found = text(value, 'an id such as "1"')
    if not JOB_ID.fullmatch(found) or len(found) > 40:
        raise wrong(f"expected letters and digits only, at most 40, found {shown(found)}", 'Write an id such as "1".')
    return found


def class_name(value: Any) -> str:
    name = text(value, "module:Class")
    if CLASS.fullmatch(name):
        return name
    dotted = re.fullmatch(r"([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)\.([A-Za-z_]\w*)", name)
    if dotted and not name.endswith(".py"):
        raise wrong(f"expected module:Class, found {shown(name)}", f"did you mean {dotted[1]}:{dotted[2]}?")
    hint = "It is the module's name, not its path: jobs.page_views:PageViewCounter." if "/" in name or ".py" in name else ""
    raise wrong(f"expected module:Class, found {shown(name)}", hint or "For example jobs.page_views:PageViewCounter.")


def topic(value: Any) -> str:
    name = text(value, "a topic")
    if not TOPIC_NAME.fullmatch(name):
        hint = "Give each topic its own entry." if "," in name else foreign_letter(name) or "Kafka allows letters, digits, '.', '_' and '-', at most 249."
        raise wrong(f"{shown(name)} is not a Kafka topic name", hint)
    return name


def serde(value: Any) -> str:
    name = text(value, "a serde")
    if name in SERDES or CLASS.fullmatch(name.removeprefix(RECORD)) or (name.startswith("avro:") and len(name) > 5) or is_registered(name):
        return name
    known = f"{', '.join(SERDES)}, avro:<schema file>, registry, registry:<schema file>, record:module:Class, or module:Class"
    aliases = {
        "str": "string",
        "text": "string",
        "int": "integer",
        "long": "integer",
        "byte": "bytes",
        "bytearray": "bytes",
        "binary": "bytes",
    }
    meant = aliases.get(name.lower()) or near(name, (*SERDES, REGISTRY))
    if name.partition(":")[0] == "record":
        raise wrong(f"serde {shown(name)} names no class", "Write record:module:Class, a dataclass, msgspec.Struct, TypedDict or pydantic model.")
    if name in ("avro", "avro:"):
        raise wrong(f"serde {shown(name)} names no schema file", "Write avro:<schema file>, the path from the job file's folder.")
    if name.partition(":")[0] == REGISTRY:
        raise wrong(f"serde {shown(name)} names no schema file", "Write registry:<schema file>, whose name ends in .avsc or .json, or registry alone.")
    raise wrong(f"unknown serde {shown(name)}", f"did you mean {meant!r}? Known are {known}." if meant else f"Known are {known}.")


def time_source(value: Any) -> str:
    name = text(value, "where a record's time is")
    if name.isidentifier() or CLASS.fullmatch(name):
        return name
    raise wrong(f"{shown(name)} is not a source of event time", "Write record, processing, the name of a field, or module:function.")


def duration_or(word: str) -> Callable[[Any], int | None]:
    """A duration in milliseconds; None for that word."""
    read = duration(1)

    def read_either(value: Any) -> int | None:
        return None if value is None or value == word else read(value)

    return read_either


def changelog(value: Any) -> bool | str:
    found = read_scalar(value) if isinstance(value, Interpolated) else value
    if isinstance(found, bool):
        return found
    if isinstance(found, str) and found.lower() in ("true", "false", "yes", "no", "on", "off"):
        raise wrong(f"expected true, false or a topic, found {shown(value)}", "Write true or false, without quotes.")
    return topic(value)


def directory(value: Any) -> Path:
    name = text(value, "a directory")
    try:
        path = Path(name).expanduser().absolute()
    except RuntimeError:
        raise wrong(f"{shown(name)} begins with the home directory of a user who is not known here", "Write a path that begins with /, or set HOME.") from None
    if len(os.fsencode(path)) > MAX_PATH or any(len(os.fsencode(part)) > MAX_PATH_PART for part in path.parts):
        raise wrong(f"a path of {len(str(path))} characters is too long: {shown(name)}", f"{MAX_PATH} bytes at most, {MAX_PATH_PART} between two /.")
    return path


def spark_master(value: Any) -> str:
    master = text(value, "a Spark master")
    if not _SPARK_MASTER.fullmatch(master):
        raise wrong(f"{shown(master)} is not a Spark master", "Write local[2], spark://host:7077, yarn or k8s://….")
    ports = re.findall(r":(\d+)(?=,|$)", master) if master.startswith("spark://") else []
    if any(not 0 < int(port) < 65536 for port in ports):
        raise wrong(f"{shown(master)} names an impossible port", "Ports go from 1 to 65535; Spark's is 7077.")
    if re.match(r"local\[0+[],]", master):
        raise wrong(f"{shown(master)} has no slot for a container", "Write local[2], or local[*] for a slot per core.")
    if master.startswith("local") and any(len(number) > len(str(MAX_SPARK_NUMBER)) or int(number) > MAX_SPARK_NUMBER for number in re.findall(r"\d+", master)):
        raise wrong(f"{shown(master)} has a number that is too large for Spark", f"{MAX_SPARK_NUMBER} is the limit; a slot per core is enough: local[*].")
    return master


def host(value: Any) -> str:
    name = text(value, "a host")
    if not _HOST.fullmatch(name):
        raise wrong(f"expected a host name or address, found {shown(name)}", "For example 127.0.0.1; the port is `web.port`.")
    if len(name) > MAX_HOST or (":" not in name and any(not 0 < len(label) <= MAX_LABEL for label in name.removesuffix(".").split("."))):
        raise wrong(f"{shown(name)} is no host name", f"{MAX_HOST} characters at most, 1 to {MAX_LABEL} between the dots.")
    return name


def file_path(value: Any) -> Path:
    path = Path(text(value, "the path of a file")).expanduser()
    if len(os.fsencode(path)) > MAX_PATH:
        raise wrong(f"a path of {len(str(path))} characters is too long", f"{MAX_PATH} bytes at most.")
    return path


def web_token(value: Any) -> str:
    """A token that people gave; what it is is never shown."""
    if not isinstance(value, str) or not _TOKEN.fullmatch(value.strip()):
        raise wrong("no token", 'One line of 16 to 200 letters, digits and -._~+/=, for example of `openssl rand -base64 32`; write it as "${file:PATH}".')
    return value.strip()


def hosts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list | tuple):
        raise wrong(f"expected a list of host names, found {shown(value)}", "Write names: [status.example], without ports.")
    return tuple(host(item) for item in value)


def params(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise wrong(f"expected a map, found {shown(value)}", "Write params: {name: value}.")
    return {key: _without_marks(item) for key, item in value.items()}


def properties(value: Any) -> dict[str, Any]:
    """Flat properties of Kafka or Spark; what is in them is looked at where all of them are known."""
    if not isinstance(value, dict):
        raise wrong(f"expected a map of properties, found {shown(value)}", "Write {name: value}.")
    return {key: _without_marks(item) for key, item in value.items() if item is not None}


def spark_properties(value: Any) -> dict[str, str]:
    return {key: str(item).lower() if isinstance(item, bool) else str(item) for key, item in properties(value).items()}


def suggested_name(name: str) -> str:
    """A legal name made of one that is not."""
    return re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-_")[:80]


def foreign_letter(name: str) -> str:
    """Which letter or digit looks as if it were allowed and is not: 'б' (CYRILLIC SMALL LETTER BE) is …; "" where there is none."""
    found = next((c for c in name if c.isalnum() and not c.isascii()), "")
    return f"{found!r} ({unicodedata.name(found, f'U+{ord(found):04X}')}) is none of a to z, A to Z and 0 to 9." if found else ""


def _without_marks(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_marks(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_marks(item) for item in value]
    return str(value) if isinstance(value, Interpolated) else value


def _schema(*own: dict[str, Any]) -> WithJsonSchema:
    """JSON schema of a setting that is not plain text: one of its own forms, or text with a reference."""
    return WithJsonSchema({"anyOf": [*own, {"type": "string", "pattern": REFERENCE}]})


_TOPIC_SCHEMA = {"type": "string", "pattern": r"^[A-Za-z0-9._-]{1,249}$"}
_SCALARS = ["string", "number", "boolean", "null"]


def _duration_schema() -> WithJsonSchema:
    return _schema({"type": "string", "pattern": f"^{DURATION_PATTERN}$"})


Duration = Annotated[int, BeforeValidator(duration(1)), _duration_schema()]
DurationOrZero = Annotated[int, BeforeValidator(duration(0)), _duration_schema()]
Idle = Annotated[int | None, BeforeValidator(duration_or("never")), _schema({"enum": ["never"]}, {"type": "string", "pattern": f"^{DURATION_PATTERN}$"})]
Ahead = Annotated[int | None, BeforeValidator(duration_or("any")), _schema({"enum": ["any"]}, {"type": "string", "pattern": f"^{DURATION_PATTERN}$"})]
TimeSource = Annotated[str, BeforeValidator(time_source), WithJsonSchema({"type": "string", "minLength": 1})]
WhenIdle = Annotated[Literal["hold", "advance"], BeforeValidator(choice("hold", "advance")), _schema({"enum": ["hold", "advance"]})]
Size = Annotated[int, BeforeValidator(size(1024)), _schema({"type": "string", "pattern": f"^{SIZE_PATTERN}$"})]
Memory = Annotated[int, BeforeValidator(size(16 << 20)), _schema({"type": "string", "pattern": f"^{SIZE_PATTERN}$"})]
Flag = Annotated[bool, BeforeValidator(flag), _schema({"type": "boolean"})]
JobName = Annotated[str, BeforeValidator(job_name), _schema({"type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9_-]{0,79}$"})]
JobId = Annotated[str, BeforeValidator(job_id), _schema({"type": ["string", "integer"], "pattern": "^[0-9A-Za-z]{1,40}$"})]
ClassName = Annotated[str, BeforeValidator(class_name), _schema({"type": "string", "pattern": r"^[\w.]+:[\w.]+$"})]
Topic = Annotated[str, BeforeValidator(topic), _schema(_TOPIC_SCHEMA)]
Changelog = Annotated[bool | str, BeforeValidator(changelog), _schema({"type": "boolean"}, _TOPIC_SCHEMA)]
_SERDE_SCHEMA: tuple[dict[str, Any], ...] = (
    {"enum": [*SERDES, REGISTRY]},
    {"type": "string", "pattern": r"^(avro|registry):.+|^(record:)?[\w.]+:[\w.]+$"},
)
Serde = Annotated[str, BeforeValidator(serde), _schema(*_SERDE_SCHEMA)]
Directory = Annotated[Path, BeforeValidator(directory), WithJsonSchema({"type": "string", "minLength": 1})]
SparkMaster = Annotated[str, BeforeValidator(spark_master), WithJsonSchema({"type": "string", "minLength": 1})]
Host = Annotated[str, BeforeValidator(host), WithJsonSchema({"type": "string", "minLength": 1})]
FilePath = Annotated[Path, BeforeValidator(file_path), WithJsonSchema({"type": "string", "minLength": 1})]
WebToken = Annotated[str, BeforeValidator(web_token), WithJsonSchema({"type": "string", "minLength": 1})]
Hosts = Annotated[tuple[str, ...], BeforeValidator(hosts), WithJsonSchema({"type": "array", "items": {"type": "string", "minLength": 1}})]
Params = Annotated[dict[str, Any], BeforeValidator(params), WithJsonSchema({"type": "object"})]
SparkProperties = Annotated[
    dict[str, str],
    BeforeValidator(spark_properties),
    WithJsonSchema({"type": "object", "propertyNames": {"pattern": r"^spark\."}, "additionalProperties": {"type": _SCALARS}}),
]
Subjects = Annotated[
    Literal["topic", "record", "topic_record"],
    BeforeValidator(choice(BY_TOPIC, BY_RECORD, BY_BOTH)),
    _schema({"enum": [BY_TOPIC, BY_RECORD, BY_BOTH]}),
]
RegistryUrl = Annotated[str, BeforeValidator(text), WithJsonSchema({"type": "string", "minLength": 1})]
RegistryProperties = Annotated[
    dict[str, Any],
    BeforeValidator(properties),
    WithJsonSchema({"type": "object", "propertyNames": {"pattern": r"^(basic\.auth|bearer\.auth|ssl)\.|^proxy$"}, "additionalProperties": {"type": _SCALARS}}),
]
Start = Annotated[Literal["earliest", "latest"], BeforeValidator(choice("earliest", "latest")), _schema({"enum": ["earliest", "latest"]})]
OutOfRange = Annotated[
    Literal["fail", "earliest", "latest"],
    BeforeValidator(choice("fail", "earliest", "latest")),
    _schema({"enum": ["fail", "earliest", "latest"]}),
]
Engine = Annotated[Literal["rocksdb", "memory"], BeforeValidator(choice("rocksdb", "memory")), _schema({"enum": ["rocksdb", "memory"]})]
Guarantee = Annotated[
    Literal["exactly_once", "at_least_once"],
    BeforeValidator(choice("exactly_once", "at_least_once")),
    _schema({"enum": ["exactly_once", "at_least_once"]}),
]
Policy = Annotated[
    Literal["fail", "skip", "dead_letter"],
    BeforeValidator(choice("fail", "skip", "dead_letter")),
    _schema({"enum": ["fail", "skip", "dead_letter"]}),
]


def count(low: int, high: int) -> Any:
    """The annotations of a whole number within bounds."""
    return BeforeValidator(whole(low, high)), _schema({"type": "integer", "minimum": low, "maximum": high})


_COUNTS = {
    name: count(low, high)
    for name, low, high in (("tasks", 1, 1000), ("partitions", 1, 100_000), ("times", 0, 1_000_000), ("port", 0, 65535))
}
Containers = Annotated[int, *_COUNTS["tasks"]]
Partitions = Annotated[int, *_COUNTS["partitions"]]
Times = Annotated[int, *_COUNTS["times"]]
Port = Annotated[int, *_COUNTS["port"]]
