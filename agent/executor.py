"""Runs one step: its deadline, its attempts, its questions; whatever happens, a response comes back."""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace

from agent.execution.ledger import BudgetExhausted
from agent.execution.runner import AgentRunner, AgentRunResult
from agent.execution.step_shelf import NoShelf, StepShelf
from agent.model.faults import ModelFault
from agent.protocol.channel import Channel
from agent.protocol.events import StepCompleted, StepStarted
from agent.vocabulary import exit_codes
from agent.vocabulary.plan import PlanStep
from agent.vocabulary.status import StepStatus, is_success
from agent.vocabulary.step import ExecutorProfile, ExecutorRequest, ExecutorResponse, StepOutput
from agent.vocabulary.unfinished import UnfinishedStep
from agent.vocabulary.usage import Usage
from tooling.contract.context import ExecCtx
from tooling.contract.question import Asker, Question

SUMMARY_CHARS = 400
_BACKOFF_S, _JITTER_S = 0.6, 0.2


class Executor:
    """Works steps through the agent runner: faults, limits and refusals come back as responses.

    Cancellation, a broken event log and bugs go on to the edge of the run.
    """

    def __init__(
        self,
        *,
        runner: AgentRunner,
        asker: Asker,
        channel: Channel,
        shelf: StepShelf | None = None,
        waited_s: Callable[[str], float] = lambda step_id: 0.0,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._runner = runner
        self._asker = asker
        self._channel = channel
        self._shelf = shelf or NoShelf()
        self._waited_s = waited_s
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
        note: Callable[[ExecutorResponse], None] = lambda response: None,
    ) -> ExecutorResponse:
        """Run the step to its response, telling when it starts and how it ends.

        A success is kept under `key` before anybody hears of it. `begun` is the conversation to go on with.
        `note` hears how a step ended that was cancelled: its response cannot be returned.
        """
        started = time.monotonic()
        try:
            begins = StepStarted(title=step.title, cache="resumed" if begun else "miss")
            await self._channel.publish(begins, step_id=step.id, attempt=1)
            response = (
                await self._ask_user(step, ctx)
                if step.type == "ask_user"
                else await self._attempts(request, profile, ctx)
            )
        except asyncio.CancelledError:
            cancelled = _ended(step.id, "cancelled", "Interrupted.")
            note(cancelled)
            await self._completed(cancelled, started, ctx)
            raise
        kept = key if is_success(response.status) else None
        if kept:
            await self._shelf.keep(kept, response)
        await self._completed(response, started, ctx, kept)
        return response

    async def settle(self, step: PlanStep, response: ExecutorResponse, *, key: str | None = None) -> ExecutorResponse:
        """Tell of a step whose end is known without running it: found on the shelf under `key`, or not to be asked."""
        begins = StepStarted(title=step.title, cache="hit" if key else "miss")
        await self._channel.publish(begins, step_id=step.id, attempt=1)
        # What it cost was paid by the run that did it.
        completed = _completed(replace(response, usage=Usage()), 0, key)
        await self._channel.publish(completed, step_id=step.id, attempt=1)
        return replace(response, usage=Usage())

    async def skip(self, step: PlanStep, reason: str, status: StepStatus = "skipped") -> ExecutorResponse:
        """Answer for a step that will never run."""
        response = _ended(step.id, status, f"Not run: {reason}.")
        completed = StepCompleted(status=response.status, summary=response.summary)
        await self._channel.publish(completed, step_id=step.id, attempt=1)
        return response

    async def _attempts(self, request: ExecutorRequest, profile: ExecutorProfile, ctx: ExecCtx) -> ExecutorResponse:
        """Run the attempts within the deadline of all of them together; faults become responses."""
        limit_s = min(profile.timeout_ms, request.deadline_ms or profile.timeout_ms) / 1000
        working = asyncio.ensure_future(self._until_done(request, profile, ctx))
        try:
            if await self._in_time(working, limit_s, ctx.step_id):
                return working.result()
            return _ended(request.task_id, "timeout", f"Stopped at the time limit of {limit_s:g} s.")
        except BudgetExhausted as stop:
            return _ended(request.task_id, "error", f"Stopped: {stop}.", exit_code=exit_codes.BUDGET)
        except ModelFault as fault:
            # The model layer has retried what can be retried: its verdict is final here.
            return _ended(request.task_id, "error", f"{fault}", exit_code=fault.row.exit_code)
        finally:
            working.cancel()
            await asyncio.wait({working})

    async def _in_time(self, working: asyncio.Future[ExecutorResponse], limit_s: float, step_id: str) -> bool:
        """Wait for the work; the step's clock stands still while it waits for a person."""
        began = time.monotonic()
        while not working.done():
            left = began + limit_s + self._waited_s(step_id) - time.monotonic()
            if left <= 0:
                return False
            await asyncio.wait({working}, timeout=left)
        return True

    async def _until_done(self, request: ExecutorRequest, profile: ExecutorProfile, ctx: ExecCtx) -> ExecutorResponse:
        attempt = 1
        while True:
            try:
                result = await self._runner.run(request, profile, replace(ctx, attempt=attempt))
                return _response(request.task_id, result, attempt)
            except OSError as error:
                if attempt > profile.max_retries or not is_transient(error):
                    return _ended(request.task_id, "error", f"The step failed: {error}", attempts=attempt)
            await self._sleep(_BACKOFF_S * 2 ** (attempt - 1) + random.uniform(0, _JITTER_S))
            attempt += 1

    async def _ask_user(self, step: PlanStep, ctx: ExecCtx) -> ExecutorResponse:
        question = step.ask_question or step.instruction
        answer = await self._asker.ask(Question(text=question, options=step.ask_options), ctx)
        if answer is None:
            response = _ended(step.id, "needs_input", question)
            return replace(response, next_questions=(question,), exit_code=exit_codes.FAILED)
        return _ended(step.id, "ok", f"{question} — {answer}", text=answer)

    async def _completed(
        self, response: ExecutorResponse, started: float, ctx: ExecCtx, key: str | None = None
    ) -> None:
        elapsed_ms = int((time.monotonic() - started) * 1000)
        completed = _completed(response, elapsed_ms, key)
        await self._channel.publish(completed, step_id=ctx.step_id, attempt=response.attempts)


