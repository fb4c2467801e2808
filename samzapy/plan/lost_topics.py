"""What is told of a topic of the job that was lost, or lost its records, and of the change from the job's first run on that shows it.

A task without a checkpoint starts from the beginning of its inputs. That is right once. A checkpoint topic that was deleted and made again
looks the same to each task, unless its changelogs hold state that contradicts; so does a task that came to be because the inputs have grown,
in a job whose keys' state lies with other tasks. The coordinator knows better: it keeps what it found at the job's first run.
"""

from __future__ import annotations

from collections.abc import Iterable

from samzapy.api.errors import SamzapyError, StateRefused
from samzapy.model.names import Job, job_of_coordinator_topic
from samzapy.model.ownership import FirstRun
from samzapy.plan.grown_topics import grown_inputs

MADE_AGAIN = "deleted and created again"


def _ways_out(job: Job) -> str:
    return (
        "1. Set where every input continues: `samzapy checkpoint set JOB.yaml --to-latest --keep-state`, which skips the records that were not "
        "read yet, and shows what it would do; then add `--execute`. After that, set single partitions with --topic, --partition and --to-offset: Kafka's own "
        f"tools show how far the job had read (CURRENT-OFFSET of consumer group {job.group_id}). 2. Build the state again: `samzapy checkpoint set JOB.yaml "
        "--to-earliest --reset-state`. 3. Begin with empty state: `samzapy reset JOB.yaml`."
    )


def lost_checkpoints(job: Job, way_out: str) -> StateRefused:
    """The error if the checkpoint topic is not that of the job's first run."""
    return StateRefused(
        f"checkpoint topic {job.checkpoint_topic} was deleted and created again after the job's first run: its offsets are lost, and reading "
        "the inputs from their start would process old records again.",
        way_out,
    )


def checkpoints_gone(job: Job) -> StateRefused:
    """The error if the checkpoint topic of a job that has run before does not exist."""
    return StateRefused(
        f"checkpoint topic {job.checkpoint_topic} was deleted after the job's first run: its offsets are lost. samzapy does not create it again, "
        "because the job would process old records again.",
        f"Do one of these. {_ways_out(job)}",
    )


def coordinator_emptied(job: Job, start: int) -> StateRefused:
    """The error if records were deleted from the coordinator topic: nothing of samzapy does that, and compaction does not move the log start."""
    return StateRefused(
        f"coordinator topic {job.coordinator_topic} starts at offset {start}: records before it were deleted. A `checkpoint set` that no "
        "start has carried out yet may be lost, and so may the record of the job's first run.",
        "Run `samzapy reset JOB.yaml --coordinator --execute`, which deletes that topic alone: state and checkpoints stay, and the next run continues "
        "from them. Then repeat a `checkpoint set` that no start has carried out yet, with --reset-state if it had that.",
    )


def changelog_gone(topic: str, store: str, checkpoint: str) -> StateRefused:
    """The error if a changelog that a checkpoint names does not exist."""
    return StateRefused(
        f"changelog topic {topic} of store {store!r} was deleted, but the checkpoint in {checkpoint} names it. samzapy does not create it "
        "again, because the store would start empty.",
        "Bring the topic back with its records, or run `samzapy reset JOB.yaml` to build the state again from the inputs.",
    )


def internal_gone(topic: str, checkpoint: str) -> StateRefused:
    """The error if a topic between two stages that a checkpoint names does not exist."""
    return StateRefused(
        f"internal topic {topic} was deleted, but the checkpoint in {checkpoint} names it: records on their way to the following stage are lost with it, "
        "so samzapy does not create it again.",
        "Bring the topic back with its records, or run `samzapy reset JOB.yaml` to begin with empty state.",
    )


def lost_while_running(topics: Iterable[str], what: str, more: str = "") -> StateRefused:
    """The error if topics of a running job were deleted, or deleted and made again. `more`: a sentence on what was committed."""
    gone = sorted(topics)
    remedy = (
        "Restore the topic with its records. For an output or the dead-letter topic, `samzapy topics JOB.yaml --create` is enough: the job then goes on after its "
        "last commit, and only the records that were in that topic are gone. For an input, set its `on_out_of_range` to `earliest` or `latest` in the job "
        "file, and start the job again once the topic exists: it goes on with the new topic. Otherwise `samzapy reset JOB.yaml` begins with empty state, once "
        "the inputs and outputs exist."
    )
    if all(job_of_coordinator_topic(topic) is not None for topic in gone):
        remedy = (
            "Start the job again: `samzapy run JOB.yaml` makes this topic, with its settings; state and checkpoints are in other topics. If somebody has made "
            "it by then, first delete it: `samzapy reset JOB.yaml --coordinator --execute`."
        )
    return StateRefused(f"{', '.join(gone)}: {what} while the job ran; nothing more is committed.{' ' if more else ''}{more}", remedy)


def differs_from_first_run(job: Job, inputs: str, first_run: FirstRun | None, now: FirstRun) -> SamzapyError | None:
    """Why the job cannot go on with the topics that exist now; None: it can."""
    if first_run is None:
        return None
    if first_run.checkpoint_topic_id != now.checkpoint_topic_id:
        return lost_checkpoints(job, f"Bring the old topic back. If that is not possible, do one of these. {_ways_out(job)}")
    if first_run.tasks and now.tasks and first_run.tasks != now.tasks:
        return grown_inputs(inputs, now.tasks, first_run.tasks)
    return None
