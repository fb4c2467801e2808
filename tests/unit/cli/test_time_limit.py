"""Commands against a broker that takes connections and never answers: each ends in the time it was given, with a sentence and the exit code for it."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer

from samzapy.api.errors import ClusterUnreachable
from samzapy.cli.main import exit_code
from samzapy.cli.time_limit import MORE_S, seconds_of, within

UNREACHABLE = 4


@pytest.fixture
def silent() -> Iterator[str]:
    """Where connections are taken, and nothing is ever said."""
    with socket.create_server(("127.0.0.1", 0), backlog=100) as server:
        taken = []

        def take() -> None:
            try:
                while True:
                    taken.append(server.accept()[0])
            except OSError:
                return  # it is closed

        taker = threading.Thread(target=take)
        taker.start()
        try:
            yield f"127.0.0.1:{server.getsockname()[1]}"
        finally:
            server.shutdown(socket.SHUT_RDWR)
            taker.join()
            for one in taken:
                one.close()


def job_file(folder: Path, servers: str) -> str:
    file = folder / "silent.yaml"
    (folder / "silent_task.py").write_text("from samzapy import StreamTask\nclass Nothing(StreamTask):\n    def process(self, *_): pass\n")
    file.write_text(
        f'job: silent\ntask: silent_task:Nothing\nkafka: {{bootstrap.servers: "{servers}"}}\ninputs: [{{topic: in}}]\n'
        f"stores: {{s: {{key: string, value: string}}}}\nstate: {{dir: {folder / 'state'}}}\n"
    )
    return str(file)


CHANGES = [
    (["stop"], [], "the job was not asked to stop"),
    (["scale"], ["--containers", "2"], "nothing was changed"),
    (["restart"], [], "nothing was changed"),
]


@pytest.mark.parametrize(("verb", "more", "what"), CHANGES[:1] + [pytest.param(*one, marks=pytest.mark.prove) for one in CHANGES[1:]])
def test_a_timeout_holds_for_what_is_asked_of_kafka_too(
    silent: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], verb: list[str], more: list[str], what: str
) -> None:
    assert UNREACHABLE == exit_code([*verb, job_file(tmp_path, silent), *more, "--timeout", "0"])
    told = capsys.readouterr().err
    assert f"error[SZ301]: {what} after {MORE_S:.0f} s: Kafka at {silent} does not answer." in told


OTHERS = [
    ["status"], ["lag"], ["topics"], ["plan"], ["validate", "--connect"], ["checkpoint", "show"], ["checkpoint", "set", "--to-earliest", "--reset-state"],
    ["checkpoint", "forget", "old"], ["dlq", "list"], ["dlq", "show", "1"], ["dlq", "replay", "--all"], ["state", "get", "s", "k"],
    ["state", "scan", "s"], ["state", "export", "s"], ["state", "verify"], ["state", "restore"], ["state", "drop", "old"], ["reset"],
    ["reset", "--coordinator"], ["run", "--local"], ["run", "--local", "--until-end"],
]  # fmt: skip
FAMILIES = ("checkpoint", "dlq", "state")


@pytest.mark.prove
@pytest.mark.parametrize("words", OTHERS, ids=" ".join)
def test_every_command_says_within_seconds_that_kafka_does_not_answer(
    silent: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    after = 2 if words[0] in FAMILIES else 1
    assert UNREACHABLE == exit_code([*words[:after], job_file(tmp_path, silent), *words[after:]])
    assert f"no Kafka broker answered at {silent} within 10 s" in capsys.readouterr().err


def test_what_the_work_returns_or_raises_is_the_callers() -> None:
    assert 3 == within(1, lambda: 3, "", lambda: "")
    with pytest.raises(ZeroDivisionError):
        within(1, lambda: 1 // 0, "", lambda: "")


def test_how_far_it_came_is_said() -> None:
    release, known = threading.Event(), ["nothing was changed"]

    def work() -> None:
        known.append("it was asked to stop")
        release.wait()

    with pytest.raises(ClusterUnreachable, match="it was asked to stop after 0 s: Kafka at nowhere does not answer"):
        within(-MORE_S, work, "nowhere", lambda: known[-1])
    release.set()


@pytest.mark.parametrize(("given", "seconds"), [("0", 0), ("2.5", 2.5), ("5s", 5), ("500ms", 0.5), ("2m", 120), (60.0, 60)])
def test_a_time_limit_is_seconds_or_a_duration(given: str | float, seconds: float) -> None:
    assert seconds_of(given) == seconds


@pytest.mark.parametrize("given", ["", "-1", "nan", "inf", "1e400", "5 parsecs", "-5s", "s"])
def test_what_is_no_time_limit_is_refused(given: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.BadParameter, match="give seconds"):
        seconds_of(given)
    assert 2 == exit_code(["stop", "no.yaml", f"--timeout={given}"])
    assert "give seconds" in capsys.readouterr().err
