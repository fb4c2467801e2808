"""librdkafka's keys that a job file may not set: what the framework owns, and what would load code."""

from __future__ import annotations

COMMIT = "the exactness of the job depends on it; samzapy sets it"

OWNED: dict[str, str] = {
    "acks": COMMIT,
    "allow.auto.create.topics": "topics are created on purpose: `samzapy topics --create`",
    "auto.offset.reset": "set `start` and `on_out_of_range` of the input",
    "check.crcs": COMMIT,
    "client.id": "samzapy names its clients itself",
    "delivery.report.only.error": COMMIT,
    "delivery.timeout.ms": "it follows `containers.lease`",
    "enable.auto.commit": "set `commit.interval`",
    "enable.auto.offset.store": COMMIT,
    "enable.idempotence": COMMIT,
    "enable.partition.eof": COMMIT,
    "group.id": "the group is <job>-<id>",
    "group.instance.id": "partitions are assigned by the coordinator, not by the group",
    "isolation.level": COMMIT,
    "message.timeout.ms": "it follows `containers.lease`",
    "partition.assignment.strategy": "partitions are assigned by the coordinator, not by the group",
    "partitioner": "it is murmur2, as in Java's clients; choose partitions with `partition` or `partition_key` when sending",
    "request.required.acks": COMMIT,
    "transaction.timeout.ms": "set `commit.timeout`",
    "transactional.id": COMMIT,
}
LOADS_CODE = ("plugin.library.paths", "ssl.engine.location", "ssl.providers", "ssl.engine.callback.data", "logger", "log_cb", "opaque")


def why_refused(key: str) -> tuple[str, str] | None:
    """(message, hint) for a key that may not be set; None for one that may."""
    if key in OWNED:
        return f"{key!r} is the framework's own", OWNED[key]
    if key in LOADS_CODE or key.endswith(("_cb", "_callback")) or key in ("on_delivery", "on_commit"):
        return f"{key!r} would load code", "it cannot be set in a job file"
    return None
