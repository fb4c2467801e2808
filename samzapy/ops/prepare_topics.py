"""Compares the topics that a job needs with those that exist.

Inputs and outputs are the user's: they must exist, `run` never creates them unless asked (`--create-topics`: outputs with `partitions`). Internal
topics are ours: created before any container starts; one that exists with settings under which state could be lost is refused with the command
that corrects it, never altered.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import replace

from samzapy.api.errors import ConfigurationError, SamzapyError, StateMismatch, TopicMisconfigured, TopicMissing
from samzapy.config.schema import Settings
from samzapy.model.job_model import TaskModel
from samzapy.model.offsets import TopicPartition
from samzapy.model.ownership import FirstRun, Ledger
from samzapy.ops.inspection import foreign_changelog
from samzapy.ops.made_again import refuse_to_make_again
from samzapy.ops.named_changelogs import refuse_strangers
from samzapy.ops.other_jobs import refuse_others
from samzapy.ops.transaction_timeout import refuse_too_long, try_init
from samzapy.plan.grown_topics import STATE_IS_LOST
from samzapy.plan.internal_topics import (
    COMPACT,
    DEAD_LETTERS,
    command_that_makes,
    expiring_letters,
    expiring_table,
    internal_topics,
    more_partitions,
    unused_partitions,
    what_is_wrong,
)
from samzapy.plan.lost_topics import coordinator_emptied, differs_from_first_run
from samzapy.ports import Admin, Clock, Log, TopicFacts, TopicSpec, no_leader
from samzapy.wiring.growing_topics import deciding_counts, growing
from samzapy.wiring.job_topics import JobTopics, job_of

LOG = logging.getLogger("samzapy")
OF_TABLES = {"cleanup.policy": COMPACT}
MAX_LARGEST = 100_000_000  # bytes: no producer of ours sends more in one record


def changelogs(settings: Settings) -> list[str]:
    """Changelog topics, in the order of the stores."""
    return list(JobTopics.of(settings).changelogs.values())


def internal_specs(settings: Settings, facts: Mapping[str, TopicFacts]) -> list[TopicSpec]:
    """The internal topics of the job as they must be, given its inputs. Raises as `tasks_of`."""
    largest = min(max((facts[i.topic].max_message_bytes for i in settings.inputs), default=0), MAX_LARGEST)
    names = JobTopics.of(settings)
    counts = names.counts({topic: f.partitions for topic, f in facts.items()})
    between = {topic: asked or counts[topic] for topic, asked in names.internal.items()}
    return internal_topics(names.job, len(tasks_of(settings, facts)), changelogs(settings), names.dead_letters is not None, largest, between)


def tasks_of(settings: Settings, facts: Mapping[str, TopicFacts]) -> dict[str, TaskModel]:
    """The job's tasks, from the partitions of its inputs. Raises ConfigurationError: unequal partition counts in a job with stores."""
    return JobTopics.of(settings).tasks({topic: f.partitions for topic, f in facts.items()})


def checked_topics(settings: Settings, log: Log, clock: Clock, made: Mapping[str, TopicFacts] | None = None) -> dict[str, TaskModel]:
    """Check the topics that are there, and create none; returns the job's tasks. `made`: as if these were there, too. Raises as `prepare_topics`."""
    with log.admin() as admin:
        refuse_too_long(settings, admin)
        return _checked(settings, log, admin, clock, made)[0]


def topics_to_make(settings: Settings, log: Log) -> dict[str, TopicFacts]:
    """The outputs that `create_topics` would create, as they will be."""
    with log.admin() as admin:
        return _to_make(settings, admin)


def prepare_topics(settings: Settings, log: Log, clock: Clock) -> dict[str, TaskModel]:
    """Check the user's topics, create and check the internal ones; returns the job's tasks.

    Raises:
        TopicMissing: inputs or outputs; all of them named. TopicMisconfigured: an internal topic. ConfigurationError: names collide, or are another job's;
            commit.timeout is longer than the brokers allow.
        NoLeader: partitions that cannot be read or written now.
        StateMismatch: inputs that decide where state lies have grown.
    """
    with log.admin() as admin:
        tasks, missing = _checked(settings, log, admin, clock)
        refuse_too_long(settings, admin)
        _warn_of_partitions(settings, admin)
        _warn_of_letters(settings, admin)
        _warn_of_tables(settings, admin)
        _warn_of_unused(settings, admin, len(tasks))
        _follow_growth(settings, admin, len(tasks))
        admin.create(missing)
        return tasks


