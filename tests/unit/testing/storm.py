"""Producers in a storm: every fault at once, drawn from a seed. Run as a program it prints the fingerprint of a seed's history.

Each producer sends transactions with one record for each partition and notes what it was told of them. A careful one follows the protocol:
a new producer after whatever was not clean, and no guess in doubt. A naive one begins again as long as its client lets it.
"""

from __future__ import annotations

import hashlib
import random
import sys
from collections import Counter
from dataclasses import dataclass, field

from samzapy.api.errors import ClusterUnreachable, Fenced, InDoubt, LogError, TransactionAborted
from samzapy.testing.memory_log import Chance
from samzapy.testing.memory_producers import MemoryTransactionalProducer
from tests.unit.testing.world import P0, P1, TOPIC, World

FATES = {"request_lost": 0.02, "reply_lost": 0.03, "held": 0.04, "slow": 0.02}
STORM = {
    **{f"{request}.{fate}": p for request in ("init", "add", "produce", "end") for fate, p in FATES.items()},
    "end.held": 0.15, "marker.late": 0.4, "timeout.late": 0.5, "linger": 0.3, "outage": 0.003,
}  # fmt: skip
LONGEST_S = {"outage": 120.0, "held": 5.0}
ROUNDS = 40


@dataclass
class Actor:
    """One transactional.id and its present producer."""

    name: str
    careful: bool
    producer: MemoryTransactionalProducer | None = None


@dataclass
class Storm:
    """A run of one seed: what was told, and what is there in the end."""

    seed: int
    careful: bool
    told: dict[str, str] = field(default_factory=dict)
    history: list[str] = field(default_factory=list)

    def run(self) -> Storm:
        self.world = World(Chance(self.seed, STORM, LONGEST_S), self.history.append)
        self.random = random.Random(self.seed)
        actors = [Actor(name, self.careful) for name in ("one", "two")]
        for number in range(ROUNDS):
            actor = self.random.choice(actors)
            if self.random.random() < 0.1:
                actor.producer = None  # the process dies; its requests may still be on their way
            value = f"{actor.name}-{number}"
            self.told[value] = self._transaction(actor, value)
            self.world.clock.sleep(self.random.random() * 2)
        for actor in actors:  # the sky clears: what was open is decided
            self._init(actor)
        self.world.clock.sleep(1000)
        self.world.cluster.run_due()
        return self

    def _init(self, actor: Actor) -> MemoryTransactionalProducer:
        while True:
            made = self.world.log.transactional_producer(actor.name)
            try:
                made.init()
                return made
            except ClusterUnreachable:
                self.world.clock.sleep(1)

    def _transaction(self, actor: Actor, value: str) -> str:
        producer = actor.producer = actor.producer or self._init(actor)
        abort = self.random.random() < 0.2
        dies = self.random.random() < 0.1
        clean = False
        try:
            producer.begin()
            for partition in (0, 1):
                producer.send(TOPIC, value.encode(), b"k", partition)
                self.world.clock.sleep(self.random.random())
            if dies:
                producer.close()
                told = "aborted"
            elif abort:
                told = "aborted"
                clean = producer.abort()
            else:
                clean = producer.commit()
                told = "committed"
        except TransactionAborted:
            told = "aborted"
            self._abort(producer)
        except (InDoubt, Fenced) as error:
            return self._gone(actor, type(error).__name__)
        if dies or (self.careful and not clean):
            actor.producer = None
        return told

    def _abort(self, producer: MemoryTransactionalProducer) -> None:
        try:
            producer.abort()
        except LogError:
            pass  # it is not used again

    def _gone(self, actor: Actor, how: str) -> str:
        actor.producer = None
        return how

    def violations(self) -> list[str]:
        """Transactions that are not what their producer was told, or not whole."""
        counts = [Counter(self.world.seen(place)) for place in (P0, P1)]
        wrong = []
        for value, told in self.told.items():
            seen = tuple(count[value] for count in counts)
            allowed = {"committed": {(1, 1)}, "aborted": {(0, 0)}}.get(told, {(0, 0), (1, 1)})
            if seen not in allowed:
                wrong.append(f"{value}: told {told}, seen {seen}")
        return wrong

    def fingerprint(self) -> str:
        return hashlib.sha256(repr((self.history, self.told, self.world.cluster.dump())).encode()).hexdigest()


if __name__ == "__main__":
    print(Storm(int(sys.argv[1]), careful=True).run().fingerprint())
