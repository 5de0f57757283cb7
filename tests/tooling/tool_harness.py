"""A workspace with the real tools, and fake users."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from uuid import UUID

from agent.backends.backend import Backend
from agent.backends.host import HostCommandRunner
from agent.backends.process.environment import clean_environment
from agent.backends.tool_executor import LocalToolExecutor, build_tool_executor
from tooling.approvals.policy import PolicyApprover
from tooling.contract.action import Action, ApprovalAnswer, Approver, Verdict
from tooling.contract.context import ExecCtx
from tooling.contract.question import Question
from tooling.contract.result import ToolResult
from tooling.safety.secrets.redact import Redactor
from tooling.web.session import WebSession

USER = UUID(int=1)
TASK = UUID(int=2)


class NoUser:
    """No user is present."""

    async def ask(self, question: Question, ctx: ExecCtx) -> str | None:
        return None


@dataclass
class FakeUser:
    """A user who always gives the same answers and records the questions."""

    answer: str = ""
    decision: ApprovalAnswer = field(default_factory=lambda: ApprovalAnswer(decision="allow", by="person"))
    asked: list[str] = field(default_factory=list)

    async def ask(self, question: Question, ctx: ExecCtx) -> str | None:
        self.asked.append(question.text)
        return self.answer

    async def approve(self, action: Action, verdict: Verdict, ctx: ExecCtx) -> ApprovalAnswer:
        self.asked.append(action.subject)
        return self.decision


def unrestricted_backend(environ: Mapping[str, str]) -> Backend:
    """Return a backend without a sandbox that does not ask for every command."""
    return Backend(name="host", runner=HostCommandRunner(clean_environment(environ)))


class ToolHarness:
    """A workspace, the host executor, and shortcuts for calling tools."""

    def __init__(
        self,
        folder: Path,
        *,
        approver: Approver | None = None,
        asker: NoUser | FakeUser | None = None,
        web: WebSession | None = None,
    ) -> None:
        self.root = folder / "ws"
        self.root.mkdir(exist_ok=True)
        self.outputs = folder / "outputs"
        self.blobs = folder / "blobs"
        self.executor: LocalToolExecutor
        self.executor, self.warnings = build_tool_executor(
            unrestricted_backend({"PATH": os.environ["PATH"]}),
            approver=approver or PolicyApprover(mode="auto-edit"),
            asker=asker or NoUser(),
            redactor=Redactor(("correct-horse-battery",)),
            web=web,
        )

    def ctx(self, **changes: object) -> ExecCtx:
        values: dict[str, object] = {
            "user_id": USER,
            "task_id": TASK,
            "working_dir": self.root,
            "outputs_dir": self.outputs,
            "blobs_dir": self.blobs,
            "session_id": "s1",
            "step_id": "step1",
            "call_id": "call1",
        }
        return ExecCtx(**{**values, **changes})  # type: ignore[arg-type]

    async def call(self, tool: str, **args: object) -> ToolResult:
        return await self.executor.call_tool(tool, args, self.ctx())

    def write(self, name: str, text: str | bytes) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return path
