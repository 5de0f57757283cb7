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


def test_several_arguments_are_a_program_and_its_arguments(user: User) -> None:
    assert user.agent("check", "echo", "a; rm -rf /").stdout == "allow  echo 'a; rm -rf /'\n"


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
