"""A program drawn at random as a job on a real broker, in real processes, and records drawn at random for it."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path

from samzapy.model.offsets import TopicPartition
from tests import random_programs
from tests.broker import create_topic, ends, produce, read_all
from tests.integration.job import Job
from tests.random_programs import DELAY, drawn, key_of

KEYS, PARTITIONS = 12, 3


class RandomJob(Job):
    """Reads `<name>-in`; each output is `<name>-…`. What it is sent is drawn by its name."""

    def __init__(self, servers: str, folder: Path, name: str, seed: int, *, partitions: int = PARTITIONS, guarantee: str = "exactly_once") -> None:
        super().__init__(servers, folder, name, partitions)
        self.program, self.guarantee = drawn(seed), guarantee
        for topic in self.program.topics:
            create_topic(servers, f"{name}-{topic}", partitions, retention_ms=-1)
        shutil.copy(random_programs.__file__, folder)
        module = "program_" + name.replace("-", "_")
        (folder / f"{module}.py").write_text(f"from random_programs import drawn\n\napp = drawn({seed}).app({self.input!r}, {name + '-'!r})\n")
        document = json.loads(self.file.read_text())
        own = {key: document[key] for key in ("job", "kafka", "containers", "state")}
        self.file.write_text(json.dumps({**own, "commit": {"interval": "200ms", "guarantee": guarantee}, "app": f"{module}:app"}))
        self.draw = random.Random(name)
        self.sent: list[tuple[str, str]] = []
        self._now = 1000

    def send(self, count: int) -> None:
        """Records out of order within the bound; all of a key are in one partition."""
        records = []
        for _ in range(count):
            self._now += self.draw.choice((0, 1, 1, 2, 5))
            key = self.draw.randrange(KEYS)
            text = f"{self._now - self.draw.randrange(DELAY)}/{len(self.sent)}"
            self.sent.append((f"key-{key}", text))
            records.append((f"key-{key}".encode(), text.encode(), key % self.partitions))
        produce(self.servers, self.input, records)

    def ends(self) -> dict[str, int]:
        return {str(TopicPartition(self.input, p)): end for p, end in ends(self.servers, self.input).items()}

    def problems_at_the_end(self) -> list[str]:
        """What is wrong with what came out, once a bounded run has closed all windows."""
        planned = self.command("plan", str(self.file), "--local", "--json")
        assert planned.returncode == 0, planned.stderr
        tasks = json.loads(planned.stdout)["tasks"]
        done = self.run_to_end()
        assert done.returncode == 0, done.stderr
        found = {
            topic: [(key_of(r.key or b""), json.loads(r.value or b"null")) for r in read_all(self.servers, f"{self.name}-{topic}")]
            for topic in self.program.topics
        }
        problems = self.program.problems(self.sent, found, len(tasks), doubles=self.guarantee != "exactly_once")
        return [f"{self.name}: {problem}\n{self.program}" for problem in problems]
