"""The serdes of a Schema Registry by their names."""

from __future__ import annotations

REGISTRY = "registry"
PREFIX = "registry:"
FILES = (".avsc", ".json")
BY_TOPIC = "topic"
BY_RECORD = "record"
BY_BOTH = "topic_record"


def is_registered(serde: str) -> bool:
    """Whether a serde's name means the Schema Registry: `registry`, or `registry:` and a schema file."""
    return serde == REGISTRY or (serde.startswith(PREFIX) and len(serde) > len(PREFIX) and serde.endswith(FILES))


def schema_file(serde: str) -> str:
    """The schema file that a serde of the registry names; "" if none."""
    return serde.removeprefix(PREFIX) if serde.startswith(PREFIX) else ""


def stored_form(serde: str) -> str:
    """What a store's bytes depend on: values of the registry say themselves which schema wrote them, so the file may be another one."""
    return REGISTRY if is_registered(serde) else serde
