"""`samzapy restart` of a program: one that reads, writes or keeps something else than the one that runs is refused before any container is restarted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from samzapy.api.errors import ConfigurationError
from samzapy.cli import change
from samzapy.cli.restart_refusals import refuse_new_code, refuse_other_program
from samzapy.config.document import settings_from_document
from samzapy.config.origins import Origin, origins
from samzapy.config.schema import Settings
from samzapy.config.tree import from_plain
from samzapy.streams import App, tumbling
from samzapy.streams.expand import sections

KAFKA = {"bootstrap.servers": "x:1"}


def program(topic: str = "a.b", value: type = int, stores: tuple[str, ...] = ("n",), to: str = "out", key_by: str = "", partitions: int | None = None) -> App:
    app = App()
    stream = app.stream(topic, key=str, value=value)
    stream = stream.key_by(str, key_by, key=str, partitions=partitions) if key_by else stream
    for store in stores:
        stream.count(store).to(to)
    return app


def loaded(app: App, **file: Any) -> tuple[Settings, tuple[Origin, ...]]:
    """The job of a program; `file`: what its job file says besides."""
    written = {"job": "j", "app": "m:app", "kafka": KAFKA, **file}
    said = sections(app.graph, file.get("streams", {}), file.get("stores", {})).to_json()
    settings = settings_from_document({**written, **said}, {})
    return settings, origins(from_plain(written), settings)


def rows(app: App, **file: Any) -> list[dict[str, str]]:
    """The configuration of its run, as the coordinator gives it."""
    return [origin.to_json() for origin in loaded(app, **file)[1]]


def check(now: App, running: App, **file: Any) -> None:
    settings, own = loaded(now, **file)
    refuse_other_program(settings, by_key(own), by_key(loaded(running, **file)[1]))


def by_key(found: Sequence[Origin]) -> dict[str, str]:
    return {origin.key: origin.value for origin in found}


def test_the_same_program_may_be_restarted() -> None:
    check(program(), program())
    check(program(key_by="k"), program(key_by="k"))


def test_so_may_it_with_a_job_file_that_a_restart_does_not_read() -> None:
    check(program(), program(), streams={"a.b": {"start": "latest", "on_out_of_range": "latest"}}, stores={"n": {"engine": "memory"}})


@pytest.mark.parametrize(
    ("now", "running", "said"),
    [
        (program(), program(stores=("n", "old")), "the program has the stores n, the running one has n, old"),
        (program(), program("c"), "has the inputs a.b, the running one has c"),
        (program(to="new"), program(), "has the outputs new, the running one has out"),
        (program(value=dict), program(), "has the inputs a.b with inputs.0.value json, the running one has inputs.0.value integer"),
        (program(key_by="k"), program(), "has the internal topics test-1-k, the running one has none"),
        (program(key_by="k", partitions=4), program(key_by="k"), "with stages.internal.k.partitions 4, the running one has stages.internal.k.partitions none"),
    ],
)
def test_another_one_is_refused(now: App, running: App, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said) as refused:
        check(now, running)
    assert "`samzapy stop JOB.yaml`, then `samzapy run JOB.yaml`" in refused.value.remedy


def summing(combine: bool = True, lateness: str = "0s", size: str = "5s", has_other_reader: bool = False) -> App:
    """A program whose window takes partial sums through the internal topic `by`."""
    app = App()
    events = app.stream("in", key=str, value=dict, watermark_delay="1s")
    by = events.key_by(lambda event: event["g"], "by", key=str, combine=combine)
    if has_other_reader:
        by.sink(lambda _: None)
    by.window(tumbling(size), allowed_lateness=lateness).count("w").to("out")
    return app


def test_a_window_that_takes_the_sums_of_the_running_one_may_be_restarted() -> None:
    check(summing(), summing())
    check(summing(combine=False), summing())
    check(summing(), summing(combine=False))
    check(summing(lateness="5s"), summing())
    check(summing(size="7s", combine=False), summing(combine=False))  # the window's state says what this comes to


@pytest.mark.parametrize(
    ("now", "running", "said", "remedy"),
    [
        (summing(has_other_reader=True), summing(), "sends partial sums through its internal topic by, and the new code cannot take them", "set `combine=False`"),
        (summing(size="7s"), summing(), "sends partial sums through its internal topic by, and the new code cannot take them", "set `combine=False`"),
        (summing(), summing(has_other_reader=True), "the new code sends partial sums through its internal topic by, and containers", "`samzapy stop JOB.yaml`"),
    ],
)
def test_one_that_cannot_take_them_is_refused(now: App, running: App, said: str, remedy: str) -> None:
    with pytest.raises(ConfigurationError, match=said) as refused:
        check(now, running)
    assert remedy in refused.value.remedy


def test_a_run_of_an_earlier_version_does_not_say_what_it_sums_up() -> None:
    settings, now = loaded(summing(has_other_reader=True))
    then = {key: value for key, value in by_key(loaded(summing())[1]).items() if not key.endswith(".sums")}
    refuse_other_program(settings, by_key(now), then)


def test_it_is_refused_before_anything_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    class Run(change.Running):
        def __init__(self) -> None:
            self._token, self.status = "secret", {"coordinator": "http://x:1", "job": "j", "id": "1"}

    def http_json(method: str, url: str, token: str | None, **_: Any) -> dict[str, Any]:
        asked.append(f"{method} {url} {token}")
        return {"items": rows(program())}

    monkeypatch.setattr(change, "http_json", http_json)
    monkeypatch.setattr(change, "found_run", lambda *_: Run())
    settings, now = loaded(program(to="new"))
    with pytest.raises(ConfigurationError, match="the outputs new"):
        change._restart(SimpleNamespace(settings=settings, loaded=SimpleNamespace(origins=now)), None, 5.0, None, False)  # type: ignore[arg-type]
    assert ["GET http://x:1/v1/jobs/j/1/config secret"] == asked


def test_of_a_task_without_state_nothing_is_asked() -> None:
    settings = settings_from_document({"job": "j", "task": "m:T", "kafka": KAFKA, "inputs": [{"topic": "t"}]}, {})

    def never() -> list[dict[str, str]]:
        raise AssertionError("it was asked")

    refuse_new_code(SimpleNamespace(settings=settings), never)  # type: ignore[arg-type]


@pytest.mark.parametrize(("container", "said"), [(1, "container 1 had no process to stop: it had just ended"), (None, "no container had a process to stop")])
def test_of_a_container_that_has_just_died_none_is_stopped_and_its_own_start_is_waited_for(
    container: int | None, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    waiting = {"state": "RUNNING", "moves": [], "target": 2, "containers": [{"id": 0, "pid": 7, "state": "RUNNING"}, {"id": 1, "pid": None, "state": "WAITING"}]}
    again = {**waiting, "containers": [{"id": 0, "pid": 7, "state": "RUNNING"}, {"id": 1, "pid": 9, "state": "RUNNING"}]}

    class Run(change.Running):
        def __init__(self) -> None:
            self._token, self.status = "secret", {**waiting, "coordinator": "http://x:1", "job": "j", "id": "1"}

        def post(self, *_: Any) -> dict[str, Any]:
            return {"containers": []}

        def follow(self, doing: str, timeout: float, deadline: float, is_done: Callable[[dict[str, Any]], bool]) -> dict[str, Any] | None:
            assert not is_done(waiting)
            return again if is_done(again) else None

    monkeypatch.setattr(change, "found_run", lambda *_: Run())
    monkeypatch.setattr(change, "refuse_new_code", lambda *_: None)
    settings = settings_from_document({"job": "j", "task": "m:T", "kafka": KAFKA, "inputs": [{"topic": "t"}]}, {})
    job = SimpleNamespace(settings=settings, loaded=SimpleNamespace(origins=()))
    assert 0 == change._restart(job, container, 5.0, None, False)  # type: ignore[arg-type]
    assert said in capsys.readouterr().err
