"""Runs guard hooks around every tool call: before it is judged, and after it has a result."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from agent.hooks.hook import CallDecision, GuardedCall, GuardHook, HookFailed
from tooling.contract.interceptor import Interceptor, PendingCall
from tooling.contract.json_codec import DecodeError, decode, encode
from tooling.contract.result import REFUSED, ToolResult, error_result

ASKS_FIRST = "the hook {hook} wants you to decide"
DENIED = "Denied by the hook {hook}: {reason}"
FAILED = "Denied, because the hook {hook} {problem}. Tell the user; do not try it in another form."
BAD_ARGUMENTS = "changed the arguments to something that the tool does not accept: {error}"


class HookInterceptor(Interceptor):
    """Asks the guards in order; the first denial decides.

    `report` is called for guards that fail.
    """

    def __init__(
        self,
        guards: Sequence[GuardHook],
        *,
        in_time: Callable[[float, Awaitable[CallDecision]], Awaitable[CallDecision]],
        comment: Callable[[GuardedCall, str], Awaitable[Sequence[str]]],
        report: Callable[[str], None],
    ) -> None:
        self._guards = tuple(guards)
        self._in_time = in_time
        self._comment = comment
        self._report = report

    async def before(self, call: PendingCall) -> ToolResult | None:
        """Return the denial of a guard, or None; the guards may change arguments and approval of the call."""
        for guard in self._guards:
            try:
                decision = await self._in_time(guard.guard_timeout_s, guard.check_call(_guarded(call)))
                self._apply(guard, decision, call)
            except TimeoutError:
                return self._fail(guard, f"did not decide within {guard.guard_timeout_s:g} s")
            except DecodeError as error:
                return self._fail(guard, BAD_ARGUMENTS.format(error=error))
            except HookFailed as failure:
                return self._fail(guard, str(failure))
            except (Exception, SystemExit) as error:  # noqa: BLE001 (the edge: a guard that fails denies)
                return self._fail(guard, f"failed: {type(error).__name__}: {error}")
            if decision.permission == "deny":
                reason = decision.reason.strip() or "it gave no reason"
                message = DENIED.format(hook=guard.name, reason=reason)
                return error_result(message, exit_code=REFUSED, status="denied", rule=f"hook {guard.name}")
        return None

    async def after(self, call: PendingCall, result: ToolResult) -> ToolResult:
        """Add the remarks of guards to a result."""
        remarks = list(call.remarks)
        if result.is_ok:
            remarks += await self._comment(_guarded(call), result.content)
        text = "\n".join(remark.strip() for remark in remarks if remark.strip())
        return replace(result, content=f"{result.content}\n\n<hook>\n{text}\n</hook>") if text else result

    def _apply(self, guard: GuardHook, decision: CallDecision, call: PendingCall) -> None:
        if decision.arguments is not None and decision.permission != "deny":
            call.params = decode(call.tool.params, decision.arguments)
            call.action = call.tool.action(call.params, call.ctx)
        if decision.permission == "ask":
            call.must_ask = decision.reason or ASKS_FIRST.format(hook=guard.name)
        elif decision.permission == "allow" and not guard.is_restricted:
            call.approved_by = f"the hook {guard.name}"
        if decision.context:
            call.remarks = (*call.remarks, decision.context)

    def _fail(self, guard: GuardHook, problem: str) -> ToolResult:
        self._report(f"the hook {guard.name} {problem}; the call was denied")
        message = FAILED.format(hook=guard.name, problem=problem)
        return error_result(message, exit_code=REFUSED, status="denied", rule=f"hook {guard.name}")


def _guarded(call: PendingCall) -> GuardedCall:
    arguments = encode(call.params)
    assert isinstance(arguments, dict)
    return GuardedCall(
        tool=call.tool.spec.name,
        arguments=arguments,
        cwd=call.ctx.working_dir,
        call_id=call.ctx.call_id,
        step_id=call.ctx.step_id,
        paths=call.action.paths,
    )
