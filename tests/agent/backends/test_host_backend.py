"""Without a sandbox every command needs approval, whatever the judge says; a blocked one stays blocked."""

from pathlib import Path
from uuid import uuid4

import pytest

from agent.backends.backend import BackendOptions
from agent.backends.host import NO_SANDBOX
from agent.backends.table import build_backend
from agent.backends.tool_executor import build_tool_executor
from tests.tooling.tool_harness import FakeUser, NoUser
from tooling.contract.action import Action, Decision, Effect, Verdict
from tooling.contract.context import ExecCtx

BACKEND = build_backend("host", BackendOptions(workspace=Path("/"), environ={"PATH": "/usr/bin:/bin"}))


def ctx(folder: Path) -> ExecCtx:
    return ExecCtx(user_id=uuid4(), task_id=uuid4(), working_dir=folder)


@pytest.mark.parametrize(
    ("effect", "before", "after"),
    [
        ("execute", Decision.ALLOW, Decision.ASK),
        ("execute", Decision.ASK, Decision.ASK),
        ("execute", Decision.BLOCK, Decision.BLOCK),
        ("read", Decision.ALLOW, Decision.ALLOW),
        ("write", Decision.ALLOW, Decision.ALLOW),
    ],
)
def test_only_allowed_commands_need_approval_in_addition(
    effect: Effect, before: Decision, after: Decision, tmp_path: Path
) -> None:
    (adjust,) = BACKEND.adjustments
    action = Action(tool="t", effect=effect, subject="ls", cwd=tmp_path)
    found = adjust(Verdict(decision=before, commands=("ls",)), action)
    assert found.decision is after
    if before is Decision.ALLOW and effect == "execute":
        assert (found.commands_to_approve, found.rule) == (("ls",), "host-backend")
        assert found.reason == NO_SANDBOX


async def test_the_user_is_asked_about_a_harmless_command(tmp_path: Path) -> None:
    user = FakeUser()
    executor, _ = build_tool_executor(BACKEND, approver=user, asker=NoUser())
    result = await executor.call_tool("run_command", {"command": "echo hi"}, ctx(tmp_path))
    assert (result.content, user.asked) == ("hi", ["echo hi"])
