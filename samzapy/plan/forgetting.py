"""A checkpoint without a store, or without an input that the job does not have any more: for `state drop` and `checkpoint forget`."""

from __future__ import annotations

from dataclasses import replace

from samzapy.model.checkpoint import BY_COMMAND, Checkpoint
from samzapy.model.ownership import Startpoint

OPERATOR = "operator "
INTERNAL = "internal topic "
TIME = "time of "
PARTITIONS = "partitions of "
KEY_FIELDS = "key fields"
TABLE = "topic of the table"
LAYOUT = "layout"
KIND = "kind of"
KEY_PARTITIONS, EVERY_TASK, OF_INTERNAL = "partitions of its keys", "every task", " of an internal topic"
RECORDS = "records in accumulators"
OF_RECORD, OF_VALUE, OF_CLOCK = "Kafka's timestamp", "of the value", "the clock's"


def store_subject(store: str, what: str) -> str:
    """The fingerprint's name for a property of a store: `store 's' key serde`."""
    return f"store {store!r} {what}"


def key_fields_subject(store: str) -> str:
    """The fingerprint's name for the fields of the class that a store's keys are objects of."""
    return store_subject(store, KEY_FIELDS)


def layout_subject(store: str, part: str) -> str:
    """The fingerprint's name for how keys, values or RECORDS (`part`) of a store lie in their bytes, where nothing in these says it."""
    return store_subject(store, f"{part} {LAYOUT}")


def kind_subject(store: str, what: str) -> str:
    """The fingerprint's name for the kind of what a program keeps in a store, where its serde does not say it: `what` is "values" or RECORDS."""
    return store_subject(store, f"{KIND} {what}")


def topic_layout_subject(name: str, part: str) -> str:
    """The same of the keys or values in an internal topic of a program."""
    return f"{part}s of {INTERNAL}{name} {LAYOUT}"


def table_subject(store: str) -> str:
    """The fingerprint's name for the topic whose newest values a store has: of a program's table, where the job file says that it really is."""
    return store_subject(store, TABLE)


def operator_subject(name: str) -> str:
    """The fingerprint's name for what an operator of a program does with the store of that name."""
    return f"{OPERATOR}{name}"


def topic_subject(name: str) -> str:
    """The fingerprint's name for an internal topic of a program, between two stages."""
    return f"{INTERNAL}{name}"


def time_subject(topic: str) -> str:
    """The fingerprint's name for what a record's time is: OF_RECORD, OF_VALUE or OF_CLOCK."""
    return f"{TIME}{topic}"


def key_partitions_subject(store: str) -> str:
    """The fingerprint's name for how many partitions the topics have whose keys decide which task has an entry of a program's store."""
    return store_subject(store, KEY_PARTITIONS)


def partitions_subject(topic: str) -> str:
    """The fingerprint's name for how many partitions an internal topic has whose keys decide which task's state a record meets."""
    return f"{PARTITIONS}{topic}"


def without_store(checkpoint: Checkpoint, store: str) -> Checkpoint:
    """The task's next checkpoint, without the store; the same checkpoint, if it does not name the store."""
    if store not in checkpoint.stores:
        return checkpoint
    stores = {name: mark for name, mark in checkpoint.stores.items() if name != store}
    own = operator_subject(store)
    subjects = {s: how for s, how in checkpoint.fingerprint.items() if not s.startswith(store_subject(store, "")) and s != own}
    return checkpoint.advanced(incarnation=BY_COMMAND, stores=stores, fingerprint=subjects if stores else {})


def without_input(checkpoint: Checkpoint, topic: str) -> Checkpoint:
    """The task's next checkpoint, without offsets of the topic; the same checkpoint, if it has none."""
    inputs = {partition: mark for partition, mark in checkpoint.inputs.items() if not is_of(partition, topic)}
    left = {partition: mark for partition, mark in checkpoint.left.items() if not is_of(partition, topic)}
    internal = _subjects(checkpoint, topic)
    subjects = {s: how for s, how in checkpoint.fingerprint.items() if s not in internal}
    same = not internal and len(inputs) + len(left) == len(checkpoint.inputs) + len(checkpoint.left)
    return checkpoint if same else checkpoint.advanced(incarnation=BY_COMMAND, inputs=inputs, left=left, fingerprint=subjects)


def knows(checkpoint: Checkpoint, topic: str) -> bool:
    """Whether the checkpoint names an internal topic: as one of the program, or with an offset."""
    return writes(checkpoint, topic) or any(is_of(partition, topic) for partition in (*checkpoint.inputs, *checkpoint.left))


def writes(checkpoint: Checkpoint, topic: str) -> bool:
    """Whether the checkpoint names an internal topic as one of the program: it writes there, and does not only read it."""
    return bool(_subjects(checkpoint, topic))


def _subjects(checkpoint: Checkpoint, topic: str) -> set[str]:
    """What the fingerprint says of an internal topic."""
    own = f"{checkpoint.job}-{checkpoint.id}-"
    names = {s.removeprefix(INTERNAL) for s in checkpoint.fingerprint if s.startswith(INTERNAL) and topic == own + s.removeprefix(INTERNAL)}
    of_each = ((topic_subject(name), topic_layout_subject(name, "key"), topic_layout_subject(name, "value")) for name in names)
    own_topic = {subject for subjects in of_each for subject in subjects if subject in checkpoint.fingerprint}
    return own_topic | {s for s in checkpoint.fingerprint if s == partitions_subject(topic)}


def without_order(order: Startpoint, topic: str) -> Startpoint | None:
    """The order without the topic's offsets; None: it has no others."""
    offsets = {partition: at for partition, at in order.offsets.items() if not is_of(partition, topic)}
    return replace(order, offsets=offsets, topic_ids={partition: order.topic_ids[partition] for partition in offsets}) if offsets else None


def is_of(partition: str, topic: str) -> bool:
    """Whether `topic[partition]` is of this topic."""
    return partition.rpartition("[")[0] == topic
