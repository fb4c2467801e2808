"""Both sides of W2, small, on a real broker: what the loop and the job write is what the model says, byte for byte."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bench import topics
from tests.bench.place import Place
from tests.bench.runs import run_job, run_loops
from tests.bench.throughput import checked, loop_of, write_job
from tests.broker import produce

pytestmark = [pytest.mark.kafka, pytest.mark.prove]
STORES = {"stores": {"sums": {"key": "bytes", "value": "json"}}}


def test_the_loop_and_the_job_write_what_the_model_says_and_a_record_too_many_is_found(kafka: str, tmp_path: Path) -> None:
    place = Place(kafka, tmp_path, tmp_path, 3000, True, lambda _: None)
    with place.attempt() as name:
        loop = loop_of(place, "w2", place.input(), f"{name}-loop")
        run_loops(loop)
        run_job(write_job(place, name, "CountAndSum", place.input(), STORES))

        assert 3000 == len(checked(place, topics.counted, [loop.output]).times_ms)
        assert 3000 == len(checked(place, topics.counted, [f"{name}-out"]).times_ms)

        produce(kafka, f"{name}-out", [("u1", "{}")])
        with pytest.raises(AssertionError, match="not what the input leads to"):
            checked(place, topics.counted, [f"{name}-out"])
    assert [] == [topic for topic in topics.names(kafka) if name in topic]
