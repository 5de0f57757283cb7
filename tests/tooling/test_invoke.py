"""The invoker: every call becomes a result."""

import asyncio
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.tooling.tool_harness import TASK, USER, FakeUser, NoUser, ToolHarness
from tooling.approvals.policy import PolicyApprover
from tooling.contract.action import Action, ApprovalAnswer, Approver, Judge, Verdict
from tooling.contract.command import CommandOutput, CommandRequest
from tooling.contract.context import ExecCtx
from tooling.contract.json_codec import schema_of
from tooling.contract.result import ToolResult
from tooling.contract.tool import Tool, ToolServices, ToolSpec
from tooling.finish import NOT_SAVED, OutputFinisher, reserve_output
from tooling.invoke import Invoker
from tooling.jobs import BackgroundJobs
from tooling.permission import PermissionInterceptor
from tooling.registry import ToolRegistry
from tooling.safety.action_judge import ActionJudge
from tooling.safety.secrets.redact import Redactor


@dataclass(frozen=True, slots=True, kw_only=True)
class FakeToolParams:
    what: str = "nothing"


class FakeTool(Tool[FakeToolParams]):
    params = FakeToolParams
    spec = ToolSpec(name="do", description="Do.", parameters=schema_of(FakeToolParams), effect="note", timeout_ms=100)

    async def run(self, params: FakeToolParams, ctx: ExecCtx) -> ToolResult:
        match params.what:
            case "raise":
                raise ValueError("broken inside")
            case "hang":
                await asyncio.sleep(60)
            case "own timeout":
                raise TimeoutError("the printer did not answer")
        return ToolResult("done")


class ApprovalTool(FakeTool):
    spec = ToolSpec(
        name="delete",
        description="Delete.",
        parameters=schema_of(FakeToolParams),
        effect="note",
        requires_approval=True,
    )


class NoCommandRunner:
    async def run(self, request: CommandRequest) -> CommandOutput:
        raise AssertionError("nothing may run")


class FailingJudge:
    """A judge that raises."""

    def judge(self, action: Action, ctx: ExecCtx) -> Verdict:
        raise RuntimeError("cannot think")


def permission(judge: Judge, approver: Approver) -> PermissionInterceptor:
    return PermissionInterceptor(judge, approver)


def build_invoker(*, user: FakeUser | None = None, judge: FailingJudge | None = None) -> Invoker:
    services = ToolServices(runner=NoCommandRunner(), asker=NoUser(), jobs=BackgroundJobs(NoCommandRunner()))
    return Invoker(
        registry=ToolRegistry((FakeTool(services), ApprovalTool(services))),
        interceptors=(permission(judge or ActionJudge(), PolicyApprover(user=user)),),
        finisher=OutputFinisher(Redactor()),
    )


def ctx(folder: Path) -> ExecCtx:
    return ExecCtx(user_id=USER, task_id=TASK, working_dir=folder)


@pytest.mark.parametrize(
    ("what", "exit_code", "status", "content"),
    [
        ("nothing", 0, "ok", "done"),
        ("raise", 1, "error", "do failed: ValueError: broken inside"),
        ("hang", 124, "timeout", "do timed out after 0.1 s."),
        ("own timeout", 1, "error", "do failed: TimeoutError: the printer did not answer"),
    ],
)
async def test_exceptions_and_timeouts_of_a_tool_become_results(
    tmp_path: Path, what: str, exit_code: int, status: str, content: str
) -> None:
    result = await build_invoker().invoke("do", {"what": what}, ctx(tmp_path))
    assert (result.exit_code, result.meta.status, result.content) == (exit_code, status, content)


async def test_cancellation_propagates(tmp_path: Path) -> None:
    services = ToolServices(runner=NoCommandRunner(), asker=NoUser(), jobs=BackgroundJobs(NoCommandRunner()))
    started = asyncio.Event()

    class Waiter(FakeTool):
        spec = ToolSpec(
            name="wait", description="Wait.", parameters=schema_of(FakeToolParams), effect="note", timeout_ms=0
        )

        async def run(self, params: FakeToolParams, ctx: ExecCtx) -> ToolResult:
            started.set()
            await asyncio.Event().wait()
            raise AssertionError

    invoker = Invoker(
        registry=ToolRegistry((Waiter(services),)),
        interceptors=(permission(ActionJudge(), PolicyApprover()),),
        finisher=OutputFinisher(Redactor()),
    )
    call = asyncio.create_task(invoker.invoke("wait", {}, ctx(tmp_path)))
    await started.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call


async def test_a_tool_that_requires_approval_runs_only_with_it(tmp_path: Path) -> None:
    refused = await build_invoker().invoke("delete", {}, ctx(tmp_path))
    assert (refused.meta.status, refused.exit_code) == ("denied", 126)
    assert "--allow delete" in refused.content
    assert (await build_invoker(user=FakeUser()).invoke("delete", {}, ctx(tmp_path))).content == "done"


