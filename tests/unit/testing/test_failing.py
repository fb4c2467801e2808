"""After the task's error a harness is where a job is: at the record that failed."""

from __future__ import annotations

import pytest

from samzapy import StreamTask
from samzapy.api.errors import TaskError
from samzapy.testing import Harness

INPUT, OUTPUT = ({"topic": topic, "key": "string", "value": "string"} for topic in ("in", "out"))


class Strict(StreamTask):
    """Takes what is not "bad"."""

    is_mended = False

    def process(self, envelope, collector, coordinator):
        if envelope.message == "bad" and not self.is_mended:
            raise ValueError("bad")
        collector.send("out", envelope.message)


@pytest.mark.parametrize("commit", [True, False])
def test_the_next_run_begins_at_the_record_that_failed_until_the_task_takes_it(commit: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    with Harness(Strict, inputs=[INPUT], outputs=[OUTPUT]) as h:
        for value in ("a", "bad", "b"):
            h.send("in", value)
        for _ in range(2):
            with pytest.raises(TaskError, match=r"in\[0\]@1"):
                h.run(commit=commit)
            assert ["a"] == [value for _, value in h.output("out")]
        h.send("in", "c")
        with pytest.raises(TaskError, match=r"in\[0\]@1"):
            h.advance(1)
        monkeypatch.setattr(Strict, "is_mended", True)
        h.run()
        assert ["a", "bad", "b", "c"] == [value for _, value in h.output("out")]
