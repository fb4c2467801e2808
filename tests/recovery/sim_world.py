"""The world around a simulated job: who writes to its inputs, the broker's cleaner, a network that delivers late, and a supervisor.

The supervisor does what an operator's init system does: a driver that ended is started again, one that does not answer gets a second beside
it. A driver may end with an error of Kafka's while the world is disturbed; any other error, and any after healing, is a finding.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from samzapy.api.errors import LogError
from samzapy.model.offsets import TopicPartition
from samzapy.ports import TransactionalProducer
from samzapy.testing.memory_transactions import Session
from tests.recovery.sim_stage import Stage, code_of, told
from tests.recovery.sim_task import INPUT, KEYS, SECOND, TABLE
from tests.simulation.baton import Actor
from tests.simulation.simulation import SimDriver

TABLE_KEYS = 40
BURSTS = 25
OF_SECOND = 0.4  # of the records, once it has begun
KAFKAS = {"SZ300", "SZ301", "SZ310", "SZ311", "SZ312", "SZ313", "SZ314"}  # errors that a disturbed Kafka excuses
REPLACED = {"SZ312", "SZ314"}
OUT_OF_RANGE = "SZ320"


class Writers:
    """A feeder, and strangers who write in transactions of their own."""

    def __init__(self, stage: Stage) -> None:
        self._stage, self._sim = stage, stage.sim
        self._plan, self._draw = stage.plan, stage.draw
        self._session = Session("", stage.sim.cluster.new_producer_id(), 0)
        self._sequences: Counter[TopicPartition] = Counter()
        self._fed: Counter[str] = Counter()
        self._draw_input = random.Random(f"{stage.plan.seed}/inputs")
        self._is_over = self._is_together = False
        self._actors: list[Actor] = []

    def begin(self, entries: Mapping[str, str]) -> None:
        """The whole table (`entries`: of a program; some of it maybe after a stranger's open transaction), some records, and then more as time goes on."""
        draw, tasks = self._draw_input, self._plan.tasks
        is_held = bool(entries) and draw.random() < 0.5
        open_ = [self._begun(f"stranger {n} before the table", TABLE, [("key-0", "1000000", n)]) for n in range(tasks if is_held else 0)]
        for key, value in entries.items():
            self.append(TABLE, draw.randrange(tasks), key, value)
        if self._plan.job["table"]:
            for number in range(TABLE_KEYS):
                for partition in range(self._plan.tasks):
                    self.append(TABLE, partition, f"user-{number}", str(number))
        self.feed(20)
        work = {"feeder": self._feed_on, "strangers": self._write_on}
        if entries:
            work["strangers of the table"] = lambda: self._write_table_on(entries, open_)
        self._actors = [self._sim.baton.spawn(name, one) for name, one in work.items()]

    def end(self) -> None:
        """Nobody writes any more."""
        self._is_over = True
        for actor in self._actors:
            actor.join()

    def append(self, topic: str, partition: int, key: str, value: str) -> None:
        place = TopicPartition(topic, partition)
        with self._sim.cluster.lock:
            self._sim.cluster.produce(self._session, self._sequences[place], place, key.encode(), value.encode(), 0, None)
        self._sequences[place] += 1

    def feed(self, records: int) -> None:
        for _ in range(records):
            topic = self._next_input()
            self._fed[topic] = (max(self._fed.values(), default=0) if self._is_together else self._fed[topic]) + 1
            self.append(topic, self._draw.randrange(self._plan.tasks), f"key-{self._draw.randrange(KEYS)}", str(self._fed[topic]))

    def go_together(self) -> None:
        """From now on the second input is not behind the first: what comes after the end of a bounded run, and is older than what that run has read of
        another input, is late."""
        self._is_together = True

    def _next_input(self) -> str:
        """Records of the second input begin later, and are older: each input counts for itself."""
        begins = self._plan.second_from
        is_second = begins is not None and self._sim.baton.now >= begins and self._draw_input.random() < OF_SECOND
        return SECOND if is_second else INPUT

    def _feed_on(self) -> None:
        for _ in range(BURSTS):
            if self._is_over:
                return
            self._sim.baton.sleep(self._draw.random() * 1.6 * self._plan.faults_s / BURSTS)
            self.feed((self._plan.records - 30) // BURSTS + 1)

    def _write_on(self) -> None:
        """Others write to the input too, in transactions that stay open for a while and may be aborted."""
        draw, tasks = self._draw, self._plan.tasks

        def records() -> Iterator[tuple[str, str, int]]:  # drawn one by one as they are sent
            for _ in range(draw.randint(1, 4)):
                yield f"key-{draw.randrange(KEYS)}", "of a stranger", draw.randrange(tasks)

        while self._plan.strangers and not self._is_over:
            begun = self._begun("stranger", INPUT, records())
            if begun is not None:
                self._sim.baton.sleep(draw.random() * 3.0)
                self._ended(begun, commits=draw.random() < 0.5)
            self._sim.baton.sleep(draw.uniform(0.5, 4.0))

    def _write_table_on(self, entries: Mapping[str, str], open_: Sequence[TransactionalProducer | None]) -> None:
        """Others write to the table of a program: what is there already, or what is wrong, and aborted. `open_`: transactions that are open by now."""
        draw, tasks = self._draw_input, self._plan.tasks
        if any(open_):
            self._sim.baton.sleep(draw.random() * 6.0)
        for producer in open_:
            self._ended(producer, commits=False)
        while not self._is_over:
            is_right = draw.random() < 0.5
            records = [(key, entries[key] if is_right else "1000000", draw.randrange(tasks)) for key in draw.sample(sorted(entries), draw.randint(1, 4))]
            begun = self._begun("stranger of the table", TABLE, records)
            self._sim.baton.sleep(draw.random() * 3.0)
            self._ended(begun, commits=is_right)
            self._sim.baton.sleep(draw.uniform(0.5, 6.0))

    def _begun(self, name: str, topic: str, records: Iterable[tuple[str, str, int]]) -> TransactionalProducer | None:
        """A stranger's transaction with these records (key, value, partition); None: a broker did not take them."""
        try:
            producer = self._sim.log.transactional_producer(name)
            producer.init()
            producer.begin()
            for key, value, partition in records:
                producer.send(topic, value.encode(), key.encode(), partition)
            producer.flush()
        except LogError:
            self._stage.coverage.count("strangers in doubt")
            return None
        return producer

    def _ended(self, producer: TransactionalProducer | None, commits: bool) -> None:
        if producer is not None:
            try:
                producer.commit() if commits else producer.abort()
            except LogError:
                self._stage.coverage.count("strangers in doubt")


class Broker:
    """What the brokers and the network do by themselves."""

    def __init__(self, stage: Stage) -> None:
        self._stage, self._sim, self._draw = stage, stage.sim, stage.draw
        for name, work in (("cleaner", self._clean_on), ("post", self._deliver_on)):
            stage.sim.baton.spawn(name, work)

    def clean(self) -> None:
        self._stage.history.look()
        self._sim.cluster.clean()

    def _clean_on(self) -> None:
        while self._stage.plan.cleans:
            self._sim.baton.sleep(self._draw.uniform(3.0, 8.0))
            self.clean()

    def _deliver_on(self) -> None:
        """What was held on purpose arrives some time."""
        while True:
            self._sim.baton.sleep(self._draw.uniform(1.0, 8.0))
            for request in ("end", "marker"):
                self._sim.cluster.deliver_held(request)


class Supervisor:
    """Keeps a driver running, and looks at how drivers end.

    Attributes:
        wants_driver: one is to run.
        until_end: with `--until-end`.
    """

    def __init__(self, stage: Stage) -> None:
        self._stage, self._sim, self._draw = stage, stage.sim, stage.draw
        self._known: set[SimDriver] = set()
        self.wants_driver = self.until_end = False
        stage.sim.baton.spawn("supervisor", self._supervise)

    def _supervise(self) -> None:
        baton, sim = self._sim.baton, self._sim
        while True:
            baton.sleep(self._draw.uniform(0.3, 0.8))
            for driver in sim.drivers:
                if driver.process.ended and driver not in self._known:
                    self._known.add(driver)
                    self._note_end(driver)
            if not self.wants_driver:
                continue
            live = sim.live_drivers()
            frozen = [d for d in live if d.process.frozen_until > baton.now]
            obsolete = self.until_end and all(d.ends is None for d in live)
            if obsolete or not live or (len(frozen) == len(live) == 1 and self._draw.random() < 0.3):
                baton.sleep(self._draw.random())
                if self.wants_driver:
                    self._stage.say(f"the supervisor starts a driver{' beside a frozen one' if live else ''}")
                    sim.start(until_end=self.until_end, takeover=bool(live) and (obsolete or self._draw.random() < 0.5))

    def _note_end(self, driver: SimDriver) -> None:
        self._stage.say(f"{driver.process.name}: {driver.process.ended}: {told(driver)}")
        if driver.exit_code == 0 and driver.ends is not None and driver.coordinator.roster.stop_asked_at is None:
            self._stage.completed.add(driver.run_id)
            self.wants_driver = False
        if driver.exit_code in (None, 0):
            return
        code = code_of(driver)
        expected = code == OUT_OF_RANGE and self._stage.truncated
        if not expected and (code not in KAFKAS or (not self._stage.was_disturbed(driver.ended_at) and code not in REPLACED)):
            self._sim.problem(f"{driver.process.name} ended with {driver.exit_code}, {told(driver)}")
        self._stage.coverage.count("runs that failed")
