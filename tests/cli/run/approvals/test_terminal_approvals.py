"""An approval shows exactly the command that will run."""

import pytest

from agent.protocol.events import ApprovalRequested
from cli.run.terminal_approvals import answer_prompt
from cli.screen.cards import CardRenderer, size_note
from cli.screen.colors import Paint

REQUEST = {"approval_id": "1", "cwd": "/w", "reason": "it publishes", "tool": "run_command"}


def lines_of(command: str, rule: str = "") -> list[str]:
    card = CardRenderer(paint=Paint(has_color=False), width=80, rows=24)
    return card.lines(ApprovalRequested(command=command, rule=rule, **REQUEST))


@pytest.mark.parametrize(
    ("hidden", "seen"),
    [
        ("\u202e", "\\u202e"),
        ("\u2066", "\\u2066"),
        ("\u200b", "\\u200b"),
        ("\u00a0", "\\xa0"),
        ("\u3000", "\\u3000"),
        ("\u3164", "\\u3164"),
        ("\u2800", "\\u2800"),
        ("\u034f", "\\u034f"),
        ("\ufe00", "\\ufe00"),
        ("\U000e0041", "\\U000e0041"),
        ("\r", "\\r"),
        ("\b", "\\x08"),
        ("\x9b2J", "\\x9b2J"),
        ("\ud800", "\\ud800"),
    ],
)
def test_invisible_characters_are_escaped(hidden: str, seen: str) -> None:
    assert lines_of(f"ls {hidden} x")[0] == f"allow this?  ls {seen} x"


def test_a_line_break_is_shown_as_a_new_line() -> None:
    assert lines_of("echo a\nrm -rf b")[:2] == ["allow this?  echo a", "  │ rm -rf b"]
    assert lines_of(r"printf 'a\nb'")[0] == r"allow this?  printf 'a\nb'"


def test_a_command_cannot_forge_lines_of_the_approval() -> None:
    lines = lines_of("git push\n  in /tmp\n  because you asked for it\n  it runs nothing")
    assert [line for line in lines if line.startswith("  because")] == ["  because it publishes"]


def test_blanks_cannot_push_the_rest_out_of_sight() -> None:
    assert lines_of(f"ls{' ' * 5000}; git push")[0] == "allow this?  ls [5000 spaces] ; git push"


@pytest.mark.parametrize("command", [f"git push; echo {'a' * 100_000}", f"echo {'a' * 100_000}; git push"])
def test_a_long_command_is_shown_completely_with_its_length(command: str) -> None:
    lines = lines_of(command)
    assert command in lines[0]
    assert lines[1] == size_note(1, len(command))
    many = lines_of("true\n" * 100 + "git push")
    assert many[100:102] == [
        "  │ git push",
        size_note(101, 508),
    ]


def test_invisible_characters_in_the_proposed_rule_are_escaped() -> None:
    assert "'git push\\u3164x' always" in answer_prompt(
        ApprovalRequested(command="x", rule="git push\u3164x", **REQUEST)
    )
