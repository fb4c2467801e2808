"""Compares the permissions that a job needs in Kafka with those that it has."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable
from dataclasses import dataclass

from samzapy.api.errors import ClusterUnreachable, LogError, NotAuthorized
from samzapy.config.schema import Settings
from samzapy.model.acls import TOPIC, TRANSACTIONAL_ID, Access, grant_command
from samzapy.ops.prepare_topics import changelogs
from samzapy.plan.acls import needed_access
from samzapy.ports import Log
from samzapy.wiring.job_topics import JobTopics

LOG = logging.getLogger("samzapy")
_BY_NAME = re.compile(r"PLAIN|SCRAM-SHA-\d+", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Missing:
    """One resource with a missing permission, and the command of Kafka's own tool that grants it."""

    access: Access
    principal: str
    command: str

    def __str__(self) -> str:
        return f"{self.principal} lacks {self.access} ({self.access.purpose})"


def access_of(settings: Settings) -> list[Access]:
    """The permissions that the job needs, and no more."""
    topics = JobTopics.of(settings)
    return needed_access(
        topics.job,
        list(topics.inputs),
        [(o.topic, bool(o.partitions)) for o in settings.outputs],
        changelogs(settings),
        topics.dead_letters is not None,
        topics.is_bound,
        list(topics.internal),
    )


def principal_of(settings: Settings) -> str:
    """The job's principal in Kafka. With certificates, Kerberos or tokens the broker chooses the name, and the user has to fill it in."""
    client = settings.kafka_client
    mechanism = str(client.get("sasl.mechanism", client.get("sasl.mechanisms", "")))
    user = client.get("sasl.username")
    return f"User:{user}" if user and _BY_NAME.fullmatch(mechanism) else "User:NAME"


def grant_commands(settings: Settings) -> list[str]:
    """A command of Kafka's own tool for each resource that the job needs."""
    return [_command(settings, access) for access in access_of(settings)]


def missing_access(settings: Settings, log: Log) -> list[Missing]:
    """The missing permissions, as Kafka answers; none if the cluster has no access control.

    Raises:
        LogError: Kafka could not be asked.
    """
    with log.admin() as admin:
        refused = admin.missing_access(access_of(settings))
    return [Missing(access, principal_of(settings), _command(settings, access)) for access in refused]


def warn_of_missing(settings: Settings, log: Log) -> None:
    """Warn before a run of missing permissions; only Kafka decides whether it fails. Transactions are left out: the run begins with one."""
    wanted = [a for a in access_of(settings) if a.kind != TRANSACTIONAL_ID]
    with log.admin() as admin:
        try:
            refused = admin.missing_access(wanted)
        except ClusterUnreachable as error:  # it answered a moment ago; whatever is missing is told when it is needed
            LOG.warning("permissions were not checked: %s", error)
            return
        for access in refused:
            LOG.warning(
                "%s: %s lacks %s (%s)\n  %s", NotAuthorized.code, principal_of(settings), access, access.purpose, _command(settings, access)
            )


def explained(error: NotAuthorized, settings: Settings, log: Log) -> NotAuthorized:
    """The error with all that is missing."""
    try:
        missing = missing_access(settings, log)
    except LogError:
        return error
    if not missing:
        return error
    lines = "".join(f"\n  {one.command}" for one in missing)
    return NotAuthorized(f"{error.message} {'; '.join(map(str, missing))}.", f"These commands of Kafka's own tool allow it:{lines}")


def also_needed(error: NotAuthorized, operation: str, topics: Iterable[str], purpose: str, log: Log) -> NotAuthorized:
    """The error of a command that needs more than the job does, with what is missing. `operation`: on these topics; `purpose`: what for."""
    try:
        return not_allowed(operation, topics, purpose, log) or error
    except LogError:
        return error


def not_allowed(operation: str, topics: Iterable[str], purpose: str, log: Log) -> NotAuthorized | None:
    """The error of a command that needs an operation on these topics, where this user is not allowed it: asked before the command changes anything.

    Raises:
        LogError: Kafka could not be asked.
    """
    with log.admin() as admin:
        missing = admin.missing_access([Access(TOPIC, topic, (operation,), purpose) for topic in sorted(topics)])
    if not missing:
        return None
    named = "; ".join(f"{access} is missing" for access in missing)
    return NotAuthorized(
        f"{purpose} needs more than the job itself: {named}.", "Allow it to this user, or run the command as a user that has it."
    )


def _command(settings: Settings, access: Access) -> str:
    return grant_command(access, str(settings.kafka_client.get("bootstrap.servers", "")), principal_of(settings))
