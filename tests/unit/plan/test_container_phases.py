"""A container's life: which event leads where."""

from __future__ import annotations

import pytest

from samzapy.plan.container_phases import STARTED, TRANSITIONS, Event, IllegalTransition, Phase, next_phase


def test_every_phase_is_reached_and_only_the_last_two_are_never_left() -> None:
    assert list(Phase) == list(TRANSITIONS)
    reached = {Phase.WANTED, *(after for events in TRANSITIONS.values() for after in events.values())}
    assert set(Phase) == reached
    assert [Phase.DONE, Phase.GONE] == [phase for phase, events in TRANSITIONS.items() if not events]
    assert set(Event) == {event for events in TRANSITIONS.values() for event in events}


def test_what_was_started_is_started_again_only_after_it_was_ended() -> None:
    """(a) to (c) belong to ENDING: the only way back to WANTED from a phase in which a process may run."""
    back = {phase for phase, events in TRANSITIONS.items() if Phase.WANTED in events.values()}

    assert {Phase.PARKED, Phase.ENDING} == back
    assert not back & set(STARTED)


@pytest.mark.parametrize("phase", list(Phase))
@pytest.mark.parametrize("event", list(Event))
def test_an_event_leads_where_the_table_says_or_is_refused(phase: Phase, event: Event) -> None:
    if event in TRANSITIONS[phase]:
        assert TRANSITIONS[phase][event] is next_phase(3, phase, event)
    else:
        with pytest.raises(IllegalTransition, match=f"container 3 is {phase}"):
            next_phase(3, phase, event)
