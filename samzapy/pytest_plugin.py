"""For pytest: the fixture `harness`, and failed comparisons of a topic's records told record by record.

pytest loads this module by itself where samzapy is installed; so it imports the harness only when a test asks for it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from samzapy.testing.harness import Harness


@pytest.fixture
def harness() -> Iterator[Callable[..., Harness]]:
    """Makes a `samzapy.testing.Harness`: `h = harness("visits.yaml")`. What it made is closed when the test ends."""
    from samzapy.testing.harness import Harness

    made: list[Harness] = []

    def make(*arguments: Any, **sections: Any) -> Harness:
        made.append(Harness(*arguments, **sections))
        return made[-1]

    yield make
    for one in made:
        one.__exit__(None, None, None)


def pytest_assertrepr_compare(op: str, left: object, right: object) -> list[str] | None:
    """The lines for a failed `==` of a topic's records and a list."""
    seen = sys.modules.get("samzapy.testing.seen")
    if seen is None or op != "==":
        return None
    if not isinstance(left, seen.Records):
        left, right = right, left
    if not isinstance(left, seen.Records) or not isinstance(right, list):
        return None
    lines: list[str] = left.difference(right)
    return lines
