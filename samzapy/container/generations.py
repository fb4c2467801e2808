"""Opening the local store of a task: which generation is kept, which are set aside, when a new one is made.

`plan/local_store.decide` judges; this is the one place that carries it out, for a restore, a warm copy and `samzapy state` alike. A generation
that another process has open is never touched.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from samzapy.container.spec import StoreSpec
from samzapy.container.task_instance import Restored, TaskInstance
from samzapy.model.checkpoint import Checkpoint
from samzapy.model.stamp import StoreIdentity
from samzapy.plan.local_store import ChangelogFacts, Decision, Keep, decide, deletions_stay_s
from samzapy.plan.start_refusals import Refuse
from samzapy.ports import Claim, StoreDirectory, StoreEngine


@dataclass(frozen=True, slots=True)
class Opened:
    """A store that is ready to be filled.

    Attributes:
        is_kept: it was on this host; else it is new and empty.
        position: from where on its changelog is to be read.
        reason: why it was kept, or why none was.
        deletions_stay_s: for how many seconds all deletions that are to be read stay in the changelog.
        warning: what somebody should know about a store that was kept; "" if nothing.
    """

    engine: StoreEngine
    is_kept: bool
    position: int
    reason: str
    deletions_stay_s: float
    warning: str = ""


def open_store(
    directory: StoreDirectory,
    identity: StoreIdentity,
    checkpoint: Checkpoint | None,
    log: ChangelogFacts,
    *,
    now_ms: int,
    despite_locked: bool = False,
    is_ordered: bool = False,
    has_deletions_after: bool = False,
) -> Opened | Refuse | None:
    """Keep the best generation, or make a new one; set all others aside. If the decision is to refuse, all stay as they are.

    None: another process has one of them open, and nothing was done; `despite_locked`: go on with the rest. `is_ordered`, `has_deletions_after`: as in
    `decide`.
    """
    found = look_at_store(
        directory, identity, checkpoint, log,
        now_ms=now_ms, despite_locked=despite_locked, is_ordered=is_ordered, has_deletions_after=has_deletions_after,
    )  # fmt: skip
    if found is None:
        return None
    decision, claims = found
    if isinstance(decision, Refuse):
        close_all(claims)
        return decision
    kept = kept_of(decision, claims)
    _set_aside(directory, (claim for claim in claims if claim is not kept), decision.reason)
    engine = _ready(directory, kept.engine if kept is not None else None)
    warning = decision.warning if isinstance(decision, Keep) else ""
    mark = checkpoint.stores.get(identity.store) if checkpoint else None
    stay_s = deletions_stay_s(None if kept is None else kept.stamp, mark, log, now_ms, has_deletions_after)
    return Opened(engine, kept is not None, decision.position, decision.reason, stay_s, warning)


def open_empty(directory: StoreDirectory, reason: str) -> StoreEngine:
    """A new generation; all others are set aside for that reason."""
    _set_aside(directory, directory.claims(), reason)
    return _ready(directory, None)


def begin_empty(task: TaskInstance, spec: StoreSpec) -> None:
    """For a store without a changelog, at a start and after an abort: what it has was in no topic, and may be written again."""
    store = task.stores[spec.name]
    store.close()
    store.attach(open_empty(spec.open_directory(task.name), "a store without a changelog starts empty"))
    task.restored[spec.name] = Restored("empty", "no changelog: emptied at every start", 0, 0.0)


def look_at_store(
    directory: StoreDirectory,
    identity: StoreIdentity,
    checkpoint: Checkpoint | None,
    log: ChangelogFacts,
    *,
    now_ms: int,
    despite_locked: bool = False,
    is_ordered: bool = False,
    has_deletions_after: bool = False,
) -> tuple[Decision, list[Claim]] | None:
    """The decision about the generations, which are open; the caller closes them. Changes nothing. None: as in `open_store`."""
    claims = directory.claims()
    if not despite_locked and any(claim.locked for claim in claims):
        close_all(claims)
        return None
    return decide(claims, identity, checkpoint, log, now_ms, is_ordered, has_deletions_after), claims


def kept_of(decision: Decision, claims: Iterable[Claim]) -> Claim | None:
    """The generation that is to be kept."""
    return next((c for c in claims if isinstance(decision, Keep) and c.generation == decision.generation), None)


def close_all(claims: Iterable[Claim]) -> None:
    """Close generations that are not used."""
    for claim in claims:
        if claim.engine is not None:
            claim.engine.close()


def _set_aside(directory: StoreDirectory, claims: Iterable[Claim], reason: str) -> None:
    for claim in claims:
        if not claim.locked:
            directory.set_aside(claim, reason)


def _ready(directory: StoreDirectory, kept: StoreEngine | None) -> StoreEngine:
    """The engine that is kept, or a new one; generations that were set aside are removed."""
    engine = kept or directory.create()[1]
    try:
        directory.clean()
    except Exception:
        engine.close()  # else it would lock its generation against the next attempt
        raise
    return engine
