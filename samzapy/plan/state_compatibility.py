"""Whether a job, as it is now, may go on with the state of earlier runs: what it was then is in each checkpoint, as its fingerprint and its stores.

    in both, and equal           goes on
    in both, and different       refused: the state would mean something else; but a list may have more at its end, an Enum more members
    store: new                   goes on; it begins empty (plan/refill.py: what is read again for it)
    store: gone                  refused: its state would be forgotten without a word; `samzapy state drop` deletes it
    store: scratch now           refused: its state would be emptied
    store: an operator's now     refused: the task class, or the program's own store, of that name may have kept anything in it
    internal topic: gone         refused: records that wait in it would be lost; `samzapy checkpoint forget` gives them up
    other subject: new or gone   goes on
    inputs: all others than ever refused if it has state (another job of the same name?); else it goes on, with a warning
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Collection, Mapping
from typing import Any

from samzapy.model.checkpoint import Checkpoint
from samzapy.model.event_time import NEVER
from samzapy.model.names import Job
from samzapy.plan.forgetting import (
    EVERY_TASK,
    INTERNAL,
    KEY_FIELDS,
    KEY_PARTITIONS,
    KIND,
    LAYOUT,
    OF_INTERNAL,
    OPERATOR,
    PARTITIONS,
    RECORDS,
    TABLE,
    TIME,
    is_of,
    key_partitions_subject,
    layout_subject,
    store_subject,
    table_subject,
)
from samzapy.plan.grown_topics import KEEPS_PARTITIONS
from samzapy.plan.start_refusals import Refuse

_UNION = re.compile(r"<[^>]*>")  # in the place of a class that is one of several
DEFAULTS, WHOLE = " defaults", " whole"  # after the place of a class (config/value_layout.py)


def refusal(checkpoint: Checkpoint, fingerprint: Mapping[str, str], stores: Mapping[str, bool]) -> Refuse | None:
    """Why a task cannot go on from its checkpoint, or None. `stores`: those of the job now, and whether they have a changelog."""
    is_program = any(subject.startswith(OPERATOR) for subject in (*fingerprint, *checkpoint.fingerprint))
    gone = next((name for name in sorted(checkpoint.stores) if not stores.get(name)), None)
    if gone is not None and is_program and gone not in stores:
        return _gone_of_program(checkpoint, gone, stores)
    both = (s for s in sorted(checkpoint.fingerprint) if s in fingerprint and not _is_over(checkpoint, s))
    different = next((s for s in both if not _means_the_same(s, checkpoint.fingerprint[s], fingerprint[s])), None)
    if different is not None:
        return _different(checkpoint, different, fingerprint[different])
    if gone is not None:
        return _gone(checkpoint, gone, stores)
    operators = (s.removeprefix(OPERATOR) for s in sorted(fingerprint) if s.startswith(OPERATOR) and s not in checkpoint.fingerprint)
    taken_over = next((name for name in operators if name in checkpoint.stores), None)
    if taken_over is not None:
        return _taken_over(checkpoint, taken_over)
    lost = next((s for s in sorted(checkpoint.fingerprint) if s.startswith(INTERNAL) and s not in fingerprint), None)
    return None if lost is None else _lost(checkpoint, lost.removeprefix(INTERNAL), fingerprint)


def other_inputs(checkpoint: Checkpoint, present: Collection[str], own: Collection[str]) -> Refuse | str:
    """What follows if the job reads only topics now that the task has not read when it last committed: a reason not to start, a warning, or "".

    Inputs may come and go one by one. Where none is left, this is more likely another job that has the same name by mistake. One that was an input
    before and comes back is known: with it, there is nothing to refuse. A task that has no partition of an input cannot have read it: others tell.

    Args:
        present: the topics that are inputs of the job now, internal topics excepted.
        own: the topics of which the task has partitions now.
    """
    if not set(present) <= set(own):
        return ""
    job, now = Job(checkpoint.job, checkpoint.id), sorted(present)
    internal = {job.internal_topic(s.removeprefix(INTERNAL)) for s in checkpoint.fingerprint if s.startswith(INTERNAL)}
    read, before = (sorted({p.rpartition("[")[0] for p in marks} - internal) for marks in (checkpoint.inputs, checkpoint.left))
    if not read or set(read) & set(now):
        return ""
    told = f"the job {job} has read {', '.join(read)} so far, and now reads only {', '.join(now)}"
    if not checkpoint.stores or set(before) & set(now):
        return f"{told}. If these are two jobs, give each a name of its own (`job:`) or an `id:`; they share checkpoints, and cannot run at the same time."
    return Refuse(
        f"{told}, with the state in {', '.join(sorted(m.topic for m in checkpoint.stores.values()))}, which comes from the inputs read so far.",
        "If these are two jobs, give this one another name (`job:`) or `id:`. If its inputs were replaced and the state is to stay, say where "
        "it begins in the new ones: `samzapy checkpoint set JOB.yaml --to-earliest --keep-state --execute`. To begin with empty state: `samzapy reset "
        "JOB.yaml`, which shows what it would do.",
    )


def _means_the_same(subject: str, old: str, new: str) -> bool:
    if subject.endswith(KEY_PARTITIONS):  # whether an internal topic, which is new, has the keys where they were: ops/moved_keys.py
        return new in (old, old + OF_INTERNAL)
    return old == new or (subject.endswith(LAYOUT) and _moved(old, new) is None)


def _moved(old: str, new: str) -> tuple[str, Any, Any] | None:
    """Of two layouts (config/value_layout.py), the first place where what was written would be read as something else: what was said of it, and what is
    now. None: there is none. Where a layout is no such text, nothing more is known of it than that it is another."""
    if not (old.startswith("{") and new.startswith("{")):
        return "", [old], [new]
    before, now = json.loads(old), json.loads(new)
    by_place: dict[str, list[Any]] = {}
    for place, said in now.items():
        by_place.setdefault(_UNION.sub("", place), []).append(said)
    for place, was in before.items():
        may_be = [now[place]] if place in now else by_place.get(_UNION.sub("", place), [])  # a class alone may be one of a union now
        if may_be and all(_is_read_as_other(was, said) for said in may_be):
            return place, was, may_be[0]
        if not may_be and was and place.endswith(DEFAULTS) and _UNION.sub("", place.removesuffix(DEFAULTS) + WHOLE) in by_place:
            return place, was, {}
    return None


def _is_read_as_other(was: Any, now: Any) -> bool:
    if isinstance(was, dict) and isinstance(now, dict):
        return bool(_other_default(was, now)) if _are_defaults(was) else not _are_defaults(now) and _other_member(was, now) is not None
    return isinstance(was, list) and isinstance(now, list) and now[: len(was)] != was  # otherwise of another type: it cannot be read, which is told


def _are_defaults(said: Mapping[str, Any]) -> bool:
    return all(isinstance(each, str) for each in said.values())


def _other_default(was: Mapping[str, str], now: Mapping[str, str]) -> str:
    """The first field that has another default now; "": there is none."""
    return next((name for name, default in was.items() if now.get(name, default) != default), "")


def _other_member(was: Mapping[str, int], now: Mapping[str, int]) -> tuple[str, str, int] | None:
    """The first member of an Enum whose number is that of another one now: both, and the number. A number that none has cannot be read, which is told."""
    names = {number: name for name, number in now.items()}
    in_order = sorted(was.items(), key=lambda member: member[1])
    return next(((name, names[number], number) for name, number in in_order if number in names and now.get(name) != number), None)


def _different(checkpoint: Checkpoint, subject: str, new: str) -> Refuse:
    old = checkpoint.fingerprint[subject]
    if subject.startswith(OPERATOR):
        name = subject.removeprefix(OPERATOR)
        return Refuse(
            f"{subject} was {old!r} when its state was written; the program now says {new!r}, which cannot go on with that state.",
            f"Change that back; or do both: 1. give {name!r} another name, so it begins empty; 2. {dropped(name)}",
        )
    if subject.startswith(INTERNAL):
        name, topic = subject.removeprefix(INTERNAL), Job(checkpoint.job, checkpoint.id).internal_topic(subject.removeprefix(INTERNAL))
        return Refuse(
            f"{subject} was {old!r} when records were written there; the program now says {new!r}, which cannot read them.",
            f"Change {name!r} back; or give it another name and, to give up what waits in the old topic, run `samzapy checkpoint forget JOB.yaml {topic}`, "
            "which shows what it would do; then add `--execute`.",
        )
    if subject.startswith(PARTITIONS):
        topic = subject.removeprefix(PARTITIONS)
        return Refuse(
            f"internal topic {topic} had {old} partitions when the state of the operators after it was written, and has {new} now: keys would go to tasks "
            "that do not have their state. Nothing is lost: state and waiting records are as they were last committed.",
            KEEPS_PARTITIONS,
        )
    if subject.startswith(TIME):
        return Refuse(
            f"{subject} was {old!r} so far, and the checkpoint holds the event time that was computed from it; now it is {new!r}. The new times do not fit "
            "that event time: records could be late, or could close windows too early.",
            "Change it back; or delete the state and say where inputs continue: `samzapy checkpoint set JOB.yaml --to-earliest --reset-state`, which shows what "
            "it would do; then add `--execute`.",
        )
    if subject.endswith(KEY_PARTITIONS):
        name = next((s for s in checkpoint.stores if subject == key_partitions_subject(s)), "NAME")
        return Refuse(
            f"the keys of {name!r} were in {_partitions(old)}, and would be in {_partitions(new)}: they come through another topic now, or their topic has got "
            "more partitions. Keys would go to tasks that do not have their state.",
            f"{_back(old, new)} Or do both: 1. give {name!r} another name, so it begins empty; 2. {dropped(name)}",
        )
    if subject.endswith(TABLE):
        name = next((s for s in checkpoint.stores if subject == table_subject(s)), "NAME")
        return Refuse(
            f"the table {name!r} has entries of the topic {old!r}; the job file now says {new!r} under `streams:`: entries of the old topic that the "
            "new one does not have would stay in it.",
            f"Change it back; or give the table another name in the program (`store=…`), under which it is filled from {new!r}, and {_drop(name)}",
        )
    if subject.endswith(LAYOUT):
        store = next((s for s in checkpoint.stores if subject in {layout_subject(s, part) for part in ("key", "value", RECORDS)}), "")
        return _other_layout(subject.removesuffix(f" {LAYOUT}"), store, old, new)
    store = next((s for s in checkpoint.stores if subject.startswith(store_subject(s, KIND))), "")
    if store:
        return Refuse(
            f"{subject} was {old} when its state was written; the program now says {new}, which cannot go on with that state.",
            f"Change that back; or do both: 1. give {store!r} another name, so it begins empty; 2. {dropped(store)}",
        )
    if subject.endswith(KEY_FIELDS):
        return Refuse(
            f"{subject} were {old!r} when its state was written; the class now has {new!r}. Keys are found by their bytes: none would find its state.",
            "Change the class back; or use a class of another name, and another store, which begins empty; or run `samzapy reset JOB.yaml` to begin "
            "with empty state.",
        )
    return Refuse(
        f"{subject} was {old!r} when its state was written; the job file now says {new!r}.",
        "Change it back, give the job a new id, or run `samzapy reset JOB.yaml` to begin with empty state.",
    )


def _partitions(lie: str) -> str:
    count = lie.removesuffix(OF_INTERNAL)
    return lie if lie == EVERY_TASK else f"{count} partition{'s' * (count != '1')}{lie.removeprefix(count)}"


def _back(old: str, new: str) -> str:
    if EVERY_TASK in (old, new) or (old.endswith(OF_INTERNAL) and not new.endswith(OF_INTERNAL)):
        return "Put back what was before it in the program."
    partitions = old.removesuffix(OF_INTERNAL)
    return f"If an operator before it is new, give it `partitions={partitions}`; if a stream has another topic now, change that back."


def _other_layout(whose: str, store: str, old: str, new: str) -> Refuse:
    """`whose`: `store 's' value`, or the values of an internal topic; `store`: its name, "" of a topic."""
    was: Any
    now: Any
    place, was, now = _moved(old, new) or ("", [old], [new])
    if not place:
        return Refuse(
            f"{whose}: the Avro schema was another one when it was written ({old}; now {new}). Nothing in the bytes says which schema wrote them: they would be "
            "read as other values.",
            "Put the schema back; or do both: 1. give the store another name, so it begins empty (with `registry:FILE` as its serde, the schema may change); "
            f"2. {_drop(store)}",
        )
    at = "" if place in ("$", "$ defaults") else f" at {place}"
    if isinstance(was, dict) and _are_defaults(was):
        name = _other_default(was, now)
        if not now:
            return Refuse(
                f"{whose}: its class{at.removesuffix(' defaults')} had `omit_defaults` when the value was written, and does not have it now. Fields that "
                f"held their defaults were not written ({', '.join(was)}): with another default, now or later, they would be read as that default.",
                "Give the class `omit_defaults=True` again; or use the class without it in a new store.",
            )
        return Refuse(
            f"{whose}: the field {name!r} of its class{at.removesuffix(' defaults')} had the default {was[name]} when it was written, and has {now[name]} now. The "
            "class has `omit_defaults`: a field with its default is not written, and would be read with the new default.",
            "Put the default back, and give the new one where objects are made; or use a class without `omit_defaults` in a new store.",
        )
    if isinstance(was, dict) and (other := _other_member(was, now)):
        return Refuse(
            f"{whose}: its Enum{at} had {other[0]} = {other[2]} when it was written, and has {other[1]} = {other[2]} now. What is written of a member is its "
            f"number: {other[0]} would be read as {other[1]}.",
            "Give each member the number that it had (write numbers instead of `auto()`), and new members others. A member that has another name now can keep "
            f"the old one as an alias: `{other[1]} = {other[2]}`, and after it `{other[0]} = {other[2]}`.",
        )
    return Refuse(
        f"{whose}: the fields of its class{at} were {', '.join(was)} when it was written, and are {', '.join(now)} now. Such a class is written as a list, "
        "without names: values would be read into other fields.",
        "Keep the order of the fields, and add new ones at the end, with a default. Fields of a dataclass, or of a `msgspec.Struct` without `array_like`, are "
        "written with their names and may have any order.",
    )


def _is_over(checkpoint: Checkpoint, subject: str) -> bool:
    """Whether nothing is left of what the subject was about: of an input's time, once a `checkpoint set` has deleted it."""
    topic = subject.removeprefix(TIME)
    times = [mark.time for p, mark in checkpoint.inputs.items() if is_of(p, topic)]
    return topic != subject and all(time is None or time.newest == NEVER for time in times)


