"""Runs one step: its deadline, its attempts, its checks; whatever happens, a response comes back."""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TypeAlias

from agent.execution.aio import run_shielded, wait_ignoring_cancel
from agent.execution.graph.step_cache import NoStepCache, StepCache
from agent.execution.step.agent_loop import AgentRunner
from agent.execution.step.context import Conversation
from agent.execution.step.control import StepControl
from agent.execution.step.step_result import StepResult, build_response, is_final, unsaved_response
from agent.execution.step.tool_calls import ToolCallRunner
from agent.execution.step.verification import MAX_CHECKS, ToolStepRunner, Verifier
from agent.model.budget import BudgetExhausted
from agent.model.faults import ModelFault
from agent.protocol.channel import Channel, LogWriteError
from agent.protocol.events import StepCompleted, StepStarted, WarningRaised
from agent.vocabulary import exit_codes
from agent.vocabulary.errors import AgentError
from agent.vocabulary.plan import PlanStep
from agent.vocabulary.status import StepStatus, is_success
from agent.vocabulary.step import CHECK_TOOL, ExecutorProfile, ExecutorRequest, ExecutorResponse
from agent.vocabulary.unfinished import UnfinishedStep
from agent.vocabulary.usage import Usage
from tooling.contract.context import ExecCtx
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.question import Asker, Question

# Hears how a step ended before anybody else does, and again when that could not be kept.
OnResponse: TypeAlias = Callable[[ExecutorResponse], None]
_BACKOFF_S, _JITTER_S = 0.6, 0.2


@dataclass(slots=True, kw_only=True)
class _StepRun:
    """One step on its way: what was asked for and what has come of it so far."""

    step: PlanStep
    request: ExecutorRequest
    profile: ExecutorProfile
    ctx: ExecCtx
    conversation: Conversation
    started: float
    unfinished: UnfinishedStep | None = None
    attempts: int = 1

    @property
    def attempt_ctx(self) -> ExecCtx:
        return replace(self.ctx, attempt=self.attempts)

    @property
    def check_ctx(self) -> ExecCtx:
        """Return the rights of the check: what the step's own work may use does not matter for it."""
        ctx = self.attempt_ctx
        return replace(ctx, allowed_tools=(CHECK_TOOL,)) if self.profile.may_check else ctx

    @property
    def limit_s(self) -> float:
        """Return the time all attempts have together: a step's own limit can only be the stricter one."""
        of_profile = self.profile.timeout_ms / 1000
        return min(self.step.timeout_s or of_profile, of_profile)


