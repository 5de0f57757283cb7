"""`agent check`: verdicts as text, as JSON, and for many commands at once."""

import json
from pathlib import Path

import pytest

from tests.cli.terminal_user import User

pytestmark = pytest.mark.slow


def test_one_verdict_is_one_line(user: User) -> None:
    asked = user.agent("check", "git push origin main")
    assert (asked.exit_code, asked.stdout) == (0, "ask    git push origin main  (git-push: it publishes commits)\n")
    assert user.agent("check", "ls -la").stdout == "allow  ls -la\n"
    assert user.agent("check", "rm -rf /").stdout.startswith("block  rm -rf /  (rm-root: ")


def test_one_argument_is_a_line_and_several_arguments_are_several_lines(user: User) -> None:
    checked = user.agent("check", "ls | wc -l", "rm -rf / | cat", "git push")
    assert checked.stdout.splitlines() == [
        "allow  ls | wc -l",
        "block  rm -rf / | cat  (rm-root: it would delete the system)",
        "ask    git push  (git-push: it publishes commits)",
    ]
    assert checked.exit_code == 0


def test_a_command_that_was_not_quoted_is_said(user: User) -> None:
    checked = user.agent("check", "git", "push")
    assert checked.stdout.splitlines()[0] == "allow  git"
    assert "hint: each argument was judged as a command of its own; quote one: agent check 'git push'" in checked.stderr
    assert user.agent("check", "ls", "git push").stderr == ""


def test_nothing_is_not_judged(user: User) -> None:
    for empty in ("", "  "):
        checked = user.agent("check", "ls", empty)
        assert (checked.exit_code, checked.stdout) == (2, "")
        assert checked.stderr.startswith("error: the command is empty\n")


def test_the_verdict_is_shown_with_what_a_run_makes_of_it(user: User, tmp_path: Path) -> None:
    user.agent("rules", "add", "git", "push")
    user.agent("rules", "add", "--deny", "git", "push", "--force")
    user.agent("rules", "add", "--deny", "-C", str(tmp_path), "ls -a")
    checked = user.agent("check", "git push", "timeout 9 git push --force", "ls -a", "ls -l", "dig example.org")
    assert checked.stdout.splitlines() == [
        "ask    git push  (git-push: it publishes commits)",
        "       a run would allow it: your rule allow 'git push' (config.toml:1)",
        "ask    timeout 9 git push --force  (git-push: it publishes commits)",
        "       a run would deny it: your rule deny 'git push --force' (config.toml:2)",
        "allow  ls -a",
        f"       a run would deny it: your rule deny 'ls -a' (config.toml:5, in {tmp_path})",
        "allow  ls -l",
        "ask    dig example.org  (lookup: it reaches the network)",
    ]
    (answer,) = map(json.loads, user.agent("check", "--json", "git push --force").stdout.splitlines())
    assert (answer["decision"], answer["in_run"]) == ("ask", "deny")
    assert answer["user_rules"] == [
        {"effect": "deny", "words": "git push --force", "folder": None, "where": "config.toml:2"}
    ]


def test_an_approval_mode_that_decides_is_named(user: User) -> None:
    user.agent("config", "set", "approval_mode", "never")
    checked = user.agent("check", "git push").stdout.splitlines()
    assert checked[1:] == ["       a run would deny it: approval_mode is never (config.toml:1)"]


def test_json_output_is_one_object(user: User) -> None:
    answer = user.agent("check", "curl https://example.org/x > out.txt", "--json").document
    assert answer == {
        "command": "curl https://example.org/x > out.txt",
        "decision": "ask",
        "approval": True,
        "blocked": False,
        "reason": "it reaches the network",
        "rule": "fetch",
        "programs": ["curl"],
        "targets": ["out.txt"],
        "hosts": ["example.org"],
        "in_run": "ask",
        "user_rules": [],
    }


@pytest.mark.parametrize("words", [("check", "--json"), ("check", "-", "--json")])
def test_stdin_has_one_command_per_line(user: User, words: tuple[str, ...]) -> None:
    ended = user.agent(*words, stdin="ls\n\nrm -rf ~\ngit push\r\nécho\n")
    answers = [json.loads(line) for line in ended.stdout.splitlines()]
    assert [(answer["command"], answer["decision"]) for answer in answers] == [
        ("ls", "allow"),
        ("rm -rf ~", "block"),
        ("git push\r", "block"),
        ("écho", "ask"),
    ]
    assert ended.exit_code == 0


def test_the_given_folder_is_the_workspace(user: User, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    assert user.agent("check", f"cat {tmp_path}/a/x", "-C", "a").stdout.startswith("allow")
    assert user.agent("check", "cat ../x", "-C", "a").stdout.startswith("ask")
    assert user.agent("check", "cat ../b/x", "-C", "a", "--add-dir", str(tmp_path / "b")).stdout.startswith("allow")


def test_a_shared_machine_asks_more_often(user: User) -> None:
    assert user.agent("check", "sleep infinity").stdout.startswith("allow")
    assert user.agent("check", "sleep infinity", "--chat-type", "group").stdout.startswith("ask")


def test_an_unknown_chat_type_is_a_usage_error(user: User) -> None:
    assert user.agent("check", "ls", "--chat-type", "mob").exit_code == 2
