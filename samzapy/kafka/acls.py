"""Users and ACLs of a secured cluster, set by somebody who may."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from samzapy.kafka.admin import result_of
from samzapy.kafka.client import REQUEST_TIMEOUT_S, Settings, quiet
from samzapy.model.acls import (
    ALTER,
    CREATE,
    DELETE,
    DESCRIBE,
    DESCRIBE_CONFIGS,
    GROUP,
    READ,
    TOPIC,
    TRANSACTIONAL_ID,
    WRITE,
    Access,
)

SCRAM_ITERATIONS = 8192
_OPERATIONS = {
    READ: AclOperation.READ, WRITE: AclOperation.WRITE, CREATE: AclOperation.CREATE, DELETE: AclOperation.DELETE, ALTER: AclOperation.ALTER,
    DESCRIBE: AclOperation.DESCRIBE, DESCRIBE_CONFIGS: AclOperation.DESCRIBE_CONFIGS,
}  # fmt: skip
_KINDS = {TOPIC: ResourceType.TOPIC, GROUP: ResourceType.GROUP, TRANSACTIONAL_ID: ResourceType.TRANSACTIONAL_ID}


def set_passwords(settings: Settings, passwords: Mapping[str, str]) -> None:
    """Give these users these SCRAM-SHA-512 passwords; `settings` are those of a user who may.

    Raises:
        LogError: refused, or no answer.
    """
    how = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, SCRAM_ITERATIONS)
    wanted: list[Any] = [UserScramCredentialUpsertion(user, how, password.encode()) for user, password in passwords.items()]
    admin = AdminClient(quiet(settings))  # kept: its futures end with it
    for user, future in admin.alter_user_scram_credentials(wanted, request_timeout=REQUEST_TIMEOUT_S).items():
        result_of(future, f"the password of user {user}")


def grant(settings: Settings, principal: str, wanted: Iterable[Access]) -> None:
    """Allow `principal` (`User:name`) these; `settings` are those of a user who may.

    Raises:
        LogError: refused, or no answer.
    """
    bindings = [AclBinding(*acl) for acl in _acls(principal, wanted)]
    admin = AdminClient(quiet(settings))
    for binding, future in admin.create_acls(bindings, request_timeout=REQUEST_TIMEOUT_S).items():
        result_of(future, f"allowing {binding}")


def withdraw(settings: Settings, principal: str, unwanted: Iterable[Access]) -> None:
    """Take back what `grant` allowed.

    Raises:
        LogError: refused, or no answer.
    """
    filters = [AclBindingFilter(*acl) for acl in _acls(principal, unwanted)]
    admin = AdminClient(quiet(settings))
    for acl, future in admin.delete_acls(filters, request_timeout=REQUEST_TIMEOUT_S).items():
        result_of(future, f"taking back {acl}")


def _acls(principal: str, wanted: Iterable[Access]) -> list[tuple[Any, ...]]:
    return [
        (
            _KINDS[access.kind], access.name, ResourcePatternType.PREFIXED if access.is_prefix else ResourcePatternType.LITERAL,
            principal, "*", _OPERATIONS[operation], AclPermissionType.ALLOW,
        )
        for access in wanted
        for operation in access.operations
    ]  # fmt: skip
