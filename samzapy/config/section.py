"""What all sections of a job file are."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, model_validator


class Section(BaseModel):
    """A part of the job file. A key without a value (`stores:` with nothing below) is as good as absent."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=False, defer_build=True)

    @model_validator(mode="before")
    @classmethod
    def _without_empty(cls, value: Any) -> Any:
        return {k: v for k, v in value.items() if v is not None or k not in known_keys(cls)} if isinstance(value, dict) else value


def known_keys(model: type[BaseModel]) -> dict[str, str]:
    """The YAML keys of a section, each with its attribute. What has no description is not a person's to write."""
    return {field.alias or name: name for name, field in model.model_fields.items() if field.description is not None}
