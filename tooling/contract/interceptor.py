"""Interceptors: code around every tool call, before it runs and after it has a result."""

from tooling.contract.action import Action, ApprovalAnswer, Verdict
from tooling.contract.context import ExecCtx
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.result import ToolResult
from tooling.contract.tool import AnyTool


@dataclass(slots=True, kw_only=True)
class PendingCall:
    """A tool call that is decoded but has not run.

    Interceptors may replace `params`, with the resulting `action`. `verdict` and `approval` are set by the
    interceptors that judge and approve. `must_ask` is a reason to ask the user regardless of the verdict, `approved_by`
    names what approved the call in the user's place; neither affects blocked calls. `remarks` are added to the
    result.
    """

    tool: AnyTool
    params: object
    action: Action
    ctx: ExecCtx
    verdict: Verdict | None = None
    approval: ApprovalAnswer | None = None
    must_ask: str = ""
    approved_by: str = ""
    remarks: tuple[str, ...] = ()


class Interceptor:
    """Sees every call of a run; the default lets everything pass unchanged."""

    async def before(self, call: PendingCall) -> ToolResult | None:
        """Return None to let the call pass, or a result to return instead."""
        return None

    async def after(self, call: PendingCall, result: ToolResult) -> ToolResult:
        """Return the result of a call that ran, possibly changed."""
        return result
