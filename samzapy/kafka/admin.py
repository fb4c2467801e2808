"""ports.Admin over confluent-kafka."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Collection, Iterable, Mapping
from concurrent.futures import Future
from typing import Any

from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicCollection
from confluent_kafka import TopicPartition as ClientPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewPartitions, NewTopic, OffsetSpec, ResourceType  # type: ignore[attr-defined]

from samzapy.api.errors import ClusterUnreachable, LogError, NotAuthorized
from samzapy.kafka.client import REQUEST_TIMEOUT_S, RETRY_S, Settings, quiet
from samzapy.kafka.errors import MISSING, log_error
from samzapy.kafka.logins import Refusals, silent_broker
from samzapy.kafka.making import making
from samzapy.kafka.new_partitions import PATIENCE_S, await_led, once_led
from samzapy.kafka.open_files import used_up
from samzapy.kafka.permissions import missing_access
from samzapy.model.acls import Access
from samzapy.model.offsets import TopicPartition
from samzapy.ports import START_ITS_BROKER, Closing, TopicFacts, TopicOutline, TopicSpec

REACH_TIMEOUT_S = 10.0
LOOK_S = 2.0  # between two looks, while nobody answers, at whether a login was refused
VISIBLE_TIMEOUT_S = 15.0
A_TOPIC = "__consumer_offsets"  # one that is there, so that a look at the cluster is not one at all its topics
MAX_REPLICATION = 3


class KafkaAdmin(Closing):
    """Looks at the cluster and creates topics."""

    def __init__(self, settings: Settings) -> None:
        self._servers = str(settings.get("bootstrap.servers", ""))
        self._settings = settings
        self._refusals = Refusals(settings)
        with making():
            self._admin = AdminClient(quiet(settings, error_cb=self._refusals.heard))
        self._cluster: Any = None

    def _metadata(self) -> Any:
        deadline = time.monotonic() + REACH_TIMEOUT_S
        while self._cluster is None:
            self._cluster, failed = self._look()
            if failed is not None:
                self._judge(failed, deadline)
        return self._cluster

    def _look(self) -> tuple[Any, LogError | None]:
        """The error is not raised here: the library's own, which it would refer to, would keep the client and its threads for as long as itself."""
        try:
            return self._admin.list_topics(topic=A_TOPIC, timeout=LOOK_S), None
        except KafkaException as error:
            return None, log_error(error.args[0], f"Kafka at {self._servers}")

    def _judge(self, found: LogError, deadline: float) -> None:
        """Raise what trying again will not mend, and what time is up for."""
        self._admin.poll(0)  # serves what was heard
        refused = self._refusals.error("asking for the cluster")
        if refused is not None:
            raise refused
        if not isinstance(found, ClusterUnreachable):
            raise found
        if time.monotonic() >= deadline:
            remedy = used_up() or silent_broker(self._settings) or (
                "Check `kafka.bootstrap.servers`; for a broker on this machine: `samzapy dev kafka start`."
            )
            raise ClusterUnreachable(f"no Kafka broker answered at {self._servers} within {REACH_TIMEOUT_S:.0f} s.", remedy)
        time.sleep(RETRY_S)

    def cluster_id(self) -> str:
        return str(self._metadata().cluster_id)

    def broker_count(self) -> int:
        return len(self._metadata().brokers)

    def broker_settings(self, name: str) -> list[str]:
        resources = [ConfigResource(ResourceType.BROKER, str(number)) for number in sorted(self._metadata().brokers)]
        # one request a broker: the client does not take several brokers in one
        asked = [future for one in resources for future in self._admin.describe_configs([one], request_timeout=REQUEST_TIMEOUT_S).values()]
        found = []
        for answer in asked:
            with contextlib.suppress(NotAuthorized, ClusterUnreachable):  # a broker that has just died is still named for a while
                found.append(self._result(answer, "a broker's settings"))
        return [settings[name].value for settings in found if name in settings and settings[name].value is not None]

    def names(self) -> list[str]:
        self._metadata()
        try:
            return list(self._admin.list_topics(timeout=REQUEST_TIMEOUT_S).topics)
        except KafkaException as error:
            raise log_error(error.args[0], f"listing the topics of Kafka at {self._servers}") from None

    def topics(self, names: Iterable[str]) -> dict[str, TopicFacts]:
        wanted = sorted(set(names))
        if not wanted:
            return {}
        self._metadata()
        described = self._admin.describe_topics(TopicCollection(wanted), request_timeout=REQUEST_TIMEOUT_S)
        there = {name: d for name, d in ((n, self._existing(n, f)) for n, f in described.items()) if d is not None}
        if not there:
            return {}
        configs = self._admin.describe_configs([ConfigResource(ResourceType.TOPIC, n) for n in there], request_timeout=REQUEST_TIMEOUT_S)
        answers = {r.name: self._result(f, f"the settings of {r.name}", fine=MISSING) for r, f in configs.items()}
        settings = {
            name: found for name, found in answers.items() if found is not None
        }  # another broker may not know of it yet, or any more
        return {
            name: TopicFacts(
                name,
                str(d.topic_id),
                len(d.partitions),
                min((len(p.replicas) for p in d.partitions), default=0),
                {k: e.value for k, e in settings[name].items() if e.value is not None},
                _leaderless(d),
            )
            for name, d in there.items()
            if name in settings
        }

    def outlines(self, names: Iterable[str], timeout_s: float) -> dict[str, TopicOutline]:
        wanted = sorted(set(names))
        if not wanted:
            return {}
        described = self._admin.describe_topics(TopicCollection(wanted), request_timeout=timeout_s)
        answers = {name: self._existing(name, future) for name, future in described.items()}
        return {name: TopicOutline(str(found.topic_id), len(found.partitions)) for name, found in answers.items() if found is not None}

    def leaderless(self, names: Iterable[str]) -> set[TopicPartition]:
        wanted = sorted(set(names))
        if not wanted:
            return set()
        described = self._admin.describe_topics(TopicCollection(wanted), request_timeout=REQUEST_TIMEOUT_S)
        answers = {name: self._existing(name, future) for name, future in described.items()}
        return {TopicPartition(name, p) for name, found in answers.items() if found is not None for p in _leaderless(found)}

    def ends(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return self._latest(partitions, IsolationLevel.READ_COMMITTED, MISSING | {KafkaError.LEADER_NOT_AVAILABLE})

    def high_watermarks(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return self._latest(partitions, IsolationLevel.READ_UNCOMMITTED, frozenset())

    def _latest(self, partitions: Iterable[TopicPartition], isolation: IsolationLevel, fine: frozenset[int]) -> dict[TopicPartition, int]:
        wanted = {ClientPartition(*p): OffsetSpec.latest() for p in partitions}  # type: ignore[no-untyped-call]
        if not wanted:
            return {}
        patience_s = PATIENCE_S if isolation == IsolationLevel.READ_UNCOMMITTED else 0.0  # the others are asked for again every few seconds anyway
        asked = once_led(lambda: self._admin.list_offsets(wanted, isolation_level=isolation, request_timeout=REQUEST_TIMEOUT_S), patience_s)
        answers = {p: self._result(future, f"the end offset of {p.topic}[{p.partition}]", fine) for p, future in asked.items()}
        ends = {TopicPartition(p.topic, p.partition): int(found.offset) for p, found in answers.items() if found is not None}
        untold = sorted(partition for partition, end in ends.items() if end < 0)
        if untold:
            self._look_again({partition.topic for partition in untold})
            if isolation == IsolationLevel.READ_UNCOMMITTED:
                raise ClusterUnreachable(f"the high watermark of {untold[0]} could not be read: its broker does not answer.", START_ITS_BROKER)
        return {partition: end for partition, end in ends.items() if end >= 0}

    def _look_again(self, topics: Iterable[str]) -> None:
        """Measured (test_a_partition_whose_broker_is_down): of a broker that has just died, the client asks on for minutes, and then
        answers with -1001 and no error; so its picture of the topics is renewed."""
        for topic in topics:
            with contextlib.suppress(KafkaException):
                self._admin.list_topics(topic, timeout=LOOK_S)

    def create(self, specs: Iterable[TopicSpec]) -> None:
        wanted = list(specs)
        if not wanted:
            return
        replication = min(MAX_REPLICATION, self.broker_count())
        safety = {"min.insync.replicas": "2"} if replication >= 2 else {}
        new = [NewTopic(s.name, s.partitions, replication, config={**safety, **s.config}) for s in wanted]
        for name, future in self._admin.create_topics(new, request_timeout=REQUEST_TIMEOUT_S).items():
            self._result(future, f"creating topic {name}", fine=frozenset({KafkaError.TOPIC_ALREADY_EXISTS}))
        there = self._await_visible([s.name for s in wanted])  # one that was there already may have fewer partitions
        self._await_led(TopicPartition(name, number) for name, found in there.items() for number in range(found.partitions))

    def _await_led(self, partitions: Iterable[TopicPartition]) -> None:
        def ask(left: Collection[TopicPartition]) -> dict[TopicPartition, Future[Any]]:
            wanted = {ClientPartition(*p): OffsetSpec.latest() for p in left}  # type: ignore[no-untyped-call]
            return {TopicPartition(p.topic, p.partition): answer for p, answer in self._admin.list_offsets(wanted, request_timeout=REQUEST_TIMEOUT_S).items()}

        await_led(ask, partitions)

    def _await_visible(self, names: list[str]) -> dict[str, TopicFacts]:
        """A topic that was created is not yet known everywhere, and each question goes to any broker: several in a row must know of it."""
        deadline = time.monotonic() + VISIBLE_TIMEOUT_S
        wanted = 1 if self.broker_count() == 1 else 2 * self.broker_count()
        seen = 0
        while True:
            found = self.topics(names)
            missing = set(names) - set(found)
            seen = 0 if missing else seen + 1
            if seen >= wanted:
                return found
            if not missing:
                continue
            if time.monotonic() >= deadline:
                raise LogError(f"topics {', '.join(sorted(missing))} were created, but no broker shows them.", "See the brokers' logs.")
            time.sleep(0.05)

    def grow(self, name: str, partitions: int) -> None:
        before = self.outlines([name], REQUEST_TIMEOUT_S)
        for topic, future in self._admin.create_partitions([NewPartitions(name, partitions)], request_timeout=REQUEST_TIMEOUT_S).items():
            self._result(future, f"adding partitions to {topic}")
        deadline = time.monotonic() + VISIBLE_TIMEOUT_S
        while (seen := self.outlines([name], REQUEST_TIMEOUT_S).get(name)) is None or seen.partitions < partitions:
            if time.monotonic() >= deadline:
                raise LogError(f"topic {name} now has {partitions} partitions, but no broker reports them yet.", "See the brokers' logs.")
            time.sleep(0.05)
        self._await_led(TopicPartition(name, number) for number in range(before[name].partitions if name in before else 0, partitions))

    def delete(self, names: Iterable[str]) -> None:
        wanted = list(names)
        if wanted:
            for name, future in self._admin.delete_topics(wanted, request_timeout=REQUEST_TIMEOUT_S).items():
                self._result(future, f"deleting topic {name}", fine=MISSING)

    def delete_records(self, before: Mapping[TopicPartition, int]) -> None:
        if not before:
            return
        wanted = [ClientPartition(p.topic, p.partition, at) for p, at in before.items()]
        for partition, future in once_led(lambda: self._admin.delete_records(wanted, request_timeout=REQUEST_TIMEOUT_S)).items():
            self._result(future, f"removing records of {partition.topic}[{partition.partition}]")

    def missing_access(self, wanted: Iterable[Access]) -> list[Access]:
        self._metadata()
        return missing_access(self._admin, self._settings, wanted)

    def close(self) -> None:
        del self._admin

    def _existing(self, name: str, future: Future[Any]) -> Any:
        return self._result(future, f"topic {name}", fine=MISSING)

    def _result(self, future: Future[Any], doing: str, fine: frozenset[int] = frozenset()) -> Any:
        """Measured (test_a_partition_whose_broker_is_down): such requests go to the broker that the client takes for the controller, and of one
        that has died it asks on for minutes, until it looks at the cluster again. So that is done here, for the next request."""
        try:
            found = result_of(future, doing, fine)
        except ClusterUnreachable:
            self._look_again([A_TOPIC])
            self._admin.poll(0)  # serves what was heard
            refused = self._refusals.error(doing)
            if refused is None:
                raise
            raise ClusterUnreachable(refused.message, refused.remedy) from None  # not known to last: others may get in by then
        self._refusals.forget()
        return found


def _leaderless(described: Any) -> tuple[int, ...]:
    """Measured (test_a_partition_whose_broker_is_down): the leader is None."""
    return tuple(p.id for p in described.partitions if p.leader is None or p.leader.id < 0)


def result_of(future: Future[Any], doing: str, fine: frozenset[int] = frozenset()) -> Any:
    try:
        return future.result()
    except KafkaException as error:
        if error.args[0].code() in fine:
            return None
        raise log_error(error.args[0], doing) from None
