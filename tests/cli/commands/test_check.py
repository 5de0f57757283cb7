"""`agent check`: the verdict for people, for scripts, for many commands at once."""

import json
from pathlib import Path

import pytest

from tests.cli.terminal_user import User

pytestmark = pytest.mark.slow


def test_one_command_is_told_in_one_line(user: User) -> None:
    asked = user.agent("check", "git push origin main")
    assert (asked.exit_code, asked.stdout) == (0, "ask    git push origin main  (git-push: it publishes commits)\n")
    assert user.agent("check", "ls -la").stdout == "allow  ls -la\n"
    assert user.agent("check", "rm -rf /").stdout.startswith("block  rm -rf /  (rm-root: ")


def test_several_words_are_an_argv(user: User) -> None:
    assert user.agent("check", "echo", "a; rm -rf /").stdout == "allow  echo 'a; rm -rf /'\n"


def test_a_script_reads_one_object(user: User) -> None:
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
def test_many_commands_come_one_a_line(user: User, words: tuple[str, ...]) -> None:
    ended = user.agent(*words, stdin="ls\n\nrm -rf ~\ngit push\r\nécho\n")
    answers = [json.loads(line) for line in ended.stdout.splitlines()]
    assert [(answer["command"], answer["decision"]) for answer in answers] == [
        ("ls", "allow"),
        ("rm -rf ~", "block"),
        ("git push\r", "block"),
        ("écho", "ask"),
    ]
    assert ended.exit_code == 0


def test_the_folder_is_the_workspace(user: User, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    assert user.agent("check", f"cat {tmp_path}/a/x", "-C", "a").stdout.startswith("allow")
    assert user.agent("check", "cat ../x", "-C", "a").stdout.startswith("ask")
    assert user.agent("check", "cat ../b/x", "-C", "a", "--add-dir", str(tmp_path / "b")).stdout.startswith("allow")


def test_a_shared_machine_asks_for_more(user: User) -> None:
    assert user.agent("check", "sleep infinity").stdout.startswith("allow")
    assert user.agent("check", "sleep infinity", "--chat-type", "group").stdout.startswith("ask")


def test_wrong_use_is_told(user: User) -> None:
    assert user.agent("check", "ls", "--chat-type", "mob").exit_code == 2
