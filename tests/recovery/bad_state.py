"""Bad state for a job that has run: what is done to its topics and directories before it starts again, on the in-memory log.

Each function makes an act: it takes a `Ran`, spoils something, starts the job again, and returns what was said: the reason of the restore
where the job goes on (its state is then compared with the true one), or the error that is raised.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rocksdict import Options, Rdict

from samzapy import OutgoingMessageEnvelope, StreamTask, SystemStream
from samzapy.api.errors import InDoubt
from samzapy.model.barrier import BARRIER_KEY, Barrier
from samzapy.model.checkpoint import CHECKPOINT_KEY, Checkpoint, StoreMark
from samzapy.model.offsets import TopicPartition
from samzapy.model.ownership import container_key
from samzapy.model.stamp import StoreStamp
from samzapy.ports import TopicSpec
from samzapy.store.rocks import STAMP_KEY, RocksEngine
from tests.unit.container.bench import JOB, Bench

TASK = "Partition 0"
CHANGELOG = JOB.changelog_topic("s")
COMPACT = {"cleanup.policy": "compact"}
DAY_MS = 86_400_000
KEYS = 3000  # enough for several blocks in an SST file: the stamp lies in the first
TRUTH = {f"k{i}": i for i in range(KEYS)}


class Summing(StreamTask):
    """Sum per key in a store, every update sent."""

    def init(self, context):
        self.sums = context.get_store("s")

    def process(self, envelope, collector, coordinator):
        total = (self.sums.get(envelope.key) or 0) + envelope.message
        self.sums.put(envelope.key, total)
        collector.send(OutgoingMessageEnvelope(SystemStream("kafka", "out"), key=envelope.key, message=total, partition=0))


class Ran:
    """A job that counted TRUTH, stopped in order, and has its state in one generation directory.

    Attributes:
        checkpoint: its last one.
        stamp: of the local store.
    """

    def __init__(self, folder: Path) -> None:
        self.bench = Bench(folder, Summing, lease_s=0.1)
        self.bench.feed(*TRUTH.items())
        container = self.bench.start()
        self.bench.drain(container)
        self.checkpoint = container.tasks[TASK].committed
        stamp = container.tasks[TASK].stores["s"].stamp
        assert stamp is not None
        self.stamp = stamp
        container.stop()
        container.close()
        [self.generation] = self.root.iterdir()

    @property
    def root(self) -> Path:
        return self.bench.state / "c" / "h" / str(JOB) / TASK / "s"

    def start(self) -> str:
        """Starts again; the state must be the true one. Returns why it was restored as it was."""
        container = self.bench.start()
        try:
            assert dict(container.tasks[TASK].stores["s"].all()) == TRUTH
            restored = container.tasks[TASK].restored["s"]
            return f"{restored.source}: {restored.reason}"
        finally:
            container.close()

    def write(self, topic: str, key: bytes, value: bytes | None) -> None:
        self.bench.log.plain_producer("stranger").send(topic, value, key, 0)

    def forget_local(self) -> None:
        """The host with the local store is gone."""
        self.bench.state = self.bench.state / "another host"

    def replace_topic(self, topic: str) -> None:
        self.bench.cluster.delete(topic)
        self.bench.cluster.create(TopicSpec(topic, 1, COMPACT))


Act = Callable[[Ran], str]


def stamped(**changes: Any) -> Act:
    """The local store claims something else than it is."""

    def act(ran: Ran) -> str:
        changed = {k: v(ran.stamp) if callable(v) else v for k, v in changes.items()}
        whose = {k: changed.pop(k) for k in list(changed) if hasattr(ran.stamp.identity, k)}
        return _restamped(ran, replace(ran.stamp, identity=replace(ran.stamp.identity, **whose), **changed).to_bytes())

    return act


def stamp_of(data: bytes) -> Act:
    """The local store's stamp is none."""
    return lambda ran: _restamped(ran, data)


def _restamped(ran: Ran, data: bytes) -> str:
    database = Rdict(str(ran.generation), Options(raw_mode=True))
    database[STAMP_KEY] = data
    database.close()
    return ran.start()