def _lost(checkpoint: Checkpoint, name: str, fingerprint: Mapping[str, str]) -> Refuse:
    """An internal topic that the program had."""
    new = [s.removeprefix(INTERNAL) for s in sorted(fingerprint) if s.startswith(INTERNAL) and s not in checkpoint.fingerprint]
    near = difflib.get_close_matches(name, new, 1, 0.0)
    renamed = f"; is it {near[0]!r}, which is new?" if near else "."
    topic = Job(checkpoint.job, checkpoint.id).internal_topic(name)
    return Refuse(
        f"the internal topic {name!r} ({topic}), through which records go to a following stage, is not in the program any more{renamed}",
        f"{f'Name it {name!r}' if near else f'Put {name!r} back'}, so that what waits in it is read; or, to give that up, run `samzapy checkpoint forget "
        f"JOB.yaml {topic}`, which shows what it would do; then add `--execute`.",
    )


def _gone_of_program(checkpoint: Checkpoint, name: str, stores: Mapping[str, bool]) -> Refuse:
    new = _new(checkpoint, stores)
    near = difflib.get_close_matches(name, new, 1, 0.0)
    renamed = f"; is it {near[0]!r}, which is new?" if near else "."
    back = f"Name it {name!r} (state is found by its name; to show another word, use `label`)" if near else f"Put {name!r} back"
    return Refuse(
        f"{name!r} has state, in changelog {checkpoint.stores[name].topic}, and is not in the program any more{renamed}",
        f"{back}; or, {dropped(name)}",
    )


