"""One word for how the latest turn stands: over all states and outcomes."""

from __future__ import annotations

from itertools import product
from typing import get_args

import pytest

from bridle.loopback.status import AT_WORK, Status, status_in
from bridle.supervisor.states import ENDED, STATES, Outcome
from bridle.views.stream import State

OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
#: What a session that stands still is called, by what came of its latest turn.
STILL = {"none": "idle", "running": "running"}


@pytest.mark.parametrize("state", STATES)
def test_every_state_with_every_outcome_has_its_word(state: State) -> None:
    for outcome in OUTCOMES:
        check_word(state, outcome)


def check_word(state: State, outcome: Outcome) -> None:
    status = status_in(state, outcome, has_prompt=False)
    if state == "awaiting approval":
        assert status == "awaiting_permission"
    elif state == "running":
        assert status == "running"
    elif state not in ENDED:
        assert status == STILL.get(outcome, outcome)
    elif outcome in ("none", "running"):
        expected = {"stopped": "cancelled", "failed": "failed", "lost": "lost"}[state]
        is_nothing = state == "stopped" and outcome == "none"
        assert status == ("idle" if is_nothing else expected)
    else:
        assert status == outcome


def test_what_waits_to_be_told_is_at_work_unless_it_has_ended() -> None:
    for state, outcome in product(STATES, OUTCOMES):
        status = status_in(state, outcome, has_prompt=True)
        assert (status in AT_WORK) == (state not in ENDED), (state, outcome)


def test_no_word_is_missing_and_none_is_another() -> None:
    found = {
        status_in(state, outcome, has_prompt=has_prompt)
        for state, outcome, has_prompt in product(STATES, OUTCOMES, (True, False))
    }
    assert found == set(get_args(Status))