def is_transient(error: BaseException) -> bool:
    """Say whether the same attempt may work a moment later: the network's faults, never the disk's."""
    if isinstance(error, (ConnectionError, TimeoutError)):
        return True
    words = str(error).lower()
    marks = ("timeout", "timed out", "connection", "temporarily", "reset by peer")
    return not isinstance(error, (FileNotFoundError, PermissionError)) and any(mark in words for mark in marks)


def _response(task_id: str, result: AgentRunResult, attempts: int) -> ExecutorResponse:
    return ExecutorResponse(
        task_id=task_id,
        status=result.status,
        summary=_summary(result.output),
        outputs=(StepOutput(type="text", content=result.output),),
        tool_calls=result.tool_calls,
        usage=result.usage,
        attempts=attempts,
        turns=result.turns,
        exit_code=result.exit_code,
    )


def _ended(
    task_id: str, status: StepStatus, summary: str, *, text: str = "", exit_code: int = 0, attempts: int = 1
) -> ExecutorResponse:
    outputs = (StepOutput(type="text", content=text),) if text else ()
    return ExecutorResponse(
        task_id=task_id, status=status, summary=summary, outputs=outputs, exit_code=exit_code, attempts=attempts
    )


def _completed(response: ExecutorResponse, elapsed_ms: int, key: str | None) -> StepCompleted:
    return StepCompleted(
        status=response.status,
        summary=response.summary,
        verified=response.verified,
        evidence=tuple(f"{fact.tool} exit {fact.exit_code}" for fact in response.tool_calls),
        usage=response.usage,
        cost_usd=response.usage.cost_usd,
        elapsed_ms=elapsed_ms,
        key=key,
    )


def _summary(text: str) -> str:
    return text if len(text) <= SUMMARY_CHARS else text[:SUMMARY_CHARS] + " …"
