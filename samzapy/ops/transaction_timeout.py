"""Asks the brokers whether they allow transactions as long as `commit.timeout`. Not every user may see their limit."""

from __future__ import annotations

from samzapy.api.errors import ConfigurationError, NotAuthorized
from samzapy.config.schema import Settings
from samzapy.plan.transaction_timeout import LIMIT, limit_of, too_long
from samzapy.ports import Admin, Log
from samzapy.wiring.job_topics import job_of


def limit_ms(admin: Admin) -> int | None:
    """The longest transaction that every broker allows, in ms; None if they do not show it to this user."""
    return limit_of(admin.broker_settings(LIMIT))


def refuse_too_long(settings: Settings, admin: Admin) -> bool:
    """Whether the brokers show their limit.

    Raises:
        ConfigurationError: commit.timeout is above it.
    """
    limit = limit_ms(admin)
    if limit is not None and settings.commit.timeout_ms > limit:
        raise too_long(settings.commit.timeout_ms, limit)
    return limit is not None


def try_init(settings: Settings, log: Log) -> ConfigurationError | None:
    """Where the limit is not shown: what an init says that no run uses; None: it is allowed, or this user may begin no transactions at all,
    which `missing_access` tells.

    Raises:
        LogError: Kafka could not be asked.
    """
    producer = log.transactional_producer(job_of(settings).probe_transactional_id)
    try:
        producer.init()
    except ConfigurationError as error:
        return error
    except NotAuthorized:
        return None
    finally:
        producer.close()
    return None
