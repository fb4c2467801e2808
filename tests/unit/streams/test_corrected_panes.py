"""Panes that may come again for the same window and key: what would count each of them is refused."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from samzapy.api.errors import ConfigurationError
from samzapy.streams import App, Stream, agg, tumbling

COUNT_EACH = [agg.count(), agg.sum(), agg.sum(exact=True), agg.mean(), agg.top(2, by=abs), agg.value_counts(str), agg.collect()]
TAKE_ONE = [agg.min(), agg.max(), agg.min_by(abs), agg.max_by(abs), agg.first(), agg.last(), agg.distinct()]


def corrected(app: App) -> Stream[str, int]:
    """The values of panes that may come again."""
    stream = app.stream("s", key=str, value=int, watermark_delay="0s")
    return stream.window(tumbling("1s"), allowed_lateness="1m").count("a").map(lambda pane: pane.value, value=int)


@pytest.mark.parametrize("made", COUNT_EACH, ids=lambda made: made.what)
def test_what_counts_each_value_is_refused_over_panes_that_may_be_corrected(made: agg.Aggregate[Any, Any, Any]) -> None:
    with pytest.raises(ConfigurationError, match=r"m of aggregate\('b'\): with allowed_lateness the window 'a' gives several panes"):
        corrected(App()).aggregate("b", m=made)


@pytest.mark.parametrize("made", TAKE_ONE, ids=lambda made: made.what)
def test_what_takes_one_of_the_values_may_follow_panes_that_may_be_corrected(made: agg.Aggregate[Any, Any, Any]) -> None:
    corrected(App()).aggregate("b", m=made)
    corrected(App()).reduce("c", lambda old, new: new)
    corrected(App()).fold("d", int, lambda old, new: new, value=int)


def test_every_aggregate_says_whether_it_counts_each_value() -> None:
    named = {name for name, made in vars(agg).items() if inspect.isfunction(made) and not name.startswith("_") and made.__module__ == agg.__name__}
    assert named == {made.what.split()[-1 if made.what.startswith("exact") else 0] for made in [*COUNT_EACH, *TAKE_ONE]}
    assert all(made.counts_each for made in COUNT_EACH)
    assert not any(made.counts_each for made in TAKE_ONE)
