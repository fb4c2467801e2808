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
from tests.random_programs import DELAY, added, drawn, is_second, key_of

KEYS, PARTITIONS = 12, 3
SENDINGS = 6  # before which the second input has begun


class RandomJob(Job):
    """Reads `<name>-in` and, where its program reads two, `<name>-in-too`, whose first records come later, all at once; each output is `<name>-…`. What
    it is sent is drawn by its name."""

    def __init__(self, servers: str, folder: Path, name: str, seed: int, *, partitions: int = PARTITIONS, guarantee: str = "exactly_once") -> None:
        super().__init__(servers, folder, name, partitions)
        self.program, self.guarantee = drawn(seed), guarantee
        for topic in self.program.topics:
            create_topic(servers, f"{name}-{topic}", partitions, retention_ms=-1)
        self.second = f"{self.input}-too" if self.program.of_two else ""
        if self.second:
            create_topic(servers, self.second, partitions)
        self.table = f"{name}-added" if self.program.looks_up else ""
        if self.table:
            create_topic(servers, self.table, partitions)
            produce(servers, self.table, [(key, str(added(key))) for key in (f"key-{n}" for n in range(KEYS))])
        shutil.copy(random_programs.__file__, folder)
        module = "program_" + name.replace("-", "_")
        topics = f"{self.input!r}, {name + '-'!r}, {self.second!r}, {self.table!r}"
        (folder / f"{module}.py").write_text(f"from random_programs import drawn\n\napp = drawn({seed}).app({topics})\n")
        document = json.loads(self.file.read_text())
        own = {key: document[key] for key in ("job", "kafka", "containers", "state")}
        self.file.write_text(json.dumps({**own, "commit": {"interval": "200ms", "guarantee": guarantee}, "app": f"{module}:app"}))
        self.draw = random.Random(name)
        self.sent: list[tuple[str, str]] = []
        self._now = 1000
        self._waiting: list[tuple[bytes, bytes, int]] = []  # of the second input
        self._sendings_before_second = self.draw.randrange(SENDINGS)

    def send(self, count: int) -> None:
        """Records out of order within the bound; all of a key are in one partition of one input."""
        records = []
        for _ in range(count):
            self._now += self.draw.choice((0, 1, 1, 2, 5))
            key = self.draw.randrange(KEYS)
            text = f"{self._now - self.draw.randrange(DELAY)}/{len(self.sent)}"
            self.sent.append((f"key-{key}", text))
            into = self._waiting if self.second and is_second(f"key-{key}") else records
            into.append((f"key-{key}".encode(), text.encode(), key % self.partitions))
        produce(self.servers, self.input, records)
        self._sendings_before_second -= 1
        if self._waiting and self._sendings_before_second < 0:
            produce(self.servers, self.second, self._waiting)
            self._waiting = []

    def ends(self) -> dict[str, int]:
        inputs = [self.input, *([self.second] if self.second else [])]
        return {str(TopicPartition(topic, p)): end for topic in inputs for p, end in ends(self.servers, topic).items()}

    def problems_at_the_end(self) -> list[str]:
        """What is wrong with what came out, once a bounded run has closed all windows."""
        assert not self._waiting, f"{SENDINGS} times something has to be sent"
        planned = self.command("plan", str(self.file), "--local", "--json")
        assert planned.returncode == 0, planned.stderr
        tasks = json.loads(planned.stdout)["tasks"]
        done = self.run_to_end()
        assert done.returncode == 0, done.stderr
        found = {
            topic: [(key_of(r.key or b""), json.loads(r.value or b"null")) for r in read_all(self.servers, f"{self.name}-{topic}")]
            for topic in self.program.topics
        }
        problems = self.program.problems(self.sent, found, len(tasks), doubles=self.guarantee != "exactly_once", adds=bool(self.table))
        return [f"{self.name}: {problem}\n{self.program}" for problem in problems]
