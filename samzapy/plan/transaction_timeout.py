"""Whether the brokers allow transactions as long as a job's may be: they refuse every producer whose `transaction.timeout.ms` is above their limit."""

from __future__ import annotations

from collections.abc import Iterable

from samzapy.api.errors import ConfigurationError
from samzapy.config.units import format_duration

LIMIT = "transaction.max.timeout.ms"
LIMIT_AS_SHIPPED_MS = 900_000


def limit_of(told: Iterable[str]) -> int | None:
    """The limit that holds on every broker, in ms; None if no broker told one. `told`: each broker's setting."""
    return min((int(value) for value in told if value.isdigit()), default=None)


def too_long(timeout_ms: int, limit_ms: int | None = None) -> ConfigurationError:
    """The error for a commit.timeout above the brokers' limit. None: the limit is not known, only that they refuse."""
    ours = f"commit.timeout is {format_duration(timeout_ms)}, longer than the brokers allow a transaction to take"
    if limit_ms is None:
        shipped = format_duration(LIMIT_AS_SHIPPED_MS)
        return ConfigurationError(
            f"{ours} ({LIMIT}, {shipped} unless somebody changed it).", f"Set a shorter commit.timeout, or raise {LIMIT} on every broker."
        )
    limit = format_duration(limit_ms)
    return ConfigurationError(
        f"{ours}: their {LIMIT} is {limit_ms} ({limit}).", f"Set commit: {{timeout: {limit}}} or less, or raise {LIMIT} on every broker."
    )
