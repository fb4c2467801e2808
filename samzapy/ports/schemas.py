"""What serdes ask of a Schema Registry."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

MAX_SCHEMA_NUMBER = 2**31 - 1


@dataclass(frozen=True, slots=True)
class RegisteredSchema:
    """A schema as a registry has it.

    Attributes:
        id: its number, 1 to MAX_SCHEMA_NUMBER, which stands in front of each value that it wrote.
        kind: AVRO, JSON or PROTOBUF.
        text: the schema itself.
        named: the schemas that it refers to, each before those that need it.
        names: what `named` are called where they are referred to, in the same order: in JSON Schema that is what a `$ref` says.
        missing: a schema that it refers to and the registry does not have, as "version 2 of subject place"; then it cannot be used.
    """

    id: int
    kind: str
    text: str
    named: tuple[str, ...] = ()
    missing: str = ""
    names: tuple[str, ...] = ()


class SchemaRegistry(Protocol):
    """A Schema Registry. All methods raise RegistryUnreachable if it does not answer, NotAuthenticated if it refuses the login."""

    def by_id(self, number: int) -> RegisteredSchema | None:
        """The schema of that number; None: the registry has none."""

    def newest(self, subject: str) -> RegisteredSchema | None:
        """The newest version of a subject; None: there is no such subject."""

    def id_of(self, subject: str, kind: str, text: str) -> int | None:
        """The number of this very schema in a subject; None: it is not one of the subject's versions."""

    def register(self, subject: str, kind: str, text: str) -> int:
        """Make it a version of the subject; its number.

        Raises:
            ConfigurationError: the registry refuses it: it is not compatible with the versions before it, or is no schema.
        """

    def is_compatible(self, subject: str, kind: str, text: str) -> bool:
        """Whether the subject's rules would let it be registered."""
