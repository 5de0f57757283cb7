"""How a run ends in the transcript: calm at the prompt, exact in a script."""

from dataclasses import replace

from agent.protocol.events import ErrorRaised, FilesChanged
from agent.vocabulary.status import INCOMPLETE
from cli.screen.format import resume_hint
from tests.cli.screen.test_transcript import plan, render, run_completed
from tooling.contract.result import FileChange

FAILED_TEST = ErrorRaised(message=f"{INCOMPLETE}the last attempt failed: `pytest -q` ended with exit code 1")
UNFINISHED = {"is_error": True, "resume": "agent resume run-1"}


def test_at_the_prompt_an_answer_after_a_failed_command_is_no_error() -> None:
    end = replace(run_completed("Two tests fail."), exit_code=1, **UNFINISHED)  # type: ignore[arg-type]
    assert render((FAILED_TEST, None), (end, None)).splitlines() == [
        "",
        "Two tests fail.",
        "",
        "  the last attempt failed: `pytest -q` ended with exit",
        "    code 1",
        "· 0.0s",
    ]


def test_at_the_prompt_what_a_reviewer_denied_is_no_error() -> None:
    error = ErrorRaised(message="rm -rf src: Denied by the reviewer.", exit_code=57)
    end = replace(run_completed("ok"), exit_code=57, **UNFINISHED)  # type: ignore[arg-type]
    assert render((error, None), (end, None)).splitlines()[-2:] == [
        "  not done: rm -rf src: Denied by the reviewer.",
        "· 0.0s",
    ]


def test_in_a_script_an_incomplete_task_is_an_error_with_an_exit_code() -> None:
    end = replace(run_completed("Two tests fail."), exit_code=1, **UNFINISHED)  # type: ignore[arg-type]
    lines = render((FAILED_TEST, None), (end, None), has_answer=False).splitlines()
    assert lines[0].startswith("error: the task is incomplete:")
    assert lines[-2:] == ["· 0.0s · exit 1", f"  {resume_hint('agent resume run-1')}"]


def test_a_run_whose_steps_are_left_can_be_resumed_at_the_prompt() -> None:
    end = replace(run_completed("Half."), exit_code=1, **UNFINISHED)  # type: ignore[arg-type]
    text = render((plan("a", "b"), None), (FAILED_TEST, None), (end, None))
    assert resume_hint("agent resume run-1", in_repl=True) in text


def test_what_commands_deleted_is_not_called_changed() -> None:
    changes = (FileChange(path="a", status="modified"), FileChange(path="b", status="deleted"))
    text = render((FilesChanged(changes=changes, command_id="c"), None), (run_completed("x"), None))
    assert text.splitlines()[-3:] == ["  commands changed a", "  commands deleted b", "· 0.0s"]
