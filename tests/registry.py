"""A Schema Registry of our own making: the part of its HTTP interface that the Kafka client's SchemaRegistryClient uses, on loopback."""

from __future__ import annotations

import base64
import gzip
import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import unquote, urlsplit

BY_ID = re.compile(r"/schemas/ids/(\d+)")
LATEST = re.compile(r"/subjects/([^/]+)/versions/(latest|\d+)")
LOOK_UP = re.compile(r"/subjects/([^/]+)")
REGISTER = re.compile(r"/subjects/([^/]+)/versions")
COMPATIBLE = re.compile(r"/compatibility/subjects/([^/]+)/versions/latest")


class Registry:
    """In a `with` block it listens at `url`, on `port`.

    Attributes:
        login: `user:password` that requests must have; "": none.
        answers: False: every request is answered with 503.
        unknown: so many of the next requests are answered with "not found", before anything else.
        instead: what the next requests are answered with, by status 200, whatever they ask for.
        refusals: so many of the next requests are answered with 401.
        drips: answers come a byte at a time, and never to their end.
        floods: answers come as quickly as they are taken, and never to their end.
        packs: answers are packed with gzip, and have this many spaces before them.
        asked: the requests so far, as "GET /schemas/ids/1".
    """

    def __init__(self, login: str = "") -> None:
        self.login, self.answers = login, True
        self.asked: list[str] = []
        self.instead: list[Any] = []
        self.unknown = self.refusals = 0
        self.drips = self.floods = False
        self.packs = 0
        self._is_over = threading.Event()
        self._schemas: list[dict[str, Any]] = []
        self._subjects: dict[str, list[int]] = {}
        self._lock = threading.Lock()
        registry = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                self._answer()

            def do_POST(self) -> None:
                self._answer()

            def _answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                with registry._lock:
                    status, answer = registry._handle(self.command, urlsplit(self.path).path, body, self.headers.get("Authorization") or "")
                data = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
                if registry.packs:
                    data = gzip.compress(b" " * registry.packs + data)
                    self.send_header("Content-Encoding", "gzip")
                self.send_header("Content-Length", str(len(data) + 1_000_000 * registry.drips + (1 << 40) * registry.floods))
                self.end_headers()
                while registry.floods and not registry._is_over.is_set():
                    try:
                        self.wfile.write(b" " * 65536)
                    except OSError:
                        return
                while registry.drips and not registry._is_over.wait(0.01):
                    try:
                        self.wfile.write(b" ")
                    except OSError:
                        return
                self.wfile.write(data)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.port = self._server.server_port
        self.url = f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._server.shutdown()
        self._server.server_close()

    def add(self, subject: str, schema: Any, kind: str = "AVRO", references: list[dict[str, Any]] | None = None) -> int:
        """Register a schema; its number."""
        with self._lock:
            entry = {"schema": schema if kind == "PROTOBUF" else json.dumps(schema), "schemaType": kind, "references": references or []}
            return self._add(subject, entry)

    def _add(self, subject: str, entry: dict[str, Any]) -> int:
        number = self._number(entry)
        if number is None:
            self._schemas.append(entry)
            number = len(self._schemas)
        versions = self._subjects.setdefault(subject, [])
        if number not in versions:
            versions.append(number)
        return number

    def _number(self, entry: dict[str, Any]) -> int | None:
        kind = entry.get("schemaType", "AVRO")
        same = (n for n, s in enumerate(self._schemas, 1) if s["schemaType"] == kind and json.loads(s["schema"]) == json.loads(entry["schema"]))
        return next(same, None)

    def _handle(self, method: str, path: str, body: bytes, login: str) -> tuple[int, Any]:
        self.asked.append(f"{method} {path}")
        if not self.answers:
            return 503, {"error_code": 50302, "message": "not now"}
        if self.unknown:
            self.unknown -= 1
            return 404, {"error_code": 40403, "message": "Schema not found"}
        if self.instead:
            return 200, self.instead.pop(0)
        if self.refusals:
            self.refusals -= 1
            return 401, {"error_code": 40101, "message": "Unauthorized"}
        if self.login and login != "Basic " + base64.b64encode(self.login.encode()).decode():
            return 401, {"error_code": 40101, "message": "Unauthorized"}
        if method == "GET" and (found := BY_ID.fullmatch(path)):
            number = int(found[1])
            return (200, self._schemas[number - 1]) if 0 < number <= len(self._schemas) else (404, {"error_code": 40403, "message": "Schema not found"})
        if method == "GET" and (found := LATEST.fullmatch(path)):
            return self._version(unquote(found[1]), found[2])
        if method != "POST":
            return 404, {"error_code": 404, "message": "HTTP 404 Not Found"}
        entry = {"schemaType": "AVRO", "references": [], **json.loads(body)}
        if found := COMPATIBLE.fullmatch(path):
            return 200, {"is_compatible": not self._breaks(unquote(found[1]), entry)}
        if found := REGISTER.fullmatch(path):
            if self._breaks(unquote(found[1]), entry):
                return 409, {"error_code": 409, "message": "Schema being registered is incompatible with an earlier schema"}
            return 200, {"id": self._add(unquote(found[1]), entry)}
        found = LOOK_UP.fullmatch(path)
        return self._looked_up(unquote(found[1]), entry) if found else (404, {"error_code": 404, "message": "HTTP 404 Not Found"})

    def _version(self, subject: str, which: str) -> tuple[int, Any]:
        versions = self._subjects.get(subject, [])
        if not versions:
            return 404, {"error_code": 40401, "message": f"Subject '{subject}' not found."}
        at = len(versions) if which == "latest" else int(which)
        if at > len(versions):
            return 404, {"error_code": 40402, "message": f"Version {at} not found."}
        number = versions[at - 1]
        return 200, {"subject": subject, "version": at, "id": number, **self._schemas[number - 1]}

    def _looked_up(self, subject: str, entry: dict[str, Any]) -> tuple[int, Any]:
        number, versions = self._number(entry), self._subjects.get(subject, [])
        if number not in versions:
            return 404, {"error_code": 40403 if versions else 40401, "message": "not found"}
        return 200, {"subject": subject, "version": versions.index(number) + 1, "id": number, **self._schemas[number - 1]}

    def _breaks(self, subject: str, entry: dict[str, Any]) -> bool:
        """BACKWARD, as far as the tests need it: a field that the newest version has not must have a default."""
        versions = self._subjects.get(subject, [])
        if not versions or entry["schemaType"] != "AVRO":
            return False
        old = {field["name"] for field in json.loads(self._schemas[versions[-1] - 1]["schema"]).get("fields", [])}
        return any("default" not in field for field in json.loads(entry["schema"]).get("fields", []) if field["name"] not in old)
