"""What earlier code left behind: jobs, their stores and their topics of commits 7cd9763 and e8df1a8, recorded once, go on as if nothing had happened.

`recorded/jobs.tar.gz` holds the directory of a Kafka and four jobs with their local state, as the code of these commits left them. Of each
commit one job has `ended` in order, with 200 lines counted; the other was `killed` with all of its processes after 400.
"""

from __future__ import annotations

import random
import tarfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from samzapy.dev.kafka import LocalKafka
from tests.broker import produce, read_all
from tests.command_server import run_samzapy
from tests.integration.job import number

pytestmark = [pytest.mark.kafka, pytest.mark.prove]
RECORDED = Path(__file__).parent / "recorded" / "jobs.tar.gz"
START_S = 300.0
LIMIT_S = 180.0
COMMITS, ENDS = ("7cd9763", "e8df1a8"), {"ended": (1,), "killed": (1, 2)}  # how it ended: the lines that it had counted
FOR_EVER = {"log.retention.ms": "-1"}


def lines(seed: int) -> list[str]:
    """What the jobs were fed with; line i went to partition i % 2."""
    draw = random.Random(seed)
    return [" ".join(f"word{draw.randrange(50)}" for _ in range(3)) for _ in range(200)]


def counted(seeds: tuple[int, ...]) -> Counter[tuple[int, str]]:
    return Counter((i % 2, word) for seed in seeds for i, line in enumerate(lines(seed)) for word in line.split())


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    """The jobs' folder, and the address of their Kafka, which runs."""
    folder = tmp_path_factory.mktemp("recorded")
    with tarfile.open(RECORDED) as archive:
        archive.extractall(folder, filter="data")
    kafka = LocalKafka.start(port=0, directory=folder / "kafka", overrides=FOR_EVER, tied=True, timeout_s=START_S)
    try:
        yield folder / "jobs", kafka.bootstrap_servers
    finally:
        kafka.stop()


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("commit", COMMITS)
def test_a_job_of_earlier_code_goes_on_exactly(
    recorded: tuple[Path, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, commit: str, end: str
) -> None:
    folder, servers = recorded
    name = f"job-{commit}-{end}"
    monkeypatch.setenv("KAFKA_BOOTSTRAP", servers)
    seeds = ENDS[end]
    for elsewhere in ([], ["--set", f"state.dir={tmp_path}"]):  # with the local state of then; from the changelog alone
        produce(servers, f"{name}-in", [(None, line.encode(), i % 2) for i, line in enumerate(lines(3))])
        seeds += (3,)

        done = run_samzapy(["run", f"{name}.yaml", "--local", "--until-end", *elsewhere], folder, LIMIT_S)

        assert 0 == done.returncode, done.stderr
        updates = Counter((r.partition, (r.key or b"").decode(), number(r.value)) for r in read_all(servers, f"{name}-out"))
        assert Counter((at, word, n) for (at, word), total in counted(seeds).items() for n in range(1, total + 1)) == updates
        if end == "ended":
            assert 2 == done.stderr.count("restored from changelog" if elsewhere else "restored from local"), done.stderr
        verified = run_samzapy(["state", "verify", f"{name}.yaml", *elsewhere], folder, LIMIT_S)
        assert 0 == verified.returncode, verified.stderr
