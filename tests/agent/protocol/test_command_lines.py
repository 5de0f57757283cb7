"""Commands as JSON lines: what a program may send, and what it is told about the rest."""

import json
from pathlib import Path

import pytest

from agent.protocol.codec import CodecError
from agent.protocol.command_lines import End, Interrupt, LineCommand, parse_command
from agent.protocol.commands import AnswerQuestion, ResolveApproval, Steer, Submit


def parse(**data: object) -> LineCommand:
    return parse_command(json.dumps(data).encode())


@pytest.mark.parametrize(
    ("data", "command"),
    [
        ({"type": "request", "text": " go "}, Submit(prompt="go")),
        (
            {"type": "request", "text": "go", "attachments": ["a.txt", "b.png"]},
            Submit(prompt="go", files=(Path("a.txt"), Path("b.png"))),
        ),
        ({"type": "answer", "question_id": "q-1", "answer": "blue"}, AnswerQuestion(question_id="q-1", answer="blue")),
        (
            {"type": "approve", "approval_id": "a", "decision": "allow"},
            ResolveApproval(approval_id="a", decision="allow"),
        ),
        (
            {"type": "approve", "approval_id": "a", "decision": "allow", "remember": "project"},
            ResolveApproval(approval_id="a", decision="allow", scope="project"),
        ),
        (
            {"type": "approve", "approval_id": "a", "decision": "deny", "remark": "not now"},
            ResolveApproval(approval_id="a", decision="deny", remark="not now"),
        ),
        (
            {"type": "approve", "approval_id": "a", "decision": "edit", "command": "ls"},
            ResolveApproval(approval_id="a", decision="allow", command="ls"),
        ),
        ({"type": "steer", "text": "use tabs"}, Steer(text="use tabs")),
        ({"type": "interrupt"}, Interrupt()),
        ({"type": "end"}, End()),
    ],
)  # fmt: skip
def test_every_command_is_parsed(data: dict[str, object], command: LineCommand) -> None:
    assert parse(**data) == command


@pytest.mark.parametrize("content", ["go", [{"type": "text", "text": "go"}]])
def test_a_user_message_of_claude_code_is_a_request(content: object) -> None:
    message = {"role": "user", "content": content, "id": "x"}
    assert parse(type="user", message=message, session_id="", parent_tool_use_id=None) == Submit(prompt="go")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("hello", "not JSON: "),
        ("[1]", "not an object"),
        ("{}", "unknown type ''; known types: request, user, resume, answer, approve, steer, interrupt, end"),
        ('{"type": "aprove"}', "unknown type 'aprove', did you mean approve?; known types: "),
        ('{"type": "request"}', "request: missing field text (text)"),
        ('{"type": "request", "text": "  "}', "request: the text is empty"),
        ('{"type": "request", "text": "a\\u0000b"}', "request: the text contains a NUL character"),
        ('{"type": "request", "text": "x", "attachment": []}', "request: unknown field attachment"),
        ('{"type": "approve", "approval_id": "a", "decision": "yes"}', "approve: decision: expected one of"),
        ('{"type": "approve", "approval_id": "a", "decision": "edit"}', "approve: command is the edited command"),
        ('{"type": "approve", "approval_id": "a", "decision": "allow", "command": "x"}', "approve: command is the"),
        ('{"type": "approve", "approval_id": "a", "decision": "deny", "remember": "run"}', "approve: only the"),
        ('{"type": "user"}', "user: missing field message"),
        ('{"type": "user", "message": {"role": "user", "content": [{"type": "image"}]}}', "user: message.content: "),
        ('{"type": "user", "message": {"role": "user", "content": 3}}', "user: message.content: only text"),
        ('{"type": "user", "message": {"role": "assistant", "content": "x"}}', "user: message.role: expected"),
        ('{"type": "end", "now": true}', "end: unknown field now"),
        ("[" * 100_000, "not JSON"),
        ("\udcff", "not JSON"),
    ],
)  # fmt: skip
def test_a_line_that_is_no_command_is_refused_with_a_reason(line: str, message: str) -> None:
    with pytest.raises(CodecError) as refused:
        parse_command(line.encode("utf-8", "surrogateescape"))
    assert str(refused.value).startswith(message)
