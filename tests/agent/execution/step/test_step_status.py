"""A step that answered is ok or partial, depending on its calls."""

import pytest

from agent.execution.step.step_status import answer_status
from agent.vocabulary.step import CallFact
from tooling.contract.result import CallStatus

EFFECTS = {
    "run_command": "execute",
    "write_file": "write",
    "read_file": "read",
    "fetch_page": "web",
    "manage_tasks": "note",
    "plan": "note",
    "ask_user": "ask",
}


def call(tool: str, status: CallStatus = "ok", exit_code: int = 0, **args: str) -> CallFact:
    return CallFact(tool=tool, args=args, status=status, exit_code=exit_code, output_len=0, output_preview="")


def command(line: str, exit_code: int = 0) -> CallFact:
    return call("run_command", "error" if exit_code else "ok", exit_code, command=line)


READ, MISSING = call("read_file", path="a"), call("read_file", "error", 1, path="missing.txt")
WROTE, NOT_WRITTEN = call("write_file", path="a"), call("write_file", "error", 1, path="a")
ASKED, ANSWERED = call("ask_user", "error", 1, question="Which?"), call("ask_user", question="Which?")
LIST = call("manage_tasks")


@pytest.mark.parametrize(
    ("facts", "shortfall"),
    [
        ([], ""),
        ([READ, WROTE], ""),
        ([LIST, call("manage_tasks", "error", 1)], ""),
        # A failure that was followed by a success is recovered.
        ([MISSING, READ], ""),
        ([command("make", 2), command("make")], ""),
        ([WROTE, command("make test", 2), READ], ""),
        ([NOT_WRITTEN, call("plan")], ""),
        # A last look that failed takes nothing away from the work.
        ([WROTE, MISSING], ""),
        ([READ, call("fetch_page", "error", 1, url="https://example.org/x")], ""),
        # Stopped by the user, not failed.
        ([call("run_command", "cancelled", 130, command="make")], ""),
        # Nothing found, or different, is an answer.
        ([command("grep -rn TODO src", 1)], ""),
        ([WROTE, command("cd src && grep -rn TODO .", 1)], ""),
        ([command("cat a | grep b", 1)], ""),
        ([command("diff a b", 1)], ""),
        ([command("git diff --exit-code", 1)], ""),
        # Nothing worked.
        ([MISSING], "every attempt failed: read_file missing.txt"),
        ([LIST, command("pytest -q", 1)], "every attempt failed: `pytest -q` ended with exit code 1"),
        ([call("no_such_tool", "error", 127)], "every attempt failed: no_such_tool"),
        ([command("grep a b", 2)], "every attempt failed: `grep a b` ended with exit code 2"),
        ([command("make && grep a b", 1)], "every attempt failed: `make && grep a b` ended with exit code 1"),
        ([command("grep 'a", 1)], "every attempt failed: `grep 'a` ended with exit code 1"),
        # The last thing it did failed.
        ([WROTE, command("make test", 2)], "the last attempt failed: `make test` ended with exit code 2"),
        ([WROTE, command("make test", 2), LIST], "the last attempt failed: `make test` ended with exit code 2"),
        ([READ, NOT_WRITTEN], "the last attempt failed: write_file a"),
        (
            [READ, call("run_command", "timeout", 124, command="sleep 9")],
            "the last attempt failed: `sleep 9` ran out of time",
        ),
        # Whatever was done on an assumption.
        ([ASKED, WROTE], "unanswered question: Which?"),
        ([ASKED, ANSWERED, WROTE], ""),
        ([call("ask_user", "error", 2, question="Which?"), WROTE], ""),
    ],
)
def test_what_a_step_that_answered_lacks(facts: list[CallFact], shortfall: str) -> None:
    ending = answer_status(facts, EFFECTS.get)
    assert (ending.status, ending.shortfall) == ("partial" if shortfall else "ok", shortfall)