def _gone(checkpoint: Checkpoint, name: str, stores: Mapping[str, bool]) -> Refuse:
    """Going on would forget its state, and a store that later has its name would begin empty though its inputs are read."""
    topic = checkpoint.stores[name].topic
    if name in stores:
        return Refuse(
            f"store {name!r} has `changelog: false` now; its state in changelog {topic} would be emptied.", f"Undo that change; or, {_drop(name)}"
        )
    new = _new(checkpoint, stores)
    instead = f", which has {', '.join(map(repr, new))} instead" if new else ""
    return Refuse(
        f"store {name!r}, whose state is in changelog {topic}, is not in the job file any more{instead}.",
        f"Put {name!r} back under `stores:` (a store cannot be renamed); or, {_drop(name)}",
    )


def _taken_over(checkpoint: Checkpoint, name: str) -> Refuse:
    """The job had a task class, or the program a store of its own."""
    return Refuse(
        f"the store {name!r} has state, in changelog {checkpoint.stores[name].topic}, which no operator of a program has written; the program now has an "
        f"operator {name!r}, which would take it for its own.",
        f"Give the operator another name, so it begins empty, and, {_drop(name)}",
    )


def _new(checkpoint: Checkpoint, stores: Mapping[str, bool]) -> list[str]:
    return [name for name, logged in sorted(stores.items()) if logged and name not in checkpoint.stores]


def _drop(name: str) -> str:
    return f"to delete its state permanently, run `samzapy state drop JOB.yaml {name}`, which shows what it would do; then add `--execute`."


def dropped(name: str) -> str:
    """How the state of a program's store is deleted, and what goes with it."""
    return f"{_drop(name)} If it is a window, the records of its open windows are deleted, too."
