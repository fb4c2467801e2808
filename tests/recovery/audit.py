"""No two live owners of a task: proved after a run from what its checkpoint and coordinator topics said while it ran.

`audit` is a pure function of what `tests.recovery.observer` saw.

Within a partition the log's order is the truth: there an owner that comes back after its successor is seen with certainty, because each
owner begins with a barrier of its own. Across topics there are only the times at which records were made, by clocks of one machine (else
give `skew_ms`). They suffice for this: a container hears of a record that names it before it makes a checkpoint under it, and the coordinator
makes the record that names a successor only after the broker has fenced the predecessor. The record that *ends* an incarnation is made before
that fence, so an owner that still runs may commit in between, and rightly so: `fence_ms` is how long that may take.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from samzapy.model.barrier import BARRIER_KEY, Barrier, barrier_from_bytes
from samzapy.model.checkpoint import CHECKPOINT_KEY, Checkpoint, checkpoint_from_bytes
from samzapy.model.ownership import LEASE_KEY, ContainerRecord, LeaseRecord, Ledger

FENCE_MS = 2000


@dataclass(frozen=True, slots=True)
class Seen:
    """Where and when a record was: `made_ms` when its producer made it, `seen_ms` when it was committed and visible to the observer."""

    partition: int
    offset: int
    made_ms: int
    seen_ms: int


@dataclass(frozen=True, slots=True)
class Committed:
    at: Seen
    checkpoint: Checkpoint


@dataclass(frozen=True, slots=True)
class Began:
    """An owner's barrier in a task's checkpoint partition."""

    at: Seen
    barrier: Barrier


@dataclass(frozen=True, slots=True)
class Named:
    """A container's record in the coordinator topic: an incarnation with its tasks, or nobody (incarnation "" or no record at all)."""

    at: Seen
    container: int
    record: ContainerRecord | None

    @property
    def incarnation(self) -> str:
        return self.record.incarnation if self.record else ""

    def lists(self, task: str) -> bool:
        return self.record is not None and bool(self.record.incarnation) and task in self.record.tasks


@dataclass(frozen=True, slots=True)
class Leased:
    at: Seen
    lease: LeaseRecord


Event = Committed | Began | Named | Leased


def event_of(key: bytes | None, value: bytes | None, at: Seen) -> Event | None:
    """A record of either topic as an event; None for what the audit does not look at.

    Raises:
        UnreadableCheckpoint, UnreadableRecord, ValueError: damaged.
    """
    if key == CHECKPOINT_KEY:
        return None if value is None else Committed(at, checkpoint_from_bytes(value))
    if key == BARRIER_KEY:
        return Began(at, barrier_from_bytes(value))
    kind, _, name = (key or b"").decode("utf-8", "replace").partition("/")
    if kind != "container" and key != LEASE_KEY:
        return None
    ledger = Ledger()
    ledger.apply(key or b"", value)
    if kind == "container":
        return Named(at, int(name), ledger.containers.get(int(name)))
    return Leased(at, ledger.lease) if ledger.lease is not None else None


# -- the audit -----------------------------------------------------------------------------------------------------------------------


def audit(events: Iterable[Event], skew_ms: int = 0, fence_ms: int = FENCE_MS, from_start: bool = True) -> list[str]:
    """The problems, one sentence each, in the order of the log; none: at no time had a task two live owners.

    Args:
        skew_ms: how far the clocks of the machines may be apart.
        fence_ms: how long after the record that ends an incarnation its fence at the broker may take.
        from_start: the topics were seen from the job's first start, so that sequences begin with 0.
    """
    of_tasks: dict[int, list[Committed | Began]] = {}
    names: list[Named] = []
    leases: list[Leased] = []
    for event in events:
        if isinstance(event, Named):
            names.append(event)
        elif isinstance(event, Leased):
            leases.append(event)
        else:
            of_tasks.setdefault(event.at.partition, []).append(event)
    names.sort(key=lambda e: e.at.offset)
    ownership = _Ownership(names, skew_ms, fence_ms)
    problems = [*_leases(sorted(leases, key=lambda e: e.at.offset)), *_names(names)]
    for partition in sorted(of_tasks):
        ordered = sorted(of_tasks[partition], key=lambda e: e.at.offset)
        problems += _sequences([e for e in ordered if isinstance(e, Committed)], from_start)
        problems += _owners(ordered)
        problems += [p for e in ordered if (p := ownership.problem(e))]
    return problems


