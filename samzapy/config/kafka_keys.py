"""librdkafka's keys that a job file may not set: what the framework owns, and what would run code. And the names people try instead."""

from __future__ import annotations

OURS = "samzapy sets it: exact results depend on it"
CODE = "it cannot be set in a job file: a job file is data"
GROUP = "the coordinator assigns partitions, not the consumer group"

CLIENT = "kafka"
GROUPS = ("producer", "consumer")  # maps below kafka

OWNED: dict[str, str] = {
    "acks": OURS,
    "allow.auto.create.topics": "create topics explicitly: `samzapy topics JOB.yaml --create`",
    "auto.commit.enable": "set `commit.interval`",
    "auto.commit.interval.ms": "set `commit.interval`",
    "auto.offset.reset": "set `start` and `on_out_of_range` of the input",
    "check.crcs": OURS,
    "client.id": "samzapy names its clients after the job",
    "default.topic.config": "write its keys in `kafka` itself",
    "delivery.report.only.error": OURS,
    "delivery.timeout.ms": "samzapy derives it from `containers.lease`: set that",
    "enable.auto.commit": "set `commit.interval`",
    "enable.auto.offset.store": OURS,
    "enable.gapless.guarantee": OURS,
    "enable.idempotence": OURS,
    "enable.partition.eof": OURS,
    "enabled_events": OURS,
    "group.id": "the group is <job>-<id>: set `job` and `id`",
    "group.instance.id": GROUP,
    "group.protocol": GROUP,
    "group.protocol.type": GROUP,
    "group.remote.assignor": GROUP,
    "isolation.level": OURS,
    "message.timeout.ms": "samzapy derives it from `containers.lease`: set that",
    "metadata.broker.list": "it is another name of bootstrap.servers: write that in `kafka`",
    "offset.store.method": OURS,
    "partition.assignment.strategy": GROUP,
    "partitioner": "it is murmur2, as in Java's clients; choose partitions with `partition` or `partition_key` when sending",
    "queuing.strategy": OURS,
    "request.required.acks": OURS,
    "test.mock.num.brokers": "it would replace the real brokers with simulated ones; for tests use samzapy.testing",
    "topic.blacklist": "the client would know nothing of these topics, and the job would wait for them",
    "transaction.timeout.ms": "set `commit.timeout`",
    "transactional.id": OURS,
}
LOADS_CODE = frozenset(
    {
        "plugin.library.paths", "ssl.engine.location", "ssl.engine.id", "ssl.providers", "ssl_engine_callback_data",
        "sasl.kerberos.kinit.cmd",
        "logger", "opaque", "on_delivery", "on_commit", "interceptors", "key.serializer", "value.serializer", "key.deserializer",
        "value.deserializer",
    }
)  # fmt: skip

JAVA: dict[str, str] = {
    "buffer.memory": "queue.buffering.max.kbytes", "fetch.max.wait.ms": "fetch.wait.max.ms",
    "max.poll.records": "queued.min.messages", "max.request.size": "message.max.bytes", "max.block.ms": "none, because sending waits while the queue is full",
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
    "sasl.jaas.config": "sasl.username and sasl.password", "send.buffer.bytes": "socket.send.buffer.bytes",
    "ssl.truststore.location": "ssl.ca.location (PEM)", "ssl.truststore.password": "none, because ssl.ca.location is PEM",
    "bootstrap_servers": "bootstrap.servers", "bootstrap-servers": "bootstrap.servers", "brokers": "bootstrap.servers",
    "servers": "bootstrap.servers", "bootstrap": "bootstrap.servers",
}  # fmt: skip
COMMON = frozenset({
    "api.version.request", "batch.num.messages", "batch.size", "bootstrap.servers", "broker.address.family", "broker.address.ttl",
    "client.dns.lookup", "client.rack", "compression.codec", "compression.level", "compression.type", "connections.max.idle.ms", "debug",
    "enable.metrics.push", "enable.random.seed", "enable.ssl.certificate.verification", "fetch.error.backoff.ms", "fetch.max.bytes",
    "fetch.message.max.bytes", "fetch.min.bytes", "fetch.queue.backoff.ms", "fetch.wait.max.ms", "heartbeat.interval.ms", "linger.ms",
    "log.connection.close", "log_level", "max.in.flight.requests.per.connection", "max.partition.fetch.bytes", "max.poll.interval.ms",
    "message.copy.max.bytes", "message.max.bytes", "message.send.max.retries", "metadata.max.age.ms", "metadata.recovery.strategy",
    "queue.buffering.backpressure.threshold", "queue.buffering.max.kbytes", "queue.buffering.max.messages", "queue.buffering.max.ms",
    "queued.max.messages.kbytes", "queued.min.messages", "receive.message.max.bytes", "reconnect.backoff.max.ms", "reconnect.backoff.ms",
    "request.timeout.ms", "retries", "retry.backoff.max.ms", "retry.backoff.ms", "sasl.kerberos.keytab", "sasl.kerberos.principal",
    "sasl.kerberos.service.name", "sasl.mechanism", "sasl.mechanisms", "sasl.oauthbearer.client.id", "sasl.oauthbearer.client.secret",
    "sasl.oauthbearer.config", "sasl.oauthbearer.extensions", "sasl.oauthbearer.method", "sasl.oauthbearer.scope",
    "sasl.oauthbearer.token.endpoint.url", "sasl.password", "sasl.username", "security.protocol", "session.timeout.ms",
    "socket.connection.setup.timeout.ms", "socket.keepalive.enable", "socket.max.fails", "socket.nagle.disable",
    "socket.receive.buffer.bytes", "socket.send.buffer.bytes", "socket.timeout.ms", "ssl.ca.certificate.stores", "ssl.ca.location",
    "ssl.ca.pem", "ssl.certificate.location", "ssl.certificate.pem", "ssl.cipher.suites", "ssl.crl.location", "ssl.curves.list",
    "ssl.endpoint.identification.algorithm", "ssl.key.location", "ssl.key.password", "ssl.key.pem", "ssl.keystore.location",
    "ssl.keystore.password", "ssl.sigalgs.list", "statistics.interval.ms", "sticky.partitioning.linger.ms",
    "topic.metadata.propagation.max.ms", "topic.metadata.refresh.interval.ms",
})  # fmt: skip


def refusal(key: str) -> tuple[str, str] | None:
    """(message, hint) for a key that may not be set; None for one that may."""
    if key in OWNED:
        return f"{key!r} is set by samzapy itself", OWNED[key]
    if key in LOADS_CODE or key.endswith(("_cb", "_callback")):
        return f"{key!r} would run code", CODE
    if JAVA.get(key, key) != key:
        return f"unknown Kafka property {key!r}", f"In librdkafka: {JAVA[key]}"
    return None