class Executor:
    """Works steps: faults, limits, refusals and bugs come back as responses, only cancellation is raised.

    A broken event log is raised too, since nothing further may be called done.
    """

    def __init__(
        self,
        *,
        runner: AgentRunner,
        calls: ToolCallRunner,
        asker: Asker,
        channel: Channel,
        usage_of: Callable[[str], Usage] = lambda step_id: Usage(),
        waited_s: Callable[[str], float] = lambda step_id: 0.0,
        on_bug: Callable[[], str] = lambda: "this is a bug in Windlass",
        shelf: StepCache | None = None,
        wishes: StepControl | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._runner = runner
        self._verifier = Verifier(calls=calls, channel=channel)
        self._tool_steps = ToolStepRunner(calls=calls, checks=self._verifier)
        self._asker = asker
        self._channel = channel
        self._usage_of = usage_of
        self._waited_s = waited_s
        self._on_bug = on_bug
        self._cache = shelf or NoStepCache()
        self._control = wishes or StepControl()
        self._sleep = sleep

    async def run(
        self,
        step: PlanStep,
        request: ExecutorRequest,
        profile: ExecutorProfile,
        ctx: ExecCtx,
        *,
        key: str | None = None,
        begun: UnfinishedStep | None = None,
        note: OnResponse = lambda response: None,
    ) -> ExecutorResponse:
        """Run the step to its response, telling when it starts and how it ends.

        What stands is kept under `key` before anybody hears of it. `begun` is the conversation to go on with.
        `note` hears the response before anybody else: of a step that is cancelled it cannot be returned.
        """
        work = _StepRun(
            step=step,
            request=request,
            profile=profile,
            ctx=ctx,
            conversation=Conversation.from_unfinished(begun) if begun and step.type == "task" else Conversation(),
            started=time.monotonic(),
            unfinished=begun,
        )
        try:
            # Not waited for: whatever the step does that matters is on disk after this.
            started = StepStarted(title=step.title, cache="resumed" if begun else "miss")
            self._channel.emit(started, step_id=step.id, attempt=1)
            response = self._response(await self._run_guarded(work), work)
        except asyncio.CancelledError:
            response = self._response(StepResult(status="cancelled", reason="Interrupted."), work)
            note(response)
            await self._save_and_publish(response, work.started, note)
            raise
        note(response)
        await self._save_and_publish(response, work.started, note, key if is_final(response) else None)
        return response

    async def publish_result(
        self,
        step: PlanStep,
        response: ExecutorResponse,
        *,
        key: str | None = None,
        note: OnResponse = lambda response: None,
    ) -> ExecutorResponse:
        """Tell of a step whose end is known without running it: found on the shelf under `key`, or not to be asked."""
        # What it cost was paid by the run that did it.
        settled = replace(response, task_id=step.id, usage=Usage())
        note(settled)

        async def tell() -> None:
            try:
                started = StepStarted(title=step.title, cache="hit" if key else "miss")
                await self._channel.publish(started, step_id=step.id, attempt=1)
                await self._publish_completed(settled, time.monotonic(), key)
            except LogWriteError:
                note(unsaved_response(settled))
                raise

        await run_shielded(tell())
        return settled

    async def skip(self, step: PlanStep, reason: str, status: StepStatus = "skipped") -> ExecutorResponse:
        """Answer for a step that will never run."""
        response = ExecutorResponse(task_id=step.id, status=status, summary=f"Not run: {reason}.")
        completed = StepCompleted(status=response.status, summary=response.summary)
        await self._channel.publish(completed, step_id=step.id, attempt=1)
        return response

    async def _run_guarded(self, work: _StepRun) -> StepResult:
        """Turn everything that can go wrong into an ending."""
        try:
            return await self._run_with_timeout(work)
        except LogWriteError:
            raise
        except BudgetExhausted as stop:
            return _error_result(f"Stopped: {stop}.", exit_codes.BUDGET)
        except ModelFault as fault:
            return _error_result(str(fault), fault.policy.exit_code)
        except AgentError as error:
            return _error_result(error.message, error.exit_code)
        except OSError as error:
            return _error_result(f"The step failed: {error}", exit_codes.FAILED)
        except Exception as error:  # noqa: BLE001 (the edge of a step: a bug in one must not end the others)
            warning = f"internal error in step {work.step.id}: {error!r}; {self._on_bug()}"
            await self._channel.publish(WarningRaised(message=warning), step_id=work.step.id, attempt=work.attempts)
            return _error_result(f"internal error: {error!r}", exit_codes.FAILED)

    async def _run_with_timeout(self, work: _StepRun) -> StepResult:
        """Work until done or out of time; the clock stands still while the step waits for a person."""
        working = asyncio.ensure_future(self._run_attempts(work))
        try:
            with self._control.track(work.step.id, working):
                return await self._wait_for_result(work, working)
        finally:
            working.cancel()
            await wait_ignoring_cancel(working)
            # Of what is over anyway nobody wants to hear a failure.
            working.cancelled() or working.exception()

    async def _wait_for_result(self, work: _StepRun, working: "asyncio.Future[StepResult]") -> StepResult:
        while not working.done():
            left = work.started + work.limit_s + self._waited_s(work.step.id) - time.monotonic()
            if left <= 0:
                return StepResult(status="timeout", reason=f"Stopped at the time limit of {work.limit_s:g} s.")
            await asyncio.wait({working}, timeout=left)
        if working.cancelled() and self._control.is_stopped(work.step.id):
            return StepResult(status="cancelled", reason="Stopped by the person.")
        return working.result()

    async def _run_attempts(self, work: _StepRun) -> StepResult:
        """Make attempts; each goes on where the last one stopped, so nothing that was done is done again."""
        while True:
            try:
                return await self._attempt(work)
            except Exception as error:
                if work.attempts > work.profile.max_retries or not is_transient(error):
                    raise
                warning = f"step {work.step.id}: {error}; trying again"
            await self._channel.publish(WarningRaised(message=warning), step_id=work.step.id, attempt=work.attempts)
            await self._sleep(backoff_s(work.attempts))
            work.attempts += 1

    async def _attempt(self, work: _StepRun) -> StepResult:
        step, talk = work.step, work.conversation
        if step.type == "ask_user":
            return await self._ask_user(step, work.attempt_ctx)
        if step.type == "tool":
            return await self._tool_steps.run(
                step, talk, work.attempt_ctx, check_ctx=work.check_ctx, before=work.unfinished
            )
        if not work.request.goal.strip():
            return _error_result("The step does not say what to do.", exit_codes.FAILED)
        while True:
            ending = await self._runner.run(work.request, work.profile, work.attempt_ctx, talk)
            if not step.verify or not is_success(ending.status):
                return ending
            can_mend = not ending.exit_code and len(talk.checks) < MAX_CHECKS
            ending = await self._verifier.check(step.verify, ending, talk, work.check_ctx)
            if ending.verified is not False or not can_mend:
                return ending
            await self._verifier.report_failure(talk, work.attempt_ctx)

    async def _ask_user(self, step: PlanStep, ctx: ExecCtx) -> StepResult:
        question = step.ask_question or step.instruction
        answer = await self._asker.ask(Question(text=question, options=step.ask_options), ctx)
        if answer is None:
            return StepResult(status="needs_input", reason=question, questions=(question,), exit_code=exit_codes.FAILED)
        return StepResult(status="ok", text=answer, reason=f"{question} — {answer}")

    def _response(self, ending: StepResult, work: _StepRun) -> ExecutorResponse:
        usage = self._usage_of(work.step.id)
        return build_response(work.step.id, ending, work.conversation, usage=usage, attempts=work.attempts)

    async def _save_and_publish(
        self, response: ExecutorResponse, began: float, note: OnResponse, key: str | None = None
    ) -> None:
        """Keep and tell of a response; an interruption waits until both are done."""

        async def keep_and_tell() -> None:
            try:
                if key:
                    await self._cache.put(key, response)
                await self._publish_completed(response, began, key)
            except LogWriteError:
                note(unsaved_response(response))
                raise
            except OSError as error:
                note(unsaved_response(response))
                await self._publish_completed(unsaved_response(response), began)
                problem = f"the result of step {response.task_id} cannot be kept: {error.strerror or error}"
                raise LogWriteError(problem, "free some space or set AGENT_SANDBOX to another folder") from error

        await run_shielded(keep_and_tell())

    async def _publish_completed(self, response: ExecutorResponse, began: float, key: str | None = None) -> None:
        completed = StepCompleted(
            status=response.status,
            summary=response.summary,
            verified=response.verified,
            evidence=tuple(f"{fact.tool} exit {fact.exit_code}" for fact in response.tool_calls),
            usage=response.usage,
            cost_usd=response.usage.cost_usd,
            elapsed_ms=int((time.monotonic() - began) * 1000),
            key=key,
        )
        await self._channel.publish(completed, step_id=response.task_id, attempt=response.attempts)


def is_transient(error: BaseException) -> bool:
    """Say whether the same attempt may work a moment later: the network's faults, never the disk's.

    Faults of a model are none of them: the model layer has tried again what can be tried again.
    """
    if isinstance(error, (AgentError, ModelFault, FileNotFoundError, PermissionError)):
        return False
    words = str(error).lower()
    if "blocked" in words or "not allowed" in words:
        return False
    marks = ("timeout", "timed out", "connection", "temporarily", "reset by peer")
    return isinstance(error, (ConnectionError, TimeoutError)) or any(mark in words for mark in marks)


def backoff_s(attempt: int) -> float:
    """Return how long to wait after an attempt: longer each time, and never two steps at the same moment."""
    return _BACKOFF_S * float(2 ** (attempt - 1)) + random.uniform(0, _JITTER_S)


def _error_result(reason: str, exit_code: int) -> StepResult:
    return StepResult(status="error", reason=reason, exit_code=exit_code)
