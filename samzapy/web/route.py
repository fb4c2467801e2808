"""What a row of the table of routes is made of, and a request to it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from samzapy.web.access import Caller, May
from samzapy.web.cluster import Cluster
from samzapy.web.contents import Contents
from samzapy.web.facts import Actions, Facts
from samzapy.web.looking import Inside

J = "/v1/jobs/{job}/{id}"


@dataclass(frozen=True, slots=True)
class Asked:
    """A request, checked: `path` and `query` have what the route names, `body` is of the route's model."""

    facts: Facts
    actions: Actions
    contents: Contents
    inside: Inside
    cluster: Cluster
    caller: Caller
    path: Mapping[str, str]
    query: Mapping[str, Any]
    body: Any = None

    @property
    def by(self) -> str:
        return str(self.caller)


@dataclass(frozen=True, slots=True)
class Query:
    """A parameter after the `?`. `kind`: int, float or str; `least`, `most`: of a number. `longest`: of a text, in characters. `choices`: of a text."""

    name: str
    kind: type
    default: Any
    summary: str
    least: float = 0
    most: float = 1e15
    choices: tuple[str, ...] = ()
    longest: int = 200


@dataclass(frozen=True, slots=True)
class Route:
    """One row. `act` gives the answer's document."""

    method: str
    path: str
    name: str
    who: May
    summary: str
    answer: type[BaseModel] | list[type[BaseModel]]
    act: Callable[[Asked], Any]
    query: tuple[Query, ...] = ()
    body: type[BaseModel] | None = None
    of_records: bool = False  # it shows or moves records of topics: not with `web.data: false`
    looks: bool = False  # it is a POST and changes nothing: not counted among changes

    @property
    def changes(self) -> bool:
        return self.method != "GET"


def checked_query(route: Route, given: Mapping[str, str]) -> dict[str, Any]:
    """The values of the route's parameters.

    Raises:
        ValueError: one is none of its kind, or the route has none of that name; says which.
    """
    known = [query.name for query in route.query]
    unknown = [name[:50] for name in given if name not in known]
    if unknown:
        raise ValueError(f"no parameter {', '.join(map(repr, unknown[:5]))} after the `?`; there is {', '.join(known) or 'none'}")
    values: dict[str, Any] = {}
    for query in route.query:
        text = given.get(query.name)
        values[query.name] = query.default if text is None else _value(query, text)
    return values


def _value(query: Query, text: str) -> Any:
    if query.kind is str:
        if query.choices and text not in query.choices:
            raise ValueError(f"{query.name}={text[:50]!r}: one of {', '.join(query.choices)}")
        if len(text) > query.longest:
            raise ValueError(f"{query.name}: {len(text)} characters, and at most {query.longest} are taken")
        return text
    if not re.fullmatch(r"\d{1,15}" if query.kind is int else r"\d{1,12}(\.\d{1,20})?", text, re.ASCII):
        raise ValueError(f"{query.name}={text[:50]!r}: not a number")
    value = query.kind(text)
    if not query.least <= value <= query.most:
        raise ValueError(f"{query.name}={text}: from {query.least:g} to {query.most:g}")
    return value