def _leases(leases: Sequence[Leased]) -> list[str]:
    """A coordinator that was replaced writes nothing more."""
    problems, before, past = [], "", set[str]()
    for event in leases:
        run = event.lease.run_id
        if run != before:
            if run in past:
                problems.append(f"coordinator[0]@{event.at.offset}: run {run} renews its lease after run {before} had taken over")
            past.add(before)
            before = run
    return problems


def _names(names: Sequence[Named]) -> list[str]:
    """The coordinator topic alone: epochs, incarnations that come back, a task that two containers have after a transaction."""
    problems: list[str] = []
    epoch = 0
    by_epoch: dict[int, tuple[int, str]] = {}
    live: dict[int, Named] = {}
    past: set[str] = set()
    for together in _transactions(names):
        for event in together:
            place, record = _in_topic(event), event.record
            previous = live.pop(event.container, None)
            if previous is not None and previous.incarnation != event.incarnation:
                past.add(previous.incarnation)
            if record is None:
                continue
            if record.epoch < epoch:
                problems.append(f"{place}: epoch {record.epoch} of container {event.container} after epoch {epoch}")
            epoch = max(epoch, record.epoch)
            if not record.incarnation:
                continue
            if by_epoch.setdefault(record.epoch, (event.container, record.incarnation)) != (event.container, record.incarnation):
                problems.append(f"{place}: epoch {record.epoch} names {record.incarnation}, and {by_epoch[record.epoch][1]} before")
            if record.incarnation in past:
                problems.append(
                    f"{place}: incarnation {record.incarnation} of container {event.container} is named again after it was ended"
                )
            live[event.container] = event
        problems += _given_twice(together, live)
    return problems


def _given_twice(together: Sequence[Named], live: Mapping[int, Named]) -> Iterable[str]:
    """Tasks that one of these records gives to a container while another one has them, by what is live after all of them."""
    for event in together:
        if live.get(event.container) is not event or event.record is None:
            continue
        for other in live.values():
            if other.record is not None and other.at.offset < event.at.offset:
                for task in sorted({*event.record.tasks} & {*other.record.tasks}):
                    yield (
                        f"{_in_topic(event)}: {task} is given to container {event.container} ({event.incarnation}) while container"
                        f" {other.container} ({other.incarnation}) has it"
                    )


def _transactions(names: Sequence[Named]) -> list[list[Named]]:
    """Records that were committed together: between those of two transactions there is at least the offset of a marker."""
    groups: list[list[Named]] = []
    for event in names:
        if groups and event.at.offset == groups[-1][-1].at.offset + 1:
            groups[-1].append(event)
        else:
            groups.append([event])
    return groups


def _in_topic(event: Named) -> str:
    return f"coordinator[0]@{event.at.offset}"


def _sequences(commits: Sequence[Committed], from_start: bool) -> list[str]:
    """A task's checkpoints follow one another by one, and their positions never go back."""
    problems = []
    before: Checkpoint | None = None
    for event in commits:
        now, place = event.checkpoint, _place(event)
        expected = 0 if before is None else before.sequence + 1
        if now.sequence != expected and (before is not None or from_start):
            problems.append(f"{place}: checkpoint {now.sequence} of {now.task}, where {expected} is expected")
        if before is not None and now.task != before.task:
            problems.append(f"{place}: a checkpoint of {now.task} in the partition of {before.task}")
        if before is not None and now.startpoint_id == before.startpoint_id:
            back = [p for p, mark in before.inputs.items() if p in now.inputs and now.inputs[p].next_offset < mark.next_offset]
            problems += [f"{place}: {now.task} goes back in {p}" for p in back]
        before = now
    return problems


def _owners(events: Sequence[Committed | Began]) -> list[str]:
    """In the order of one task's partition: epochs never fall, and an owner that was followed by another never comes back."""
    problems = []
    epoch, current = 0, (0, "")
    past: dict[tuple[int, str], str] = {}
    for event in events:
        owner, task, what = _claim(event)
        if owner[0] < epoch:
            problems.append(f"{_place(event)}: {what} of {task} with epoch {owner[0]} after epoch {epoch}")
        epoch = max(epoch, owner[0])
        if owner != current:
            if owner in past:
                problems.append(f"{_place(event)}: {what} of {task} by {_who(owner)}, which {past[owner]} had followed")
            past[current] = _who(owner)
            current = owner
    return problems


