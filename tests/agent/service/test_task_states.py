"""The states of a task: only the transitions of the table are possible."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.service.task import ENDED, TRANSITIONS, IllegalTransition, TaskState, check_transition

STATES = st.sampled_from(TaskState)


@given(STATES, STATES)
def test_a_transition_is_in_the_table_or_raises(before: TaskState, after: TaskState) -> None:
    if after in TRANSITIONS[before]:
        assert check_transition("t1", before, after) is after
    else:
        with pytest.raises(IllegalTransition, match=f"t1 is {before} and cannot be "):
            check_transition("t1", before, after)


@given(st.lists(STATES, max_size=12))
def test_every_walk_ends_or_returns_through_the_queue(wanted: list[TaskState]) -> None:
    state = TaskState.QUEUED
    for after in wanted:
        if after in TRANSITIONS[state]:
            assert state not in ENDED or after is TaskState.QUEUED
            state = check_transition("t1", state, after)


def test_every_state_is_reached_and_a_completed_task_stays_so() -> None:
    assert set(TRANSITIONS) == set(TaskState)
    assert {after for states in TRANSITIONS.values() for after in states} == set(TaskState)
    assert TRANSITIONS[TaskState.COMPLETED] == frozenset()