async def test_a_failing_judge_means_that_the_user_is_asked(tmp_path: Path) -> None:
    user = FakeUser(decision=ApprovalAnswer(decision="deny", by="person", remark="no"))
    result = await build_invoker(user=user, judge=FailingJudge()).invoke("do", {}, ctx(tmp_path))
    assert result.meta.status == "denied"
    assert "could not be judged" in result.content


async def test_arguments_that_are_not_an_object_are_rejected(tmp_path: Path) -> None:
    result = await build_invoker().invoke("do", ["x"], ctx(tmp_path))  # type: ignore[arg-type]
    assert (result.exit_code, "expected an object, got list" in result.content) == (2, True)


async def test_an_approved_command_returns_its_output_to_the_same_call(tmp_path: Path) -> None:
    user = FakeUser()
    harness = ToolHarness(tmp_path, approver=PolicyApprover(user=user))
    harness.write("old/file", "x")
    result = await harness.call("run_command", command="rm -rv old")
    assert user.asked == ["rm -rv old"]
    assert "removed" in result.content


async def test_a_denied_command_reaches_the_model_with_the_users_remark(tmp_path: Path) -> None:
    user = FakeUser(decision=ApprovalAnswer(decision="deny", by="person", remark="Use the archive instead."))
    harness = ToolHarness(tmp_path, approver=PolicyApprover(user=user))
    harness.write("old/file", "x")
    result = await harness.call("run_command", command="rm -r old")
    assert result.content == "Denied by the user: it deletes old and everything in it. Use the archive instead."
    assert (harness.root / "old" / "file").read_text() == "x"


@pytest.mark.parametrize(("choice", "status"), [("deny", "denied"), ("defer", "deferred"), ("fail", "denied")])
async def test_without_a_user_the_status_follows_on_approval(tmp_path: Path, choice: str, status: str) -> None:
    harness = ToolHarness(tmp_path, approver=PolicyApprover(on_approval=choice))  # type: ignore[arg-type]
    result = await harness.call("run_command", command="git push")
    assert (result.meta.status, result.exit_code, result.meta.rule) == (status, 126, "git push")


async def test_empty_output_is_reported_and_an_empty_failure_names_the_command(harness: ToolHarness) -> None:
    assert (await harness.call("run_command", command="true")).content == "(empty output)"
    failed = await harness.call("run_command", command="false")
    assert failed.content == f"Exit 1: no output from 'false' in {harness.root}"


async def test_a_missing_working_directory_is_an_error_result(harness: ToolHarness) -> None:
    ctx = harness.ctx(working_dir=harness.root / "gone")
    result = await harness.executor.call_tool("run_command", {"command": "true"}, ctx)
    assert (result.exit_code, "could not be started" in result.content) == (1, True)


async def test_a_timed_out_command_returns_its_output_so_far(harness: ToolHarness) -> None:
    result = await harness.call("run_command", command="echo working; sleep 60", timeout_s=0.3)
    assert result.content == (
        "Timed out after 0.3 s; the command and all its processes were stopped. Output so far:\nworking"
    )


async def test_without_an_outputs_folder_trimming_is_still_reported(harness: ToolHarness) -> None:
    ctx = harness.ctx(outputs_dir=None)
    result = await harness.executor.call_tool("run_command", {"command": "seq 1 5000"}, ctx)
    assert f"bytes; {NOT_SAVED} ...]" in result.content
    assert result.meta.output_path is None


async def test_outputs_of_repeated_calls_do_not_overwrite_each_other(harness: ToolHarness) -> None:
    first = await harness.call("run_command", command="seq 1 5000")
    second = await harness.call("run_command", command="seq 5000 9999")
    assert first.meta.output_path != second.meta.output_path


class WebTool(FakeTool):
    spec = ToolSpec(name="ask_web", description="Ask.", parameters=schema_of(FakeToolParams), effect="web")


@pytest.mark.parametrize(("deny", "status"), [((), "ok"), (("ask_web",), "denied")])
async def test_the_web_needs_no_approval_but_can_be_denied(tmp_path: Path, deny: tuple[str, ...], status: str) -> None:
    harness = ToolHarness(tmp_path)
    services = ToolServices(runner=NoCommandRunner(), asker=NoUser(), jobs=BackgroundJobs(NoCommandRunner()))
    invoker = Invoker(
        registry=ToolRegistry([WebTool(services)]),
        interceptors=(permission(ActionJudge(), PolicyApprover(deny=deny)),),
        finisher=OutputFinisher(Redactor(())),
    )
    assert (await invoker.invoke("ask_web", {}, harness.ctx())).meta.status == status
    assert WebTool.spec.parallelizable


async def test_reserved_output_files_of_the_same_call_have_distinct_names(harness: ToolHarness) -> None:
    ctx = harness.ctx()
    names = [reserved.name for _ in range(12) if (reserved := reserve_output(ctx))]
    stem = names[0].removesuffix(".txt")
    assert names == [f"{stem}.txt", *(f"{stem}-{number}.txt" for number in range(2, 13))]
