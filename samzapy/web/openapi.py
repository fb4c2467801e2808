"""The OpenAPI file, made of the table of routes: `python -m samzapy.web.openapi --write` writes the one that is committed."""

from __future__ import annotations

import json
import re
import sys
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from samzapy.web import schemas
from samzapy.web.access import NAMES, May
from samzapy.web.route import J, Query, Route
from samzapy.web.routes import TABLE

FILE = Path(__file__).parent / "openapi.json"
REF = "#/components/schemas/{model}"
PROBLEM = {"description": "Refused", "content": {"application/problem+json": {"schema": {"$ref": REF.format(model="Problem")}}}}
TEXT = {"200": {"description": "Text", "content": {"text/plain": {"schema": {"type": "string"}}}}}
OTHERS: dict[str, dict[str, Any]] = {
    "/healthz": {"get": {"operationId": "healthz", "summary": "The process is up", "responses": TEXT, "security": []}},
    "/readyz": {
        "get": {
            "operationId": "readyz", "summary": "Every task runs", "security": [],
            "responses": {**TEXT, "503": {"description": "Not yet", "content": {"text/plain": {"schema": {"type": "string"}}}}},
        }
    },
    "/metrics": {"get": {"operationId": "metrics", "summary": "The job's numbers for Prometheus", "responses": TEXT, "security": []}},
    "/v1/openapi.json": {
        "get": {
            "operationId": "openapi", "summary": "This file", "security": [],
            "responses": {"200": {"description": "It", "content": {"application/json": {"schema": {"type": "object"}}}}},
        }
    },
}  # fmt: skip


@cache
def document() -> dict[str, Any]:
    """The whole file."""
    models = sorted({m for row in TABLE for m in (*_answers(row), *([row.body] if row.body else []))} | {schemas.Problem}, key=lambda m: m.__name__)
    _, made = models_json_schema([(model, "validation") for model in models], ref_template=REF)
    paths: dict[str, dict[str, Any]] = {path: dict(methods) for path, methods in OTHERS.items()}
    for row in TABLE:
        paths.setdefault(row.path, {})[row.method.lower()] = _operation(row)
    paths[f"{J}/stream"] = {"get": _stream()}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "samzapy", "version": "1",
            "description": "A running job. Times are milliseconds since 1970 (…_ms) or seconds (…_s). Fields may be added; none goes away in v1.",
        },
        "security": [{"token": []}],
        "paths": dict(sorted(paths.items())),
        "components": {
            "schemas": dict(sorted(made["$defs"].items())),
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer", "description": "`samzapy ui JOB.yaml` prints it"}},
        },
    }  # fmt: skip


def _answers(row: Route) -> list[type[BaseModel]]:
    return row.answer if isinstance(row.answer, list) else [row.answer]


def _operation(row: Route) -> dict[str, Any]:
    reference = {"$ref": REF.format(model=_answers(row)[0].__name__)}
    schema = {"type": "array", "items": reference} if isinstance(row.answer, list) else reference
    path = [{"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in re.findall(r"{(\w+)}", row.path)]
    operation: dict[str, Any] = {
        "operationId": row.name, "summary": row.summary, "parameters": [*path, *map(_parameter, row.query)],
        "responses": {
            "200": {"description": "Done", "content": {"application/json": {"schema": schema}}},
            **dict.fromkeys(("400", "401", "403", "404", "409", "413", "429"), PROBLEM),
        },
        "x-who": NAMES[row.who],
    }  # fmt: skip
    if row.who is May.ANYTHING_OPEN:
        operation["security"] = []
    if row.body is not None:
        operation["requestBody"] = {"content": {"application/json": {"schema": {"$ref": REF.format(model=row.body.__name__)}}}}
    return operation


def _parameter(query: Query) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": {int: "integer", float: "number", str: "string"}[query.kind], "default": query.default}
    if query.choices:
        schema["enum"] = list(query.choices)
    elif query.kind is not str:
        schema |= {"minimum": query.least, "maximum": query.most}
    return {"name": query.name, "in": "query", "description": query.summary, "schema": schema}


def _stream() -> dict[str, Any]:
    text = {"name": "find", "in": "query", "schema": {"type": "string"}, "description": "Only rows that contain this text."}
    path = [{"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in ("job", "id")]
    return {
        "operationId": "stream", "summary": "Live frames as server-sent events: the first is whole, later ones have what changed", "x-who": "view",
        "description": "Each has `now_ms`, the driver's time, and in `news` the newest 20 events since the one before: `events?since=` has them all.",
        "parameters": [*path, {"name": "sort", "in": "query", "schema": {"type": "string"}}, text],
        "responses": {"200": {"description": "Frames", "content": {"text/event-stream": {}}}, "400": PROBLEM, "401": PROBLEM, "404": PROBLEM, "429": PROBLEM},
    }  # fmt: skip


def text() -> str:
    """As it is committed."""
    return json.dumps(document(), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    if "--write" in sys.argv:
        FILE.write_text(text())
    else:
        sys.stdout.write(text())
