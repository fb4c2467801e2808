"""Somebody adds partitions to a topic between two stages: the error names that topic, and no topic is changed before it is refused."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from samzapy.api.errors import ConfigurationError, StateMismatch
from samzapy.cli.loading import load
from samzapy.cli.run_refusals import refuse_before_topics
from samzapy.ops.prepare_topics import checked_topics, grown_tasks, prepare_topics
from samzapy.ops.topic_rows import OK, WRONG, topic_rows
from samzapy.testing import Harness
from samzapy.wiring.coordinator import input_topics
from samzapy.wiring.job_topics import JobTopics

BY_USER = "j-1-by-user"
NUMBERS = count(1)
COUNTED = """
from samzapy.streams import App

app = App()
sales = app.stream("sales", key=str, value=str)
sales.key_by(lambda user: user, "by-user", key=str).count("counts").to("out", partitions=3)
"""
WITH_TABLE = COUNTED + 'app.table("cities", key=str, value=str)\n'
JOINED = """
from samzapy.streams import App

app = App()
by_user = app.stream("sales", key=str, value=str).key_by(lambda user: user, "by-user", key=str)
by_user.lookup(app.table("cities", key=str, value=str), how="left").to("out", partitions=3)
"""
SPREAD = """
from samzapy.streams import App

