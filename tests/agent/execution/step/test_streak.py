"""Ending a step after consecutive failures."""

from agent.execution.step.stalls import FailureStreak
from agent.vocabulary.step import CallFact


def fact(tool: str = "read_file", status: str = "error", **args: object) -> CallFact:
    return CallFact(tool=tool, args=args, status=status, exit_code=1, output_len=0, output_preview="no")  # type: ignore[arg-type]


def test_three_turns_with_only_failures_end_a_step() -> None:
    streak = FailureStreak()
    assert [streak.record([fact()]) for _ in range(3)] == [None, None, "error"]


def test_a_success_resets_the_count() -> None:
    streak = FailureStreak()
    turns = [streak.record([fact(status=status)]) for status in ("error", "error", "ok", "error", "error")]
    assert turns == [None] * 5


def test_the_same_failing_command_three_times_ends_a_step() -> None:
    streak = FailureStreak()
    assert [streak.record([fact("run_command", command="make")]) for _ in range(3)] == [None, None, "error"]


def test_different_failing_commands_do_not_end_a_step() -> None:
    streak = FailureStreak()
    assert all(streak.record([fact("run_command", command=f"test {n}")]) is None for n in range(20))


def test_three_turns_with_only_refusals_block_the_step() -> None:
    streak = FailureStreak()
    statuses = ("blocked", "denied", "blocked")
    assert [streak.record([fact("run_command", status, command="rm -rf /")]) for status in statuses][-1] == "blocked"
