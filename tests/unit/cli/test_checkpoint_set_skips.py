"""`checkpoint set` says which records nobody will read."""

from __future__ import annotations

import pytest

from samzapy.cli.checkpoint import _say_what_is_skipped
from samzapy.coordinator.checkpoint_set import Plan
from samzapy.model.offsets import TopicPartition
from samzapy.plan.checkpoint_orders import Step


@pytest.mark.parametrize(
    ("before", "after", "is_chosen", "said"),
    [
        (58, 98, True, "skips records that were not read yet, at most this many: 40 in in[1]\n"),
        (58, 58, True, ""),
        (58, 10, True, ""),
        (58, 98, False, ""),
        (None, 98, True, "no checkpoint says how far these partitions were read; records before these offsets that were not read are skipped: in[1] before 98\n"),
        (None, 0, True, ""),
        (None, None, False, ""),
    ],
)
def test_what_is_skipped_is_told(before: int | None, after: int | None, is_chosen: bool, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    _say_what_is_skipped(Plan([Step("Partition 1", TopicPartition("in", 1), before, after, is_chosen)], {}, {}))
    assert said == capsys.readouterr().err.replace("\n  ", " ")
