"""check_command answers whether a command needs approval, whether it is blocked, and why."""

import json
from pathlib import Path

import pytest

from tooling.safety.action_judge import ActionJudge
from tooling.safety.check import check_command
from tooling.safety.shell.shell_judge import CONTROL_CHARACTERS_REASON

WORKSPACE = Path("/srv/project")


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("ls -la", (False, False, None)),
        ("git push", (True, False, "it publishes commits")),
        ("rm -rf /", (False, True, "it would delete the system")),
        ("sudo rm -rf /", (False, True, "it would delete the system")),
        ("ls\x1b[2J", (False, True, CONTROL_CHARACTERS_REASON)),
    ],
)
def test_check_command_returns_approval_block_and_reason(command: str, expected: tuple[bool, bool, str | None]) -> None:
    assert check_command(command, "private", workspace=WORKSPACE) == expected


@pytest.mark.parametrize("chat_type", ["group", "private", None])
def test_group_only_rules_apply_in_groups(tmp_path: Path, chat_type: str | None) -> None:
    rule = {"id": "a", "pattern": "^long ", "blocked": False, "category": "group_only", "reason": "it is shared"}
    (tmp_path / "rules.json").write_text(json.dumps({"patterns": [rule]}))
    answer = check_command("long job", chat_type, workspace=WORKSPACE, judge=ActionJudge(tmp_path))
    assert answer == ((True, False, "it is shared") if chat_type == "group" else (False, False, None))


@pytest.mark.parametrize("order", [1, -1])
def test_a_blocking_rule_wins_and_case_is_ignored(tmp_path: Path, order: int) -> None:
    rules = [
        {"id": "ask", "pattern": "^Danger", "blocked": False, "category": "x", "reason": "hm"},
        {"id": "block", "pattern": "zone$", "blocked": True, "category": "x", "reason": "no"},
    ]
    (tmp_path / "rules.json").write_text(json.dumps({"patterns": rules[::order]}))
    assert check_command("danger ZONE", "private", workspace=WORKSPACE, judge=ActionJudge(tmp_path)) == (
        False,
        True,
        "no",
    )
