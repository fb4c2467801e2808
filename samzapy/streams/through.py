"""`key_by`, `repartition` and `broadcast`: streams that go through an internal topic, to the tasks of a following stage."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from samzapy.config import model_names
from samzapy.streams.functions import function
from samzapy.streams.graph import Reader, Repartition
from samzapy.streams.kinds import Kind, kind_of
from samzapy.streams.partition_choice import BROADCAST, DIRECT, PARTIAL_KEY, ROUND_ROBIN
from samzapy.streams.places import place, refused
from samzapy.streams.window_shapes import PANE

if TYPE_CHECKING:
    from samzapy.streams.stream import Stream

KEY = "key"
PANES = Kind("record:samzapy.streams.window_shapes:Pane", PANE.cls)


def key_by(stream: Stream[Any, Any], fn: Any, name: str, key: Any, value: Any, partitions: int | None, combine: bool) -> Stream[Any, Any]:
    """What `Stream.key_by` gives."""
    where, what = place(), f"key_by({name!r})"
    found = function(fn, what, where)
    if key is None:
        raise refused(f"{what} does not say of what kind the new keys are", "Say it with key=…, for example key=str.", where)
    key_kind = kind_of(key, f"{what}, key=…")
    stream.app.refuse_key(key_kind, what, where)
    return _through(stream, name, "key_by", found, key_kind, value, partitions, where, combine=combine)


def repartition(stream: Stream[Any, Any], name: str, by: Any, value: Any, partitions: int | None, choices: int) -> Stream[Any, Any]:
    """What `Stream.repartition` gives."""
    where, what = place(), f"repartition({name!r})"
    if isinstance(by, str) and by not in (KEY, ROUND_ROBIN):
        raise refused(f"{what}: by={by!r}", f"Give {KEY!r}, {ROUND_ROBIN!r}, or a function that gives the number of the partition.", where)
    found = None if isinstance(by, str) else function(by, f"{what}, by=…", where)
    if type(choices) is not int or choices < 1:
        raise refused(f"{what}: choices={choices!r}", "Give a whole number, 1 or more: among how many partitions a key's records are spread.", where)
    if choices > 1 and by != KEY:
        raise refused(f"{what}: choices={choices} with by=…", "`choices` works only if the key chooses the partition.", where)
    of_key = "repartition" if choices == 1 else PARTIAL_KEY
    how = of_key if by == KEY else ROUND_ROBIN if by == ROUND_ROBIN else DIRECT
    return _through(stream, name, how, found, stream.node.key, value, partitions, where, choices=choices)


def broadcast(stream: Stream[Any, Any], name: str, value: Any) -> Stream[Any, Any]:
    """What `Stream.broadcast` gives."""
    return _through(stream, name, BROADCAST, None, stream.node.key, value, None, place())


def _through(
    stream: Stream[Any, Any], name: str, how: str, found: Any, key: Kind, value: Any, partitions: int | None, where: str, **rest: Any
) -> Stream[Any, Any]:
    from samzapy.streams.stream import Stream as Made

    app, node = stream.app, stream.node
    what = f"{how}({name!r})"
    app.topic_name(name, what, where)
    app.refuse_no_count(partitions, what, where)
    kind = node.value if value is None else kind_of(value, f"{what}, value=…")
    if kind is None:
        raise refused(f"{what}: the kind of its values is not known, and they go through a topic", "Give the kind, for example value=dict.", where)
    for part, of in (("keys", key), ("values", kind)):
        if why := of.why_not_kept:
            raise refused(f"{what}: its {part} could not be read back: {why}", model_names.REMEDY, where)
    writer = app.add(
        Repartition, inputs=(node,), key=key, value=PANES if kind == PANE else kind, name=name, how=how, function=found, partitions=partitions,
        **rest,
    )  # fmt: skip
    return Made(app, app.add(Reader, inputs=(writer,), key=key, value=kind, name=name))
