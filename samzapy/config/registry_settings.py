"""The section `schema_registry` of a job file."""

from __future__ import annotations

from pydantic import Field

from samzapy.config.fields import Flag, RegistryProperties, RegistryUrl, Subjects
from samzapy.config.section import Section


class SchemaRegistrySettings(Section):
    """The Schema Registry, for the serdes `registry` and `registry:<schema file>`."""

    url: RegistryUrl = Field(description="Its address; several, with commas, are tried in turn.", examples=["http://localhost:8081"])
    conf: RegistryProperties = Field(
        default_factory=dict,
        description="Keys of the Kafka client's SchemaRegistryClient: `basic.auth.user.info` (user:password), `bearer.auth.…`, `ssl.ca.location`, `proxy`.",
    )
    subjects: Subjects = Field(
        "topic",
        description="What a schema's subject is called: topic: `<topic>-key`, `<topic>-value`; record: the name of the record; topic_record: `<topic>-<name>`.",
    )
    register_: Flag = Field(
        False,
        alias="register",
        description="true: a run registers the schemas that the job writes, before it starts; `samzapy send --job` registers those that it writes. "
        "false: they must be registered already.",
    )
