"""A Schema Registry in memory: numbers, subjects and versions, no rules of compatibility."""

from __future__ import annotations

import json

from samzapy.api.errors import RegistryUnreachable
from samzapy.ports import RegisteredSchema


class MemoryRegistry:
    """As `SchemaRegistry` (ports). The same schema has the same number in all subjects, as in a real one.

    Attributes:
        answers: set it to False for a registry that does not answer.
    """

    def __init__(self) -> None:
        self.answers = True
        self._schemas: list[RegisteredSchema] = []
        self._subjects: dict[str, list[int]] = {}

    def by_id(self, number: int) -> RegisteredSchema | None:
        self._refuse()
        return self._schemas[number - 1] if 0 < number <= len(self._schemas) else None

    def newest(self, subject: str) -> RegisteredSchema | None:
        self._refuse()
        versions = self._subjects.get(subject)
        return self.by_id(versions[-1]) if versions else None

    def id_of(self, subject: str, kind: str, text: str) -> int | None:
        self._refuse()
        number = self._number(kind, text)
        return number if number in self._subjects.get(subject, ()) else None

    def register(self, subject: str, kind: str, text: str) -> int:
        number = self._number(kind, text)
        if number is None:
            number = len(self._schemas) + 1
            self._schemas.append(RegisteredSchema(number, kind, text))
        versions = self._subjects.setdefault(subject, [])
        if number not in versions:
            versions.append(number)
        return number

    def is_compatible(self, subject: str, kind: str, text: str) -> bool:
        return True

    def _refuse(self) -> None:
        if not self.answers:
            raise RegistryUnreachable("the Schema Registry in memory does not answer.", "Set its `answers` to True.")

    def _number(self, kind: str, text: str) -> int | None:
        document = json.loads(text)
        return next((s.id for s in self._schemas if s.kind == kind and json.loads(s.text) == document), None)
