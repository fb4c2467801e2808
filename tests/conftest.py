"""Fixtures that every test may use.

`kafka`: the bootstrap servers of a real broker, one for the whole session, in this order: `$SAMZAPY_TEST_KAFKA`, a container where a
Docker engine answers, else `samzapy dev kafka` in a temporary directory. `unique`: a name that no other test uses, so tests share the
broker without meeting.

Where tests run side by side (`pytest -n 5`), they share the one broker; `tests/side_by_side.py` says which stay together.
"""

from __future__ import annotations

import contextlib
import gc
import os
import re
import secrets
import shutil
import signal
import sys
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest

from samzapy.api.errors import ClusterUnreachable, LauncherError
from samzapy.cli.common import called_with
from samzapy.dev.java import find_java, java_for_spark
from samzapy.dev.kafka import LocalKafka
from tests.broker import container_settings, docker_answers, free_port
from tests.figures import IN_PROCESS_OF_MANY, Figures, tell

__all__ = ["tell"]

KAFKA_IMAGE = "apache/kafka:4.3.0"
START_S = 300.0  # a machine with much else to do takes minutes


BROKER = pytest.StashKey[contextlib.ExitStack]()


# A machine with much else to do is slow at everything: that is no test's failure. Every run tries other examples.
hypothesis.settings.register_profile(
    "samzapy", parent=hypothesis.settings(), max_examples=40, deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("samzapy")


def pytest_configure(config: pytest.Config) -> None:
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # started in a shell's background: tests and what they start would never see a Ctrl-C
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if not hasattr(config, IN_PROCESS_OF_MANY):
        config.pluginmanager.register(Figures())


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, Any, Any]:
    """Thousands of tests that stay until the end are not looked through for garbage, neither now nor later."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    from tests.side_by_side import SideBySide

    return SideBySide(config, log)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes(config: pytest.Config) -> None:
    """Before the first of several test processes starts, whose environment is of that moment: a broker for all of them, unless no test wants one."""
    if "not kafka" not in config.option.markexpr:
        config.stash[BROKER] = contextlib.ExitStack()
        with contextlib.suppress(pytest.skip.Exception):  # each test that wants one will say it
            os.environ["SAMZAPY_TEST_KAFKA"] = config.stash[BROKER].enter_context(contextlib.contextmanager(_broker)())


def pytest_unconfigure(config: pytest.Config) -> None:
    if BROKER in config.stash:
        config.stash[BROKER].close()


@pytest.fixture(scope="session")
def kafka() -> Iterator[str]:
    yield from _broker()


@pytest.fixture(scope="session")
def java_home() -> str:
    """A Java that can run Spark; `make venv` sees to it, so where there is none the tests fail, with the remedy."""
    return str(java_for_spark(find_java()).home)


def _broker() -> Iterator[str]:
    given = os.environ.get("SAMZAPY_TEST_KAFKA")
    if given:
        yield given
    elif docker_answers():
        yield from _in_a_container()
    else:
        yield from _on_this_machine()


@pytest.fixture(autouse=True)
def _called_with_nothing() -> None:
    """What a command of an earlier test in this process was called with is not what this one is called with."""
    called_with([])


@pytest.fixture(autouse=True)
def _modules_of_its_own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What a test imported from its own folder is not what a later one in this process finds under the same name."""
    folder, path, modules = str(tmp_path_factory.getbasetemp()), list(sys.path), set(sys.modules)
    yield
    sys.path[:] = [entry for entry in sys.path if entry in path or not entry.startswith(folder)]
    for name in sys.modules.keys() - modules:
        if str(getattr(sys.modules[name], "__file__", None) or "").startswith(folder):
            del sys.modules[name]


@pytest.fixture
def unique(request: pytest.FixtureRequest) -> str:
    """A name for topics, jobs and groups: the test's own, cut short, and eight random characters."""
    words = re.sub(r"[^A-Za-z0-9]+", "-", request.node.name.removeprefix("test_")).strip("-")[:30].strip("-")
    return f"{words}-{secrets.token_hex(4)}"


def _in_a_container() -> Iterator[str]:
    from testcontainers.core.container import DockerContainer
    from testcontainers.core.waiting_utils import wait_for_logs

    port = free_port()
    container = DockerContainer(KAFKA_IMAGE).with_bind_ports(port, port)
    address = f"{container.get_container_host_ip()}:{port}"
    with container.with_envs(**container_settings(address, port)):
        wait_for_logs(container, "Kafka Server started", timeout=120)
        yield address


def _say(line: str) -> None:
    print(line, file=sys.stderr)


def _on_this_machine() -> Iterator[str]:
    directory = Path(tempfile.mkdtemp(prefix="samzapy-kafka-"))
    try:
        try:
            with pytest.MonkeyPatch.context() as patch:
                if "_JAVA_OPTIONS" not in os.environ:  # no test deletes its topics: all of `make prove` make some 20,000 partitions
                    patch.setenv("_JAVA_OPTIONS", "-Xmx1g")
                cluster = LocalKafka.start(port=0, directory=directory, say=_say, timeout_s=START_S, tied=True)
        except (ClusterUnreachable, LauncherError) as error:
            if os.environ.get("CI"):  # where tests must not be left out
                raise
            pytest.skip(f"no broker: SAMZAPY_TEST_KAFKA is not set, no Docker engine answers, and {error}")
        try:
            yield cluster.bootstrap_servers
        finally:
            cluster.stop()
    finally:
        shutil.rmtree(directory, ignore_errors=True)
