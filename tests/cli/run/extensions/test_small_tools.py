"""To-do lists that outlive a run, files for the user, secrets that are noticed, and what ran without asking."""

import json

import pytest

from tests.cli.terminal_user import ProgramResult, User, lead_call, lead_reply

pytestmark = pytest.mark.slow


def run(user: User, *replies: dict[str, object], words: tuple[str, ...] = ()) -> ProgramResult:
    arguments = ("run", "go", "--model", user.script(*replies), "--output-format", "stream-json", "--session", "one")
    return user.agent(*arguments, *words, AGENT_PLANNING="auto")


def outputs(ended: ProgramResult) -> list[str]:
    return [str(event["output"]) for event in ended.events if event["type"] == "tool.completed"]


def test_the_to_do_list_outlives_the_run(user: User) -> None:
    add = lead_call("manage_tasks", action="add", tasks=[{"content": "look"}, {"content": "write"}])
    run(
        user, add, lead_call("manage_tasks", action="update", tasks=[{"id": 1, "status": "completed"}]), lead_reply("a")
    )
    ended = run(user, lead_call("manage_tasks", action="list"), lead_reply("b"))
    assert outputs(ended) == ["1. look [completed]\n2. write [pending]"]


def test_a_file_is_handed_to_the_user(user: User) -> None:
    ended = run(
        user,
        lead_call("write_file", path="report.txt", content="all well"),
        lead_call("write_file", path="empty.txt", content=""),
        lead_call("send_file", path="report.txt", caption="the report"),
        lead_call("send_file", path="empty.txt"),
        lead_call("send_file", path="."),
        lead_call("send_file", path="missing.txt"),
        lead_reply("done"),
    )
    sent = outputs(ended)[2:]
    assert sent[0] == "report.txt (8 bytes) is given to the user with the answer."
    assert sent[1:3] == ["empty.txt is empty and is not sent.", ". is not a file."]
    assert "report.txt" in list(ended.events[-1]["artifacts"])  # type: ignore[call-overload]


@pytest.mark.parametrize("name", [".env", "key.pem"])
def test_a_file_that_usually_holds_secrets_is_not_sent(user: User, name: str) -> None:
    (user.home / "work").mkdir()
    (user.home / "work" / name).write_text("x")
    ended = run(user, lead_call("send_file", path=name), lead_reply("done"), words=("-C", "work"))
    assert [event["status"] for event in ended.events if event["type"] == "tool.completed"] != ["ok"]


@pytest.mark.needs("bwrap")
def test_a_secret_in_what_is_written_is_named_but_not_shown(user: User) -> None:
    secret = "ghp_" + "a1B2" * 9
    ended = run(
        user,
        lead_call("write_file", path="app.py", content=f'password = read()\nGITHUB_TOKEN = "{secret}"\n'),
        lead_call("edit_file", path="app.py", old_text="password", new_text="passphrase"),
        lead_reply("done"),
    )
    warnings = [event["message"] for event in ended.events if event["type"] == "warning"]
    assert warnings == ["app.py now contains what looks like a secret: GITHUB_TOKEN"]
    assert secret not in ended.stdout + ended.stderr


def test_the_approvals_log_has_what_ran_without_asking(user: User) -> None:
    run(user, lead_call("run_command", command="true"), lead_reply("a"))
    run(user, lead_call("run_command", command="git push"), lead_reply("b"), words=("--approval-mode", "yolo"))
    assert json.loads(user.agent("approvals", "log", "--json").stdout) == []
    log = json.loads(user.agent("approvals", "log", "--unasked", "--json").stdout)
    assert [(one["command"], one["decision"], one["by"]) for one in log] == [
        ("git push", "allow", "approval mode yolo"),
        ("true", "allow", "the verdict"),
    ]


def test_the_memory_can_be_called_without_a_run(user: User) -> None:
    assert user.agent("tools", "call", "memory", "action=read").stdout == "(memory is empty)\n"
    added = user.agent("tools", "call", "memory", "action=append", "content=uses tabs", "--allow", "memory")
    assert added.exit_code == 0, added.stderr
    assert "uses tabs" in user.agent("tools", "call", "memory", "action=read").stdout
