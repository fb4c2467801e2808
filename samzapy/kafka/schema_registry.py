"""A Schema Registry, asked through the Kafka client's own `SchemaRegistryClient`.

The client keeps what it has fetched, and what it was told of a login stays in it: errors name the registry's address and what it answered. What is no
clear answer (no connection, a proxy's page, an error of the server) is RegistryUnreachable, so that no record is blamed for it.
"""

from __future__ import annotations

import logging
import time
import weakref
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

import orjson

from samzapy.api.errors import ConfigurationError, NotAuthenticated, RegistryUnreachable, SamzapyError
from samzapy.config.extras import line_for
from samzapy.config.secrets import keep_out
from samzapy.in_time import NotInTime, within
from samzapy.ports import MAX_SCHEMA_NUMBER, RegisteredSchema

TIMEOUT_S = 5.0  # until the next bytes of an answer
ANSWER_S = 30.0
LOGIN_WAITS_S = (1.0, 2.0, 4.0)
RETRIES = {"max.retries": 2, "retries.wait.ms": 200, "retries.max.wait.ms": 1000, "cache.capacity": 1000}
MAX_SCHEMA_BYTES = 1 << 20
MAX_ANSWER_BYTES = 8 << 20  # JSON may write a character of a schema as six
MAX_NAMED = 100  # schemas that one schema refers to, and those to others
NO_SUCH_THING = (40401, 40402, 40403)  # a subject, a version, a schema; a path that no registry has is 404 alone
NOT_FOUND = 404
NO_LOGIN = (401, 403)
REFUSED = (409, 422)  # not compatible; no schema
AVRO = "AVRO"
WRITTEN_AS_JSON = (AVRO, "JSON")
T = TypeVar("T")
LOG = logging.getLogger("samzapy")


