"""What this client is not allowed to do: Kafka is asked, and nothing is changed.

A description of a topic or group carries the operations that are allowed. A topic that is not there is asked for by a creation that is only
validated; transactional.ids, of which there is no description, by an `init` of one that nobody uses and whose name begins as theirs do.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Producer, TopicCollection
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from samzapy.kafka.client import REQUEST_TIMEOUT_S, RETRY_S, Settings, quiet
from samzapy.kafka.errors import FORBIDDEN, log_error
from samzapy.model.acls import CREATE, GROUP, TOPIC, TRANSACTIONAL_ID, Access
from samzapy.model.names import PROBE_ID

_ABSENT = frozenset({KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.GROUP_ID_NOT_FOUND})


def missing_access(admin: AdminClient, settings: Settings, wanted: Iterable[Access]) -> list[Access]:
    """Of each of `wanted` the operations that are refused, where there are any. What cannot be asked yet (reading a topic that is not there)
    is not told.

    Raises:
        LogError: Kafka could not be asked.
    """
    wanted = list(wanted)
    missing = _of_topics(admin, [a for a in wanted if a.kind == TOPIC])
    for access in wanted:
        if access.kind == GROUP:
            missing += _lacking(access, _group_operations(admin, access.name))
        elif access.kind == TRANSACTIONAL_ID and not _may_begin(settings, access):
            missing.append(access)
    return missing


def _of_topics(admin: AdminClient, wanted: Sequence[Access]) -> list[Access]:
    if not wanted:
        return []
    topics = {a.name: a for a in wanted}
    answers = _ask(
        lambda: admin.describe_topics(TopicCollection(list(topics)), include_authorized_operations=True, request_timeout=REQUEST_TIMEOUT_S)
    )
    missing = []
    for name, access in topics.items():
        answer = answers[name]
        is_absent = isinstance(answer, KafkaError) and answer.code() in _ABSENT
        if is_absent or (isinstance(answer, KafkaError) and CREATE in access.operations):
            may_create = CREATE not in access.operations or _may_create(admin, name)
            if not is_absent:  # it may be there, or not: nothing of it is shown
                missing.append(access if not may_create else access.only(tuple(o for o in access.operations if o != CREATE)))
            elif not may_create:
                missing.append(access.only((CREATE,)))
        elif isinstance(answer, KafkaError):
            missing.append(access)
        else:
            there = access.only(tuple(o for o in access.operations if o != CREATE))  # it needs no creation any more
            missing += _lacking(there, answer.authorized_operations)
    return missing


def _lacking(access: Access, allowed: Iterable[Any] | None) -> list[Access]:
    if allowed is None:
        return []
    names = {operation.name.replace("_", "").lower() for operation in allowed}
    lacking = tuple(o for o in access.operations if o.lower() not in names)
    return [access.only(lacking)] if lacking else []


def _may_create(admin: AdminClient, name: str) -> bool:
    answers = _ask(lambda: admin.create_topics([NewTopic(name, 1)], validate_only=True, request_timeout=REQUEST_TIMEOUT_S), KafkaError.POLICY_VIOLATION,
                   KafkaError.TOPIC_ALREADY_EXISTS)  # fmt: skip
    answer = answers[name]
    return not (isinstance(answer, KafkaError) and answer.code() in FORBIDDEN)


def _group_operations(admin: AdminClient, name: str) -> Iterable[Any] | None:
    """None: it is not known."""
    answer = _ask(lambda: admin.describe_consumer_groups([name], include_authorized_operations=True, request_timeout=REQUEST_TIMEOUT_S))[
        name
    ]
    if isinstance(answer, KafkaError):
        return () if answer.code() in FORBIDDEN else None
    operations: Iterable[Any] | None = answer.authorized_operations
    return operations


def _may_begin(settings: Settings, access: Access) -> bool:
    producer = Producer({**quiet(settings), "transactional.id": f"{access.name}{PROBE_ID}" if access.is_prefix else access.name})
    try:
        producer.init_transactions(REQUEST_TIMEOUT_S)
    except KafkaException as error:
        if error.args[0].code() in FORBIDDEN:
            return False
        raise log_error(error.args[0], f"asking whether this user may use transactional ids that begin with {access.name}") from None
    return True


def _ask(call: Callable[[], Mapping[str, Future[Any]]], *fine: int) -> dict[str, Any]:
    """The answer to each question, or the KafkaError that it is: a refusal, or that there is no such thing. Passing errors are tried again."""
    deadline = time.monotonic() + REQUEST_TIMEOUT_S
    while True:
        answers = {name: _answer(future) for name, future in call().items()}
        wrong = [a for a in answers.values() if isinstance(a, KafkaError) and a.code() not in {*FORBIDDEN, *_ABSENT, *fine}]
        if not wrong:
            return answers
        if time.monotonic() >= deadline:
            raise log_error(wrong[0], "asking for permissions")
        time.sleep(RETRY_S)


def _answer(future: Future[Any]) -> Any:
    try:
        return future.result()
    except KafkaException as error:
        return error.args[0]
