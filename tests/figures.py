"""Figures of tests: reported, not asserted; they are what a long proof was run for.

A test asks for `tell`. Alone, its lines come at once, although pytest captures; where tests run side by side, they come at the end.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

Tell = Callable[[str], None]
FIGURE = "figure"
IN_PROCESS_OF_MANY = "workerinput"  # what pytest-xdist gives the configuration of each of its processes


@pytest.fixture
def tell(capsys: pytest.CaptureFixture[str], request: pytest.FixtureRequest) -> Tell:
    def say(line: str) -> None:
        line = f"{request.node.name}: {line}"
        if hasattr(request.config, IN_PROCESS_OF_MANY):
            request.node.user_properties.append((FIGURE, line))
        else:
            with capsys.disabled():
                print(f"\n{line}", end="", flush=True)

    return say


class Figures:
    """A plugin: what tests in other processes told, at the end."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "teardown":
            self.lines += [str(line) for name, line in report.user_properties if name == FIGURE]

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self.lines:
            terminalreporter.section("figures")
            for line in self.lines:
                terminalreporter.write_line(line)