class ConfluentRegistry:
    """The registry at a URL (several, with commas: they are tried in turn). `conf`: the client's own keys.

    `answer_s`: for all of an answer, in seconds, with the tries that it takes. `wait`: between two logins.
    `close()` ends its connections; where nobody calls it, they end with this object.
    """

    def __init__(self, url: str, conf: Mapping[str, Any], answer_s: float = ANSWER_S, wait: Callable[[float], None] = time.sleep) -> None:
        try:
            from confluent_kafka.schema_registry import Schema, SchemaRegistryClient, SchemaRegistryError
        except ImportError as error:
            raise ConfigurationError(
                f"the job file names a serde of the Schema Registry, and the registry's client is not installed: {error}.", f"Install it: {line_for('registry')}"
            ) from None
        for name in ("httpx", "httpx2"):
            logging.getLogger(name).setLevel(logging.WARNING)  # it logs each request
        keep_out([str(conf.get("basic.auth.user.info", "")).partition(":")[2]])
        self._url = url
        self._schema: Any = Schema  # without the extra's packages its types are not known
        self._refusal = SchemaRegistryError
        settings = {"timeout": TIMEOUT_S, **RETRIES, **{k: v for k, v in conf.items() if v != ""}, "url": url}
        self._connect: Callable[[], Any] = lambda: bounded(SchemaRegistryClient(settings))
        self._answer_s, self._wait = answer_s, wait
        self._was_let_in = False
        try:
            self._begin()
        except (ValueError, TypeError, OSError) as error:  # keys that it does not know, files that are not there
            raise ConfigurationError(f"schema_registry: {error}.", "See `schema_registry.conf` of the job file: its keys are the client's own.") from None

    def _begin(self) -> None:
        self._client: Any = self._connect()
        self.close = weakref.finalize(self, self._client.close)  # the client leaves its connections open; nobody else knows when the last serde goes

    def by_id(self, number: int) -> RegisteredSchema | None:
        try:
            return self._asked(lambda: self._read(number, self._client.get_schema(number)))
        except _Refused:
            return None

    def newest(self, subject: str) -> RegisteredSchema | None:
        def ask() -> RegisteredSchema:
            found = self._client.get_latest_version(subject)
            return self._read(_number(found.schema_id), found.schema)

        return self._asked(ask)

    def id_of(self, subject: str, kind: str, text: str) -> int | None:
        try:
            return self._asked(lambda: _number(self._client.lookup_schema(subject, self._schema(text, kind)).schema_id))
        except _Refused as refused:
            raise self._unfit(subject, refused) from None

    def register(self, subject: str, kind: str, text: str) -> int:
        try:
            number = self._asked(lambda: _number(self._client.register_schema(subject, self._schema(text, kind))))
        except _Refused as refused:
            raise self._unfit(subject, refused) from None
        if number is None:
            raise self._strange("asked to register a schema, it answers 'not found'")
        return number

    def is_compatible(self, subject: str, kind: str, text: str) -> bool:
        try:
            found = self._asked(lambda: _yes_or_no(self._client.test_compatibility(subject, self._schema(text, kind))))
        except _Refused:
            return False
        return True if found is None else found

    def _unfit(self, subject: str, refused: _Refused) -> ConfigurationError:
        return ConfigurationError(
            f"the Schema Registry at {self._url} refuses the schema for subject {subject}: {refused}.",
            "Change the schema so that it is compatible with the subject's versions, or change the subject's compatibility rule.",
        )

    def _read(self, number: int, schema: Any) -> RegisteredSchema:
        kind = schema.schema_type or AVRO
        if not isinstance(kind, str):
            raise TypeError("an answer without the kind of a schema")
        text = _document(schema.schema_str, kind)
        named: dict[tuple[str, int, str], str] = {}
        try:
            self._follow(schema, named)
        except _Missing as missing:
            return RegisteredSchema(number, kind, text, missing=str(missing))
        return RegisteredSchema(number, kind, text, tuple(named.values()), names=tuple(name for _, _, name in named))

    def _follow(self, schema: Any, named: dict[tuple[str, int, str], str]) -> None:
        """The schemas that one refers to, and those to others; each after those that it needs."""
        for reference in schema.references or ():
            place = (str(reference.subject), int(reference.version), str(reference.name))
            if place not in named:
                if len(named) >= MAX_NAMED:
                    raise ValueError(f"a schema with more than {MAX_NAMED} references")
                named[place] = ""  # so that a circle ends
                found = self._referred(*place[:2])
                self._follow(found, named)
                del named[place]  # after what it needs
                named[place] = _document(found.schema_str, found.schema_type or AVRO)

    def _referred(self, subject: str, version: int) -> Any:
        try:
            return self._client.get_version(subject, version).schema
        except self._refusal as error:
            if _is_no_such_thing(error):
                raise _Missing(f"version {version} of subject {subject[:200]}") from None
            raise

    def _asked(self, ask: Callable[[], T]) -> T | None:
        try:
            found = within(self._answer_s, lambda: self._let_in(ask), "asks the Schema Registry")
        except self._refusal as error:
            self._raise(error)
            return None
        except SamzapyError:
            raise
        except NotInTime:
            self.close()  # which ends what still waits for the rest of the answer
            self._begin()
            raise self._strange(f"its answer has not come to an end within {self._answer_s:g} s") from None
        except Exception as error:  # noqa: BLE001  the HTTP client has many, and an answer that is none of a registry's may fail anywhere
            self._client.clear_caches()  # the client keeps such an answer, and would never ask again
            raise self._strange(f"{type(error).__name__}: {error}" if str(error) else type(error).__name__) from None
        self._was_let_in = True
        return found

    def _let_in(self, ask: Callable[[], T]) -> T:
        """A login that was accepted before is tried again a few times: a token may just be replaced, or a proxy be started."""
        for wait_s in LOGIN_WAITS_S if self._was_let_in else ():
            try:
                return ask()
            except self._refusal as error:
                if error.http_status_code not in NO_LOGIN:
                    raise
                what = "the Schema Registry at %s refuses a login that it accepted before: HTTP %d; tried again in %g s"
                LOG.warning(what, self._url, error.http_status_code, wait_s)
                self._wait(wait_s)
        return ask()

    def _raise(self, error: Any) -> None:
        """What a refusal means; nothing if it says that there is no such thing."""
        status, text = int(error.http_status_code), str(error.error_message)[:300]
        if _is_no_such_thing(error):
            return
        if status in REFUSED:
            raise _Refused(text)
        if status in NO_LOGIN:
            again = f", after {1 + len(LOGIN_WAITS_S)} tries" if self._was_let_in else ""
            raise NotAuthenticated(
                f"the Schema Registry at {self._url} refuses the login{again}: {text}.",
                "Check `basic.auth.user.info` (or `bearer.auth.…`) in `schema_registry.conf`, and that the login may read the job's subjects.",
            )
        raise self._strange(f"HTTP {status}: {text}")

    def _strange(self, what: str) -> RegistryUnreachable:
        return RegistryUnreachable(
            f"the Schema Registry at {self._url} does not answer, or something else answers there: {what}.",
            "Check `schema_registry.url`, and that the registry runs.",
        )