def _warn_of_partitions(settings: Settings, admin: Admin) -> None:
    wanted = {o.topic: o.partitions for o in settings.outputs if o.partitions}
    for topic, facts in admin.topics(wanted).items():
        if other := other_partitions(wanted[topic], facts):
            LOG.warning("output %s has %s", topic, other)


def _warn_of_letters(settings: Settings, admin: Admin) -> None:
    letters = JobTopics.of(settings).dead_letters
    if letters is None:
        return
    for topic, facts in admin.topics([letters]).items():
        if why := expiring_letters(TopicSpec(topic, facts.partitions, DEAD_LETTERS), facts):
            LOG.warning("%s", why)


def _warn_of_tables(settings: Settings, admin: Admin) -> None:
    for topic, facts in admin.topics(read_each_time(settings)).items():
        if why := expiring_table(topic, facts):
            LOG.warning("%s", why)


def read_each_time(settings: Settings) -> list[str]:
    """The inputs that each start of the job reads again from their start, because no changelog has what they are read into."""
    if settings.app is not None:
        return [i.topic for i in settings.inputs if i.broadcast]
    has_changelogs = bool(settings.stores) and all(store.changelog is not False for store in settings.stores.values())
    return [i.topic for i in settings.inputs if i.bootstrap and not has_changelogs]


def _warn_of_unused(settings: Settings, admin: Admin, tasks: int) -> None:
    names = JobTopics.of(settings)
    specs = {spec.name: spec for spec in internal_topics(names.job, tasks, changelogs(settings))}
    for topic, facts in admin.topics(specs).items():
        if more_partitions(specs[topic], facts):
            LOG.warning("%s %s", topic, unused_partitions(specs[topic], facts))


def other_partitions(wanted: int | None, facts: TopicFacts) -> str:
    """What it means if an existing output has another number of partitions than the job file says; "" if it has not."""
    if wanted in (None, facts.partitions):
        return ""
    there = facts.partitions
    return f"{there} partitions, the job file says {wanted}: records go to those {there}; `partitions` applies only when samzapy creates the topic"


def what_run_refuses(settings: Settings, log: Log, ledger: Ledger, clock: Clock) -> SamzapyError | None:
    """Why a run started now would be refused because of its topics or its commit.timeout, here, by its coordinator, or by its containers because a
    changelog is another job's; None: it would not. Changes nothing."""
    try:
        refuse_to_make_again(settings, log, clock)
        with log.admin() as admin:
            tasks, _ = _checked(settings, log, admin, clock)
            checkpoints = admin.topics([job_of(settings).checkpoint_topic])
            if not refuse_too_long(settings, admin) and (refused := try_init(settings, log)) is not None:
                return refused
    except SamzapyError as error:
        return error
    if ledger.start > 0:
        return coordinator_emptied(job_of(settings), ledger.start)
    topic_id = next((facts.topic_id for facts in checkpoints.values()), "")
    inputs = ", ".join(sorted(i.topic for i in settings.inputs))
    now = FirstRun(topic_id, len(tasks) if JobTopics.of(settings).is_bound else 0)
    return differs_from_first_run(job_of(settings), inputs, ledger.first_run, now) or foreign_changelog(settings, log, clock)


def _to_make(settings: Settings, admin: Admin) -> dict[str, TopicFacts]:
    there = admin.topics([o.topic for o in settings.outputs])
    return {o.topic: TopicFacts(o.topic, "", o.partitions, 1, {}) for o in settings.outputs if o.partitions and o.topic not in there}


