"""What `schema_registry` must say, and where serdes of the Schema Registry may be named."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from samzapy.config.key_errors import Finding
from samzapy.config.parts import map_at
from samzapy.config.registered import BY_TOPIC, REGISTRY, is_registered
from samzapy.config.tree import Route

SECTION = "schema_registry"
OF_CLIENT = ("basic.auth.", "bearer.auth.", "ssl.")  # keys of the client's that a job file may set
_LOGIN = re.compile(r"://[^/]*@")
_URL = re.compile(r"https?://[^\s,]+(\s*,\s*https?://[^\s,]+)*")


def check_registry(document: Mapping[str, Any], serdes: Iterable[tuple[Route, str]]) -> Iterator[Finding]:
    """What is wrong with the section, and with the places where its serdes are named."""
    given = map_at(document, SECTION)
    url = given.get("url")
    if isinstance(url, str) and _LOGIN.search(url):
        hint = 'Write it as conf: {basic.auth.user.info: "${REGISTRY_LOGIN}"}.'
        yield Finding((SECTION, "url"), "a login in the address would be seen wherever the address is shown", hint)
    elif isinstance(url, str) and not _URL.fullmatch(url.strip()):
        yield Finding((SECTION, "url"), "expected an address, or several with commas", "For example http://localhost:8081.")
    for key, value in map_at(given, "conf").items():
        if not (key.startswith(OF_CLIENT) or key == "proxy"):
            hint = "Its keys are those of the Kafka client's SchemaRegistryClient that begin with " + ", ".join(OF_CLIENT) + " and `proxy`."
            yield Finding((SECTION, "conf", key), f"{key!r} is no key of the registry's client that a job file may set", hint, at_key=True)
        elif isinstance(value, Mapping | list):
            yield Finding((SECTION, "conf", key), "expected text, a number or true/false", "The client's keys are dotted: basic.auth.user.info.")
    for path, name in serdes:
        if is_registered(name):
            yield from _misplaced(path, name, given)


def _misplaced(path: Route, name: str, given: Mapping[str, Any]) -> Iterator[Finding]:
    if given.get("url") is None:
        yield Finding(path, f"serde {name!r} needs a Schema Registry", "Add schema_registry: {url: \"http://localhost:8081\"}.")
    elif path[0] == "stores" and path[-1] == "key":
        text = "keys of a store cannot be of the Schema Registry: their bytes begin with the schema's id, so a key would not be found again under another schema"
        yield Finding(path, text, "Name `avro:<schema file>`, `string`, `integer`, or `bytes` for it.")
    elif name == REGISTRY and path[0] != "inputs" and given.get("subjects", BY_TOPIC) != BY_TOPIC:
        text = f"with `subjects: {given['subjects']}` the schema's name decides the subject, and no schema is named"
        yield Finding(path, text, "Name the schema's file: registry:schemas/value.avsc.")