def older(days: float) -> Callable[[StoreStamp], int]:
    return lambda stamp: stamp.as_of_ms - int(days * DAY_MS)


def behind(stamp: StoreStamp) -> int:
    return 2


def damaged(kind: str, how: str) -> Act:
    """A file of the local store is cut in half, filled with something else, gone, or a directory by now."""

    def act(ran: Ran) -> str:
        files = sorted(ran.generation.glob(kind))
        assert files, f"no {kind} in {sorted(p.name for p in ran.generation.iterdir())}"
        for file in files:
            data = file.read_bytes()
            if how in ("gone", "a directory"):
                file.unlink()
                if how == "a directory":
                    file.mkdir()
            else:
                file.write_bytes(data[: len(data) // 2] if how == "cut" else b"\xa5" * len(data))
        return ran.start()

    return act


def damaged_at_random(seed: int, times: int) -> Act:
    """So often, each time the store as it was: bytes of one of its files are turned, or it ends earlier. Each time the state is the true one."""

    def act(ran: Ran) -> str:
        chance, whole = random.Random(seed), ran.root.with_name("whole")
        shutil.copytree(ran.root, whole)
        sources = set()
        for _ in range(times):
            shutil.rmtree(ran.root)
            shutil.copytree(whole, ran.root)
            file = chance.choice(sorted(p for p in ran.generation.iterdir() if p.name.endswith(".sst") or p.name.startswith(("MANIFEST", "CURRENT"))))
            data = bytearray(file.read_bytes())
            at = chance.randrange(len(data))
            data[at : at + chance.choice((1, 64))] = b"" if chance.random() < 0.2 else bytes([data[at] ^ 1 << chance.randrange(8)])
            file.write_bytes(data)
            try:
                said = ran.start()
            except InDoubt:  # found by a later read: the runner starts over
                said = ran.start()
            sources.add(said.partition(":")[0])
        return f"{times} times from {sorted(sources)}"

    return act


def one_byte_turned(ran: Ran) -> str:
    """In the middle of the data: opening finds nothing wrong, reading does. The container then starts over, as its runner would."""
    file = max(ran.generation.glob("*.sst"), key=lambda f: f.stat().st_size)
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    with pytest.raises(InDoubt, match="damaged"):
        ran.start()
    return f"in doubt, then {ran.start()}"


def linked(ran: Ran) -> str:
    """The generation is a link to where somebody else may write."""
    elsewhere = ran.bench.state.with_name("elsewhere")
    ran.generation.rename(elsewhere)
    ran.generation.symlink_to(elsewhere)
    said = ran.start()
    assert elsewhere.is_dir()
    assert ran.generation.is_symlink()
    return said


def in_use(ran: Ran) -> str:
    """Another process, as RocksDB sees it, has the store open."""
    engine = RocksEngine(ran.generation)
    try:
        return ran.start()
    finally:
        engine.close()


def set_aside(ran: Ran) -> str:
    (ran.generation / "SET-ASIDE").write_text("a test said so\n")
    said = ran.start()
    assert not ran.generation.exists()
    return said


def a_file_in_its_place(ran: Ran) -> str:
    """Where the store's directory should be there is a file."""
    ran.root.rename(ran.root.with_name("moved"))
    ran.root.write_text("in the way")
    return ran.start()


# -- checkpoints -----------------------------------------------------------------------------------------------------------------------


def checkpoint_of(data: bytes | None) -> Act:
    """The newest checkpoint is these bytes."""

    def act(ran: Ran) -> str:
        ran.write(JOB.checkpoint_topic, CHECKPOINT_KEY, data)
        return ran.start()

    return act


def checkpoint_with(change: Callable[[Checkpoint], Checkpoint]) -> Act:
    """The newest checkpoint is a sound one that says something else."""
    return lambda ran: checkpoint_of(change(ran.checkpoint).to_bytes())(ran)


def flipped(ran: Ran) -> str:
    """One bit of a number in the checkpoint is another: still JSON, no longer what was written."""
    data = ran.checkpoint.to_bytes()
    at = data.index(b'"next_offset":') + len(b'"next_offset":')
    return checkpoint_of(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])(ran)


def other_serdes(ran: Ran) -> str:
    """The state was written with another serde than the job file names now."""
    subject = "store 's' value serde"
    ran.bench.adjust = lambda spec: replace(spec, fingerprint={subject: "integer"})
    return checkpoint_with(lambda c: replace(c, fingerprint={subject: "json"}))(ran)


def marked(**changes: Any) -> Callable[[Checkpoint], Checkpoint]:
    def change(checkpoint: Checkpoint) -> Checkpoint:
        mark: StoreMark = checkpoint.stores["s"]
        return replace(checkpoint, stores={"s": replace(mark, **changes)})

    return change


def lost_checkpoints(ran: Ran) -> str:
    ran.replace_topic(JOB.checkpoint_topic)
    return ran.start()


# -- topics ----------------------------------------------------------------------------------------------------------------------------


def truncated(keeps_local: bool) -> Act:
    """Somebody deleted the beginning of the changelog."""

    def act(ran: Ran) -> str:
        ran.bench.cluster.delete_records(TopicPartition(CHANGELOG, 0), 50)
        if not keeps_local:
            ran.forget_local()
        return ran.start()

    return act


def replaced_changelog(ran: Ran) -> str:
    ran.replace_topic(CHANGELOG)
    return ran.start()


def written_to(topic: str, key: bytes, value: bytes | None) -> Act:
    """A stranger writes into an internal topic."""

    def act(ran: Ran) -> str:
        ran.write(topic, key, value)
        return ran.start()

    return act


def barrier(**changes: Any) -> bytes:
    return replace(Barrier(JOB.name, JOB.id, TASK, "s", 1, "i1", "n"), **changes).to_bytes()


def foreign_barrier(ran: Ran) -> str:
    return written_to(CHANGELOG, BARRIER_KEY, barrier(job="other"))(ran)


def shared_before_the_first_start(folder: Path) -> str:
    """Two jobs name one changelog, and the other was first."""
    bench = Bench(folder, Summing)
    bench.log.plain_producer("other").send(CHANGELOG, barrier(job="other", task="Partition 0"), BARRIER_KEY, 0)
    bench.start()
    return "it started"


def keyless(ran: Ran) -> str:
    """A record without a key, from when the topic was not compacted."""
    place = ran.bench.cluster.partition(TopicPartition(CHANGELOG, 0))
    place.append(1_000_000, 0, 0, None, b"value", 1, None, transactional=False)
    return ran.start()


def coordinator_says(value: bytes) -> Act:
    """The record that names the container is another than samzapy writes."""

    def act(ran: Ran) -> str:
        container = ran.bench.start()
        container.drop_all()
        try:
            ran.write(JOB.coordinator_topic, container_key(0), value)
            container.own()
        finally:
            container.close()
        return "it went on"

    return act


def input_made_again(ran: Ran) -> str:
    ran.bench.cluster.delete("in")
    ran.bench.cluster.create(TopicSpec("in", 1))
    return ran.start()


def input_removed(policy: str) -> Act:
    """Records that were not read yet are gone."""

    def act(ran: Ran) -> str:
        ran.bench.feed(*[("late", 1)] * 10)
        ran.bench.cluster.delete_records(TopicPartition("in", 0), KEYS + 5)
        ran.bench.input_settings = {"in": {"on_out_of_range": policy}}
        return ran.start()

    return act


def input_rewound(policy: str) -> Act:
    """The checkpoint is after the input's end: the input was restored from an older copy under the same id."""

    def act(ran: Ran) -> str:
        ran.bench.input_settings = {"in": {"on_out_of_range": policy}}
        mark = ran.checkpoint.inputs["in[0]"]
        changed = replace(ran.checkpoint, inputs={"in[0]": replace(mark, next_offset=mark.next_offset + 1000)})
        return checkpoint_of(changed.to_bytes())(ran)

    return act


def deep(opening: str = "[", levels: int = 50_000) -> bytes:
    return (opening * levels).encode()
