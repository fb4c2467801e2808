"""Records that aggregates keep come back as they were given, or are refused, as those of a store."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from samzapy.api.errors import SamzapyError
from samzapy.streams import App, agg, tumbling
from samzapy.testing import Harness


@dataclass
class Seen:
    n: int
    sig: bytes = b"abcd"
    total: float = 0.5
    per_status: dict[int, int] = field(default_factory=dict)
    at: datetime | None = None


FOUND: list[Any] = []
HOW = {
    "max_by": agg.max_by(lambda v: v.n), "min_by": agg.min_by(lambda v: v.n), "top": agg.top(2, lambda v: v.n), "first": agg.first(), "last": agg.last(),
    "collect": agg.collect(),
}  # fmt: skip
KEPT = (Seen(1), Seen(1, b"\xff\x00", 1e300, {200: 3, 404: 1}, datetime(2026, 11, 25, tzinfo=ZoneInfo("Europe/Berlin"))))
CHANGED: dict[str, Any] = {
    "sig": "abcd", "total": 2**53 + 1, "at": datetime(1890, 5, 5, 12, tzinfo=ZoneInfo("Europe/Berlin")), "per_status": {"x": 1},
}  # fmt: skip


def program(how: str, value: Any, windows: bool) -> App:
    app = App()
    made = app.stream("in", key=str, value=int, watermark_delay="1s").map(lambda n: value, value=Seen)
    panes = made.window(tumbling("1m")).aggregate("kept", it=HOW[how]).values() if windows else made.aggregate("kept", it=HOW[how]).updates()
    panes.map(lambda found: str(FOUND.append(found["it"])), value=str).to("out")
    return app


@pytest.mark.parametrize("windows", [False, True])
@pytest.mark.parametrize("value", KEPT)
@pytest.mark.parametrize("how", HOW)
def test_they_come_back_as_they_were(how: str, value: Seen, windows: bool) -> None:
    with Harness(program(how, value, windows)) as h:
        h.send("in", 1, key="ada", timestamp=1)
        h.run()
        FOUND.clear()
        h.crash()
        h.send("in", 1, key="ada", timestamp=100_000)
        h.run()
        at = value.at if value.at is None else value.at.astimezone(ZoneInfo("UTC"))
        [*_, given] = FOUND
        for one in given if isinstance(given, list) else [given]:
            assert (one.n, one.sig, one.total, one.per_status, one.at) == (value.n, value.sig, value.total, value.per_status, at)


@pytest.mark.parametrize("name", CHANGED)
@pytest.mark.parametrize("how", HOW)
def test_what_would_come_back_as_another_is_refused(how: str, name: str) -> None:
    with Harness(program(how, Seen(1, **{name: CHANGED[name]}), False)) as h:
        h.send("in", 1, key="ada", timestamp=1)
        with pytest.raises(SamzapyError, match="could not be read back"):
            h.run()