class _Ownership:
    """What the coordinator topic granted to whom, and until when."""

    def __init__(self, names: Sequence[Named], skew_ms: int, fence_ms: int) -> None:
        self._names, self._skew_ms, self._fence_ms = names, skew_ms, fence_ms
        self._index = {(n.record.epoch, n.incarnation): i for i, n in enumerate(names) if n.record is not None}
        self._ends: dict[tuple[int, str], tuple[Named | None, Named | None]] = {}

    def problem(self, event: Committed | Began) -> str:
        """Whether this very owner had been named for this task, and not been ended; "" if it had."""
        owner, task, what = _claim(event)
        said = f"{_place(event)}: {what} of {task} by {_who(owner)}"
        index = self._index.get(owner)
        if index is None:
            return f"{said}, which the coordinator topic never named"
        grant = self._names[index]
        if isinstance(event, Committed) and event.checkpoint.container != grant.container:
            return f"{said} in container {event.checkpoint.container}, which was named for container {grant.container}"
        if not grant.lists(task):
            return f"{said}, whose record (coordinator[0]@{grant.at.offset}) does not list that task"
        early_ms = grant.at.made_ms - event.at.made_ms - self._skew_ms
        if early_ms > 0:
            return f"{said}, {early_ms} ms before it was named (coordinator[0]@{grant.at.offset})"
        successor, end = self._until(index, task)
        if successor is not None and (late_ms := self._late(event, successor)) > 0:
            return f"{said}, {late_ms} ms after {successor.incarnation} was named for it (coordinator[0]@{successor.at.offset})"
        if end is not None and (late_ms := self._late(event, end)) > self._fence_ms:
            return f"{said}, {late_ms} ms after that was ended (coordinator[0]@{end.at.offset})"
        return ""

    def _late(self, event: Committed | Began, limit: Named) -> int:
        return event.at.made_ms - limit.at.made_ms - self._skew_ms

    def _until(self, index: int, task: str) -> tuple[Named | None, Named | None]:
        """The first later records that name a successor for the task, and that end the grant of record `index`."""
        if (index, task) not in self._ends:
            grant, later = self._names[index], self._names[index + 1 :]
            successor = (n for n in later if n.incarnation != grant.incarnation and n.lists(task))
            end = (n for n in later if n.container == grant.container and not (n.incarnation == grant.incarnation and n.lists(task)))
            self._ends[index, task] = next(successor, None), next(end, None)
        return self._ends[index, task]


def _claim(event: Committed | Began) -> tuple[tuple[int, str], str, str]:
    """((epoch, incarnation), task, what it is)."""
    if isinstance(event, Committed):
        c = event.checkpoint
        return (c.epoch, c.incarnation), c.task, f"checkpoint {c.sequence}"
    return (event.barrier.epoch, event.barrier.incarnation), event.barrier.task, "the barrier"


def _who(owner: tuple[int, str]) -> str:
    return f"incarnation {owner[1]} (epoch {owner[0]})"


def _place(event: Committed | Began) -> str:
    return f"checkpoint[{event.at.partition}]@{event.at.offset}"


def _is_start(event: Event) -> bool:
    """Not a barrier that is sent ahead of a commit (container/early_partitions.py): that one has no nonce."""
    return isinstance(event, Began) and bool(event.barrier.nonce)


def summary(events: Iterable[Event]) -> str:
    """How much there was to audit: a run without changes of owners proves nothing."""
    seen = list(events)
    commits = [e for e in seen if isinstance(e, Committed)]
    runs = {e.lease.run_id for e in seen if isinstance(e, Leased)}
    incarnations = {e.incarnation for e in seen if isinstance(e, Named) and e.incarnation}
    return (
        f"{len(commits)} checkpoints of {len({e.checkpoint.task for e in commits})} tasks, {sum(map(_is_start, seen))} starts of"
        f" tasks, {len(incarnations)} incarnations in {len(runs)} runs"
    )
