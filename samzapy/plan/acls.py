"""The permissions that a job needs in Kafka, and no more, from its job file's values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from samzapy.model.acls import ALTER, CREATE, DELETE, DESCRIBE_CONFIGS, GROUP, READ, TOPIC, TRANSACTIONAL_ID, WRITE, Access
from samzapy.model.names import Job

INTERNAL = (READ, WRITE, DESCRIBE_CONFIGS, CREATE)


def needed_access(
    job: Job,
    inputs: Iterable[str],
    outputs: Iterable[tuple[str, bool]],
    changelogs: Sequence[str],
    has_dead_letters: bool,
    is_bound: bool,
    between: Sequence[str] = (),
) -> list[Access]:
    """One entry a resource.

    Args:
        outputs: with whether `topics --create` may make them.
        between: topics between the stages of a program: records that were read there are deleted.
        is_bound: whether state is bound to the inputs' partitions; a job without that follows its inputs when they grow, so its own topics must be able to
            grow too.
    """
    topics: dict[str, tuple[set[str], list[str]]] = {}

    def want(topic: str, purpose: str, *operations: str) -> None:
        found = topics.setdefault(topic, (set(), []))
        found[0].update(operations)
        found[1].append(purpose)

    for topic in inputs:
        want(topic, "input", READ, DESCRIBE_CONFIGS)
    for topic, may_create in outputs:
        want(topic, "output", WRITE, DESCRIBE_CONFIGS, *((CREATE,) if may_create else ()))
    growing = () if is_bound else (ALTER,)
    for topic in changelogs:
        want(topic, "changelog", *INTERNAL, *growing)
    for topic in between:
        want(topic, "between stages", *INTERNAL, DELETE)
    want(job.checkpoint_topic, "checkpoints", *INTERNAL, *growing)
    want(job.coordinator_topic, "coordinator", *INTERNAL)
    if has_dead_letters:
        want(job.dead_letter_topic, "dead letters", *INTERNAL, *growing)
    order = (READ, WRITE, DESCRIBE_CONFIGS, CREATE, DELETE, ALTER)
    return [
        *(
            Access(TOPIC, topic, tuple(o for o in order if o in wanted), ", ".join(purposes))
            for topic, (wanted, purposes) in topics.items()
        ),
        Access(GROUP, job.group_id, (READ,), "positions, for Kafka's lag tools"),
        Access(TRANSACTIONAL_ID, f"{job}-", (WRITE,), "transactions of containers and coordinator", is_prefix=True),
    ]