def bounded(client: Any) -> Any:
    """The client, which reads no more of an answer than a registry's may have, and none that would have to be unpacked."""
    session = client._rest_client.session
    session.headers["Accept-Encoding"] = "identity"
    session.event_hooks = {**session.event_hooks, "response": [_bound]}
    return client


def _bound(response: Any) -> None:
    """Called when the head of an answer has come, before its body is read."""
    if response.headers.get("Content-Encoding", "identity") != "identity":
        raise ValueError(f"an answer in encoding {response.headers['Content-Encoding'][:50]}, which was not asked for")
    whole = response.stream
    body = type(whole).__iter__

    class Bounded(type(whole)):  # type: ignore[misc]  # the HTTP client takes only its own kinds of streams
        def __init__(self) -> None:
            pass

        def __iter__(self) -> Iterator[bytes]:
            left = MAX_ANSWER_BYTES
            for part in body(whole):
                left -= len(part)
                if left < 0:
                    raise ValueError(f"an answer of more than {MAX_ANSWER_BYTES} bytes")
                yield part

        def close(self) -> None:
            whole.close()

    response.stream = Bounded()


class _Refused(Exception):
    """The registry refuses a schema; its text says why."""


class _Missing(Exception):
    """A schema refers to one that the registry does not have; its text says to which."""


def _is_no_such_thing(error: Any) -> bool:
    """A registry's own answer. At a wrong path Confluent's says "HTTP 404 Not Found", with 404 as its code, too; that of others is what they say of a schema."""
    is_others = error.error_code == NOT_FOUND and not str(error.error_message).startswith(f"HTTP {NOT_FOUND}")
    return error.error_code in NO_SUCH_THING or is_others


# Answers are looked at while they are asked for, so that one that is none of a registry's blames no record, and is asked for again.


def _number(found: Any) -> int:
    if type(found) is not int or not 0 < found <= MAX_SCHEMA_NUMBER:
        raise TypeError("an answer without the number of a schema")
    return found


def _text(found: Any) -> str:
    if not isinstance(found, str):
        raise TypeError("an answer without a schema")
    if len(found) > MAX_SCHEMA_BYTES:
        raise ValueError(f"a schema of {len(found)} characters, more than {MAX_SCHEMA_BYTES}")
    return found


def _document(found: Any, kind: str) -> str:
    """A schema's text. A registry takes no schema that is not JSON, where its kind is written as JSON."""
    text = _text(found)
    if kind in WRITTEN_AS_JSON:
        try:
            orjson.loads(text)
        except ValueError:
            raise ValueError(f"a schema of kind {kind} that is not JSON") from None
    return text


def _yes_or_no(found: Any) -> bool:
    if type(found) is not bool:
        raise TypeError("an answer that does not say whether the schema is compatible")
    return found
