"""What `samzapy checkpoint set` says besides its table."""

from __future__ import annotations

import pytest

from samzapy.cli.checkpoint import _say_what_stays
from samzapy.coordinator.checkpoint_set import Plan


@pytest.mark.parametrize(("is_one_stage", "advice"), [(True, "; to choose another offset for it, use --topic rates"), (False, "")])
def test_an_offset_for_one_topic_is_only_advised_where_it_can_be_chosen(is_one_stage: bool, advice: str, capsys: pytest.CaptureFixture[str]) -> None:
    _say_what_stays(Plan([], {}, {}, whole=("rates",)), is_one_stage)
    said = capsys.readouterr()
    assert f"rates fills a store that is emptied, so it is read from its start{advice}\n" in said.out + said.err
