"""A job's serdes: by the names in its file, and for those of the Schema Registry by what they are of."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from samzapy.api.errors import ConfigurationError
from samzapy.config import key_schema
from samzapy.config.key_class import REMEDY
from samzapy.config.registered import BY_BOTH, BY_RECORD, BY_TOPIC, is_registered, schema_file
from samzapy.config.registry_settings import SchemaRegistrySettings
from samzapy.config.schema import Settings
from samzapy.plan.forgetting import key_fields_subject, layout_subject
from samzapy.ports import SchemaRegistry
from samzapy.serde.json_keys import as_stored_key
from samzapy.serde.record import RecordSerde
from samzapy.serde.record_keys import as_key
from samzapy.serde.registry import NamedSerde, found_file, serde_named
from samzapy.wiring.job_topics import JobTopics

if TYPE_CHECKING:  # it imports fastavro, which a job without Avro need not wait for
    from samzapy.serde.registered import RegistrySerde, Schemas

KEY, VALUE = "key", "value"
Place = tuple[str, str, str]  # serde, topic, key or value


class Serdes:
    """Makes the serdes of one job, each once.

    Args:
        settings: of the job.
        folders: where files and modules are looked for.
        registry: what is asked for schemas, in place of the registry that the job file names, which is connected to at first use.
    """

    def __init__(self, settings: Settings, folders: Sequence[Path], registry: Callable[[], SchemaRegistry] | None = None) -> None:
        self._settings = settings
        self.folders = folders
        self._connect = registry or (lambda: connected(settings.schema_registry))
        self._schemas: Schemas | None = None
        self._made: dict[Place, NamedSerde] = {}
        self._of_registry: dict[Place, RegistrySerde] = {}

    def of(self, name: str, topic: str, part: str) -> NamedSerde:
        """The serde of that name for a topic's keys or values (`part`).

        Raises:
            ConfigurationError: there is none, or its file, class or registry cannot be used.
        """
        place = (name, topic, part)
        if place not in self._made:
            if is_registered(name):
                self._made[place] = self._of_registry[place] = self.registered(name, topic, part)
            else:
                found = serde_named(name, self.folders)
                self._made[place] = found = as_key(found) if part == KEY else found
                if isinstance(found, RecordSerde):
                    self._know_whether_it_comes_back(found, topic)
        return self._made[place]

    def to_write(self, name: str, topic: str, part: str) -> NamedSerde:
        """As `of`, for what is written now: its schema is found in the registry, or registered if the job file says so. Raises as `of` and `ready`."""
        found, settings = self.of(name, topic, part), self._settings.schema_registry
        if is_registered(name) and settings is not None:
            self._of_registry[name, topic, part].ready(settings.register_)
        return found

    def _know_whether_it_comes_back(self, serde: RecordSerde, topic: str) -> None:
        """What goes to an output is for others to read, who may want other names than the class reads."""
        topics = JobTopics.of(self._settings)
        serde.comes_back = topic not in topics.outputs or topic in topics.inputs
        if topic in topics.internal or topic in topics.changelogs.values():
            serde.check_comes_back()

    def of_keys(self, store: str, changelog: str) -> NamedSerde:
        """The serde of a store's keys. Raises as `of`; and where equal keys would not be equal bytes."""
        name = self._settings.stores[store].key
        found = self.of(name, changelog, KEY)
        if why := getattr(found, "why_no_key", ""):
            raise ConfigurationError(
                f"store {store!r}: objects of {name} cannot be keys: {why}, and state is found by the bytes of its key.",
                key_schema.REMEDY if name.startswith(key_schema.AVRO) else REMEDY,
            )
        return as_stored_key(found)  # type: ignore[no-any-return]

    def key_fields(self) -> dict[str, str]:
        """For the fingerprint: the fields of the classes that keys of stores are objects of."""
        topics = JobTopics.of(self._settings)
        logged = {name: topics.changelogs.get(name) for name in self._settings.stores}
        found = {name: getattr(self.of_keys(name, log), "fields", "") for name, log in logged.items() if log is not None}
        return {key_fields_subject(name): fields for name, fields in found.items() if fields}

    def layouts(self) -> dict[str, str]:
        """For the fingerprint: how keys and values of stores lie in their bytes, where nothing in these says it."""
        topics, found = JobTopics.of(self._settings), dict[str, str]()
        for name, store in self._settings.stores.items():
            log = topics.changelogs.get(name)
            if log is not None:
                found[layout_subject(name, KEY)] = getattr(self.of_keys(name, log), "layout", "")
                found[layout_subject(name, VALUE)] = getattr(self.of(store.value, log, VALUE), "layout", "")
        return {subject: layout for subject, layout in found.items() if layout}

    def ready(self, register: bool = False) -> None:
        """Find the schemas in the registry that the job's outputs and stores are written with. `register`: those that are not there are registered.

        Raises:
            ConfigurationError: a schema is not there, or is refused. RegistryUnreachable, NotAuthenticated.
        """
        for place in written(self._settings):
            self.of(*place)
            self._of_registry[place].ready(register)

    def registered(self, name: str, topic: str, part: str) -> RegistrySerde:
        """A serde of the Schema Registry. Raises as `of`."""
        from samzapy.serde.registered import Schemas, registry_serde

        if self._schemas is None:
            self._schemas = Schemas(self._connect())
        found = self._settings.schema_registry
        rule = BY_TOPIC if found is None else found.subjects
        file = schema_file(name)
        return registry_serde(name, found_file(name, file, self.folders) if file else None, self._schemas, lambda record: subject(rule, topic, part, record))


def connected(settings: SchemaRegistrySettings | None) -> SchemaRegistry:
    """The registry that a job file names."""
    from samzapy.kafka.schema_registry import ConfluentRegistry  # a second of imports, which a job without a registry need not wait for

    if settings is None:
        raise AssertionError("`config.registry_check` refuses a serde of the registry in a job without one")
    return ConfluentRegistry(settings.url, settings.conf)


def written(settings: Settings) -> Iterator[Place]:
    """What the job writes by a serde of the Schema Registry."""
    return (place for place in (*_of_outputs(settings), *_of_stores(settings), *_of_stages(settings)) if is_registered(place[0]))


def read(settings: Settings) -> Iterator[Place]:
    """What the job reads by a serde of the Schema Registry."""
    places = [(name, i.topic, part) for i in settings.inputs for name, part in ((i.key, KEY), (i.value, VALUE))]
    return (place for place in places if is_registered(place[0]))


def subject(rule: str, topic: str, part: str, record: str) -> str:
    """A schema's subject, as Confluent's serializers name it. `record`: what the schema calls its values; without that, its topic names it."""
    if not topic or (rule == BY_RECORD and record):
        return record if topic else ""
    return f"{topic}-{record}" if rule == BY_BOTH and record else f"{topic}-{part}"


def _of_outputs(settings: Settings) -> Iterator[Place]:
    for output in settings.outputs:
        yield output.key, output.topic, KEY
        yield output.value, output.topic, VALUE


def _of_stores(settings: Settings) -> Iterator[Place]:
    topics = JobTopics.of(settings)
    for name, store in settings.stores.items():
        yield store.value, topics.changelogs.get(name) or topics.job.changelog_topic(name), VALUE


def _of_stages(settings: Settings) -> Iterator[Place]:
    for one in settings.stages.internal.values() if settings.stages is not None else ():
        yield one.key, one.topic, KEY
        yield one.value, one.topic, VALUE