def _checked(
    settings: Settings, log: Log, admin: Admin, clock: Clock, made: Mapping[str, TopicFacts] | None = None, *, inputs_only: bool = False
) -> tuple[dict[str, TaskModel], list[TopicSpec]]:
    """The job's tasks, and the internal topics that are to be created. `made`: as if these were there, too; `inputs_only`: other outputs need not be.
    Raises as `prepare_topics`."""
    names = JobTopics.of(settings)
    users = [*names.inputs, *names.outputs]
    facts = {**(made or {}), **admin.topics([*names.outputs, *names.decide_tasks])}
    _refuse_missing(settings, facts, inputs_only)
    tasks = tasks_of(settings, facts)
    wanted = internal_specs(settings, facts)
    _refuse_collisions(users, wanted)
    refuse_others(settings, log, admin, clock)
    refuse_strangers(settings, log, admin, clock)
    there = admin.topics([s.name for s in wanted])
    _refuse_leaderless({**facts, **there}.values())
    grows = growing(settings, {**facts, **there}, len(tasks))
    usable = with_empty_rest(admin, wanted, there)
    checked = [s for s in wanted if s.name in there and s.name not in grows]
    wrong = [f"{s.name} {what}" for s in checked if (what := what_is_wrong(s, there[s.name], rest_is_empty=s.name in usable))]
    if wrong:
        raise TopicMisconfigured("; ".join(wrong) + ".", "samzapy never changes the settings of an existing topic: change them with Kafka's own tools.")
    return tasks, [s for s in wanted if s.name not in there]


def with_empty_rest(admin: Admin, wanted: Iterable[TopicSpec], there: Mapping[str, TopicFacts]) -> set[str]:
    """The topics that have more partitions than the job needs, to none of which anything was ever written."""
    rest = {s.name: [TopicPartition(s.name, p) for p in more_partitions(s, there[s.name])] for s in wanted if s.name in there and not there[s.name].leaderless}
    asked = [place for places in rest.values() for place in places]
    ends = admin.high_watermarks(asked) if asked else {}
    return {name for name, places in rest.items() if places and not any(ends[place] for place in places)}


def _refuse_leaderless(topics: Iterable[TopicFacts]) -> None:
    down = [TopicPartition(facts.name, p) for facts in topics for p in facts.leaderless]
    if down:
        raise no_leader(down)


def grown_tasks(settings: Settings, log: Log, running: int) -> dict[str, TaskModel]:
    """The tasks of a running job by its inputs' current partitions; if these have grown, the checkpoint topic is grown too. Where its state lies behind
    internal topics, there are no new tasks before the next run: containers know who writes these topics. The new partitions are then with the last task.
    `running`: how many tasks this run began with.

    Raises:
        StateMismatch: the inputs decide where state lies, so that the job cannot go on with other partitions. ConfigurationError: it can, once a
            topic of a broadcast stream has more.
    """
    names = JobTopics.of(settings)
    with log.admin() as admin:
        facts = admin.topics(names.decide_tasks)
        _refuse_missing(settings, facts, inputs_only=True)
        try:
            tasks = tasks_of(settings, facts)
        except ConfigurationError as error:  # not all of them have grown, or a topic of a broadcast stream has not
            if names.is_bound:
                raise StateMismatch(f"{error.message} When this run began, they had the same number.", STATE_IS_LOST) from error
            raise
        if names.has_stores and not names.is_bound:
            return _until_next_run(tasks, running)
        _follow_growth(settings, admin, len(tasks))
        return tasks


def _until_next_run(tasks: Mapping[str, TaskModel], running: int) -> dict[str, TaskModel]:
    """The first `running` tasks; the last of them is told with the partitions of those that are to come."""
    begun, new = list(tasks.values())[:running], list(tasks.values())[running:]
    extra = [p for task in new for p in task.inputs if p not in begun[-1].inputs]
    return {task.name: task for task in [*begun[:-1], replace(begun[-1], inputs=(*begun[-1].inputs, *extra))]}


