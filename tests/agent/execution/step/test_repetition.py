"""Detecting calls that are repeated with the same result."""

from agent.execution.step.stalls import RepetitionDetector
from agent.vocabulary.step import CallFact

EFFECTS = {"read_file": "read", "run_command": "execute", "write_file": "write"}


def fact(tool: str = "read_file", output: str = "same", **args: object) -> CallFact:
    return CallFact(tool=tool, args=args, status="ok", exit_code=0, output_len=len(output), output_preview=output)


def make_detector() -> RepetitionDetector:
    return RepetitionDetector(EFFECTS.get)


def test_the_same_call_with_the_same_result_is_counted() -> None:
    detector = make_detector()
    assert [detector.record([fact(path="a")]) for _ in range(4)] == [0, 1, 2, 3]


def test_a_call_with_another_result_is_not_a_repetition() -> None:
    detector = make_detector()
    assert [detector.record([fact(path="log", output=str(number))]) for number in range(5)] == [0] * 5


def test_a_loop_of_several_calls_is_counted() -> None:
    detector = make_detector()
    turns = [detector.record([fact(path=path)]) for path in "ababab"]
    assert turns == [0, 0, 1, 1, 2, 2]


def test_a_turn_with_any_new_call_is_not_a_repetition() -> None:
    detector = make_detector()
    assert [detector.record([fact(path="a"), fact(path=str(number))]) for number in range(5)] == [0] * 5


def test_the_same_failure_after_another_edit_is_not_a_repetition() -> None:
    detector = make_detector()
    for number in range(6):
        assert detector.record([fact("write_file", content=str(number))]) == 0
        assert detector.record([fact("run_command", command="make test")]) == 0


def test_the_same_edit_over_and_over_is_a_repetition() -> None:
    detector = make_detector()
    turns = [detector.record([fact("write_file", content="x"), fact("run_command", command="make")]) for _ in range(4)]
    assert turns == [0, 1, 2, 3]
