"""What `init`, `chaos`, `state drop` and `checkpoint forget` print with `--json`; see json_forms."""

from __future__ import annotations

from typing_extensions import TypedDict


class Dropped(TypedDict):
    """What `state drop` forgot, or without --execute (`executed`: false) would forget. `topics_kept`: of that name, but not those that checkpoints name."""

    store: str
    executed: bool
    tasks: list[str]
    topics: list[str]
    topics_kept: list[str]
    folders: list[str]


class ForgottenInput(TypedDict):
    """The tasks whose offsets in the topic were forgotten, or without --execute would be."""

    topic: str
    executed: bool
    tasks: list[str]


class Begun(TypedDict):
    """What `init` wrote."""

    directory: str
    files: list[str]


class Strike(TypedDict):
    """A fault. Seconds since the run with faults began; `whole_again_s`: how long until the job was whole again; null: it was not."""

    at_s: float
    fault: str
    target: str
    whole_again_s: float | None
    note: str


class Difference(TypedDict):
    """What differs from the run without faults in a topic or store, how often, and the first time in words."""

    where: str
    kind: str
    count: int
    first: str


class ChaosResult(TypedDict):
    """`result`: CLEAN, DIFFERS, or INVALID: the comparison says nothing, since too little was hit, or since two runs without faults differ as well."""

    result: str
    why: str
    seed: int
    strikes: list[Strike]
    differences: list[Difference]