app = App()
app.table("cities", key=str, value=str)
app.stream("sales", key=str, value=str).repartition("by-user").to("out", partitions=3)
"""


class Program:
    """A program of a job file that has run with three tasks."""

    def __init__(self, folder: Path, text: str) -> None:
        self.folder = folder
        self.harness = Harness(str(self.file(text)), tasks=3)
        self.harness.send("sales", "ada", key="1")
        self.harness.run()
        self.log, self.clock = self.harness.log, self.harness.clock
        self.loaded = load(folder / "job.yaml", None, None)
        self.settings = self.loaded.settings

    def file(self, text: str) -> Path:
        """The job file, with a program of this text."""
        module = f"program_{next(NUMBERS)}"  # of a name that no test has imported
        (self.folder / f"{module}.py").write_text(text)
        (self.folder / "job.yaml").write_text(f"job: j\napp: {module}:app\nkafka: {{bootstrap.servers: 'x:1'}}\non_error: {{then: dead_letter}}\n")
        return self.folder / "job.yaml"

    def counts(self) -> dict[str, int]:
        """The partitions of all its topics."""
        names = JobTopics.of(self.settings)
        return {topic: facts.partitions for topic, facts in self.log.admin().topics([*names.all, names.job.checkpoint_topic]).items()}

    def grow(self, topic: str, partitions: int = 5) -> None:
        self.log.admin().grow(topic, partitions)

    def start(self) -> None:
        """What `samzapy run` does before it starts processes."""
        checked_topics(self.settings, self.log, self.clock)
        refuse_before_topics(self.loaded, self.log, self.clock)
        prepare_topics(self.settings, self.log, self.clock)


@pytest.fixture
def program(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Program]:
    made = Program(tmp_path, request.param)
    with made.harness:
        yield made


@pytest.mark.parametrize(
    ("program", "said"),
    [
        pytest.param(COUNTED, f"internal topic {BY_USER} had 3 partitions when the state of the operators after it was written", id="all state behind it"),
        pytest.param(WITH_TABLE, f"internal topic {BY_USER} has 5 partitions now, and had at most 3 when this job's state was created", id="table"),
        pytest.param(SPREAD, f"internal topic {BY_USER} has 5 partitions now, and had at most 3 when this job's state was created", id="no state behind it"),
    ],
    indirect=["program"],
)
def test_the_next_start_names_it_and_what_to_do_and_changes_no_topic(program: Program, said: str) -> None:
    program.harness.stop()
    program.start()
    program.grow(BY_USER)
    before = program.counts()
    with pytest.raises(StateMismatch) as refused:
        program.start()
    assert said in refused.value.message
    assert "Nothing is lost: state and waiting records are as they were last committed." in refused.value.message
    assert not any(name in refused.value.message for name in ("sales", "cities"))
    assert "Kafka takes no partitions back: run `samzapy reset JOB.yaml`" in refused.value.remedy
    assert "Or give other names in the program to the topic and to the operators after it that keep state" in refused.value.remedy
    assert before == program.counts()
    rows = {row[0]: (kind, row[-1]) for kind, row in topic_rows(program.settings, program.log, program.clock)}
    kind, words = rows.pop(BY_USER)
    said = "has 5 partitions, and had at most 3 when this job's state was created; give other names in the program to it and"
    assert (WRONG, True) == (kind, words.startswith(said))
    assert {(OK, "ok")} == set(rows.values())


@pytest.mark.parametrize("program", [COUNTED], indirect=True)
def test_topics_that_grow_with_an_input_are_said_to_grow_with_that(program: Program, caplog: pytest.LogCaptureFixture) -> None:
    program.harness.stop()
    program.grow("sales")
    rows = {row[0]: (kind, row[-1]) for kind, row in topic_rows(program.settings, program.log, program.clock)}
    assert (OK, "grows with the next run, to 5 partitions") == rows["j-1-counts-changelog"]
    caplog.set_level("INFO")
    program.start()
    assert "j-1-counts-changelog grows from 3 to 5 partitions, as many as sales" in caplog.messages
    assert {"sales": 5, BY_USER: 3, "j-1-counts-changelog": 5} == {t: n for t, n in program.counts().items() if t in ("sales", BY_USER, "j-1-counts-changelog")}


@pytest.mark.parametrize("program", [COUNTED, WITH_TABLE, JOINED], indirect=True)
def test_a_running_job_names_it_with_the_offsets_from_which_on_it_is_doubtful(program: Program) -> None:
    running = input_topics(program.settings, 3, lambda: grown_tasks(program.settings, program.log, 3), program.log, program.clock)
    assert running.check is not None
    assert running.find_tasks is not None
    running.check()
    running.find_tasks()
    program.grow(BY_USER)
    with pytest.raises(StateMismatch) as ended:
        running.check()
    assert f"internal topic {BY_USER} grew from 3 to 5 partitions while the job ran: keys go to other partitions now" in ended.value.message
    assert f"At 2023-11-14T22:13:20Z it had not grown yet. Later records ({BY_USER}[0] from offset " in ended.value.message
    assert "sales" not in ended.value.message
    assert "Kafka takes no partitions back" in ended.value.remedy


@pytest.mark.parametrize("program", [WITH_TABLE, SPREAD], indirect=True)
def test_one_that_grows_between_two_looks_of_a_running_job_makes_nothing_doubtful(program: Program) -> None:
    """Where no state lies behind it, this is the only look that finds it: a job whose state is bound to its inputs gets no more tasks."""
    running = input_topics(program.settings, 3, lambda: grown_tasks(program.settings, program.log, 3), program.log, program.clock)
    assert running.find_tasks is not None
    running.find_tasks()
    program.grow(BY_USER)
    with pytest.raises(StateMismatch, match=f"^internal topic {BY_USER} has 5 partitions now") as ended:
        running.find_tasks()
    assert ended.value.message.endswith("Nothing is lost: state and waiting records are as they were last committed.")


@pytest.mark.parametrize("program", [JOINED], indirect=True)
def test_one_that_is_joined_with_an_input_is_told_from_an_input_that_grew(program: Program) -> None:
    program.harness.stop()
    program.grow(BY_USER)
    with pytest.raises(ConfigurationError, match=f"cities has 3, internal topic {BY_USER} has 5") as refused:
        program.start()
    assert f"If somebody added partitions to {BY_USER}, nothing is lost. Kafka takes no partitions back" in refused.value.remedy
    program.grow("cities", 7)
    with pytest.raises(ConfigurationError, match="unequal") as refused:
        program.start()
    assert "If somebody added partitions to cities, give the job a new `id`" in refused.value.remedy


@pytest.mark.parametrize("program", [WITH_TABLE], indirect=True)
def test_an_internal_topic_that_the_program_makes_too_wide_is_not_said_to_have_grown(program: Program) -> None:
    program.harness.stop()
    wide = WITH_TABLE + 'sales.key_by(lambda user: user, "wide", key=str, partitions=9).count("more")\n'
    settings = load(program.file(wide), None, None).settings
    with pytest.raises(StateMismatch, match=r"^internal topic j-1-wide would get 9 partitions, and this job's state was created with 3 tasks") as refused:
        checked_topics(settings, program.log, program.clock)
    assert refused.value.remedy.startswith("Give `partitions=3` or fewer in the program")