def _follow_growth(settings: Settings, admin: Admin, tasks: int) -> None:
    """The job's own topics with one partition per task get as many as there are tasks now. Raises as `growing`."""
    names = JobTopics.of(settings)
    letters = [names.dead_letters] if names.dead_letters else []
    logs = names.changelogs.values() if not names.is_bound else []
    there = admin.topics([names.job.checkpoint_topic, *letters, *logs, *names.read])  # no others: with access control the job may not look at them
    for topic in growing(settings, there, tasks):
        counts = deciding_counts(names, there)
        widest = ", ".join(t for t, count in counts.items() if count == tasks)
        LOG.info("%s grows from %d to %d partitions, as many as %s", topic, there[topic].partitions, tasks, widest)
        admin.grow(topic, tasks)


def _refuse_missing(settings: Settings, facts: dict[str, TopicFacts], inputs_only: bool = False) -> None:
    inputs = [i.topic for i in settings.inputs if i.topic not in facts]
    outputs = [] if inputs_only else [o for o in settings.outputs if o.topic not in facts]
    missing_topics = [f"input topic {t}" for t in inputs] + [f"output topic {o.topic}" for o in outputs]
    if not missing_topics:
        return
    by_hand = made_by_hand(settings, *inputs, *(o.topic for o in outputs))
    remedy = f"Create them first: {by_hand} `run` creates no inputs, and creates outputs only with `--create-topics`."
    if not inputs and all(o.partitions for o in outputs):
        remedy = "`samzapy topics JOB.yaml --create` creates the outputs that have `partitions`; so does `--create-topics` of `run`."
    elif outputs:
        remedy += f" {UNASKED}"
    raise TopicMissing(f"there is no {', no '.join(missing_topics)}.", remedy)


UNASKED = (
    "Or give the output `partitions: N` in the job file (in a program `.to(TOPIC, partitions=N)`): then `--create-topics` of `run` creates it."
)


def made_by_hand(settings: Settings, *topics: str) -> str:
    """The commands that create these topics; the number of partitions is an example."""
    client = settings.kafka_client
    if str(client.get("security.protocol", "plaintext")).lower() != "plaintext":
        return f"{', '.join(topics)}, with your cluster's tools."  # `samzapy send` has no credentials
    servers, tables = str(client["bootstrap.servers"]), _tables(settings)
    asked = {o.topic: o.partitions for o in settings.outputs if o.partitions}
    commands = [f"`{command_that_makes(topic, servers, asked.get(topic) or 4, compact=topic in tables)}`" for topic in topics]
    return " and ".join(commands) + ("." if set(topics) <= asked.keys() else ", or with more partitions.")


def _tables(settings: Settings) -> set[str]:
    """The topics that a program reads into tables."""
    return {one.topic for one in settings.inputs if settings.app is not None and (one.bootstrap or one.broadcast)}


def _refuse_collisions(users: list[str], wanted: list[TopicSpec]) -> None:
    both = sorted(set(users) & {s.name for s in wanted})
    if both:
        raise ConfigurationError(
            f"{', '.join(both)}: used as an input or output, and as one of the job's own topics.", "Rename one of them."
        )


def create_topics(settings: Settings, log: Log, clock: Clock) -> list[str]:
    """Create outputs that have `partitions`, and internal topics; returns the names created.

    Raises:
        TopicMissing: an input is missing, so the number of tasks is not known. StateRefused: as `refuse_to_make_again`. Others as `prepare_topics`;
            then none is created.
    """
    refuse_to_make_again(settings, log, clock)
    with log.admin() as admin:
        made = _to_make(settings, admin)
        existing = {**made, **admin.topics([i.topic for i in settings.inputs])}
        if missing := [i.topic for i in settings.inputs if i.topic not in existing]:
            raise TopicMissing(
                f"there is no input topic {', '.join(missing)}.",
                f"Create the inputs first, their partitions decide the number of tasks: {made_by_hand(settings, *missing)}",
            )
        _, internal = _checked(settings, log, admin, clock, made, inputs_only=True)
        tables = _tables(settings)
        new = [*(TopicSpec(name, facts.partitions, dict(OF_TABLES) if name in tables else {}) for name, facts in made.items()), *internal]
        admin.create(new)
        return [s.name for s in new]
