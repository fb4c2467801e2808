"""The permissions that a job needs in a cluster with access control, in the terms of Kafka's ACLs."""

from __future__ import annotations

from dataclasses import dataclass, replace

from samzapy.api.errors import check

TOPIC, GROUP, TRANSACTIONAL_ID = "topic", "group", "transactional-id"
READ, WRITE, CREATE, DELETE, ALTER = "Read", "Write", "Create", "Delete", "Alter"
DESCRIBE, DESCRIBE_CONFIGS = "Describe", "DescribeConfigs"
OPERATIONS = (READ, WRITE, CREATE, DELETE, ALTER, DESCRIBE, DESCRIBE_CONFIGS)


@dataclass(frozen=True, slots=True)
class Access:
    """Operations on one resource.

    Attributes:
        kind: topic, group or transactional-id.
        name: of the resource; with `is_prefix`, what the names of all of them begin with.
        operations: as Kafka's tool writes them. Read, Write and Alter include Describe.
        purpose: what the job does with it.
    """

    kind: str
    name: str
    operations: tuple[str, ...]
    purpose: str
    is_prefix: bool = False

    def __post_init__(self) -> None:
        check(set(self.operations) <= set(OPERATIONS), f"operations {self.operations} are Kafka's")

    def only(self, operations: tuple[str, ...]) -> Access:
        return replace(self, operations=operations)

    def __str__(self) -> str:
        pattern = "s that begin with" if self.is_prefix else ""
        return f"{', '.join(self.operations)} on {self.kind}{pattern} {self.name}"


def grant_command(access: Access, servers: str, principal: str) -> str:
    """The command of Kafka's own tool that grants it. `principal`: as `User:name`."""
    pattern = " --resource-pattern-type prefixed" if access.is_prefix else ""
    operations = "".join(f" --operation {operation}" for operation in access.operations)
    return (
        f"kafka-acls.sh --bootstrap-server {servers} --command-config ADMIN.properties --add "
        f"--allow-principal '{principal}'{operations} --{access.kind} {access.name}{pattern}"
    )
