"""When a step goes in circles."""

from agent.execution.step.agent_loop import RepetitionDetector
from agent.vocabulary.step import CallFact

EFFECTS = {"read_file": "read", "run_command": "execute", "write_file": "write"}


def fact(tool: str = "read_file", output: str = "same", **args: object) -> CallFact:
    return CallFact(tool=tool, args=args, status="ok", exit_code=0, output_len=len(output), output_preview=output)


def repetition() -> RepetitionDetector:
    return RepetitionDetector(EFFECTS.get)


def test_the_same_call_with_the_same_result_is_counted() -> None:
    watch = repetition()
    assert [watch.record([fact(path="a")]) for _ in range(4)] == [0, 1, 2, 3]


def test_another_result_is_news() -> None:
    watch = repetition()
    assert [watch.record([fact(path="log", output=str(number))]) for number in range(5)] == [0] * 5


def test_a_circle_of_several_calls_is_a_circle() -> None:
    watch = repetition()
    turns = [watch.record([fact(path=path)]) for path in "ababab"]
    assert turns == [0, 0, 1, 1, 2, 2]


def test_a_turn_with_anything_new_in_it_is_no_repetition() -> None:
    watch = repetition()
    assert [watch.record([fact(path="a"), fact(path=str(number))]) for number in range(5)] == [0] * 5


def test_tests_that_fail_the_same_way_after_another_edit_are_work() -> None:
    watch = repetition()
    for number in range(6):
        assert watch.record([fact("write_file", content=str(number))]) == 0
        assert watch.record([fact("run_command", command="make test")]) == 0


def test_an_edit_that_is_made_again_and_again_is_a_circle() -> None:
    watch = repetition()
    turns = [watch.record([fact("write_file", content="x"), fact("run_command", command="make")]) for _ in range(4)]
    assert turns == [0, 1, 2, 3]
