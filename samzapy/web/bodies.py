"""What requests that change or ask something carry."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field


def _whole(value: Any) -> Any:
    """5 for 5.0: in JSON they are the same number."""
    return int(value) if type(value) is float and value.is_integer() else value


Whole = Annotated[int, BeforeValidator(_whole)]


class Body(BaseModel):
    """Each value is of its type: `true` is no number, and `"yes"` not true. Each field is known: a misspelt `dry_run` would do what was only asked about."""

    model_config = ConfigDict(strict=True, extra="forbid")


class NoBody(Body):
    """Nothing is taken."""


class Scale(Body):
    """How many containers there should be."""

    containers: Whole = Field(ge=1, le=100_000)
    dry_run: bool = False


class Restart(Body):
    """Which container; null: all, one after the other."""

    container: Whole | None = Field(None, ge=0, le=100_000)
    dry_run: bool = False


class Stop(Body):
    """Nothing is needed."""

    dry_run: bool = False


class AskProfile(Body):
    """For how many seconds."""

    seconds: float = Field(10.0, ge=0.5, le=40)


class AskTrace(Body):
    """How many records, and how many seconds they are waited for at most."""

    records: Whole = Field(5, ge=1, le=100)
    seconds: float = Field(30.0, ge=0.5, le=40)
