"""Runs one step: deadline, attempts, checks; every end of a step is a response."""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import replace
from typing import TypeVar

from agent.execution.graph.step_cache import NoStepCache, StepCache
from agent.execution.step.agent_loop import AgentRunner
from agent.execution.step.context import Conversation
from agent.execution.step.control import StepControl
from agent.execution.step.step_result import (
    StepCancelled,
    StepNotSaved,
    StepResult,
    build_response,
    is_final,
    unsaved_response,
)
from agent.execution.step.tool_calls import ToolCallRunner
from agent.execution.step.verification import MAX_CHECKS, StepCheck, ToolStepRunner, Verifier
from agent.model.budget import BudgetExhausted
from agent.model.faults import ModelFault
from agent.protocol.channel import Channel, LogWriteError
from agent.protocol.events import StepCompleted, StepStarted, WarningRaised
from agent.vocabulary import exit_codes
from agent.vocabulary.errors import AgentError
from agent.vocabulary.plan import PlanStep
from agent.vocabulary.status import is_success
from agent.vocabulary.step import CHECK_TOOL, ExecutorProfile, ExecutorRequest, ExecutorResponse
from agent.vocabulary.unfinished import UnfinishedStep
from agent.vocabulary.usage import Usage
from tooling.contract.context import ExecCtx
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.question import Asker, Question

T = TypeVar("T")


async def _wait_done(task: "asyncio.Future[T]", limit_s: float | None = None) -> None:
    """Wait until the task is done or the time is over: `asyncio.wait` for one task, which takes a third as long."""
    loop = asyncio.get_running_loop()
    waiter: asyncio.Future[None] = loop.create_future()

    def wake(*_: object) -> None:
        if not waiter.done():
            waiter.set_result(None)

    task.add_done_callback(wake)
    timer = None if limit_s is None else loop.call_later(limit_s, wake)
    try:
        await waiter
    finally:
        task.remove_done_callback(wake)
        if timer:
            timer.cancel()


async def wait_ignoring_cancel(task: "asyncio.Future[T]") -> None:
    """Wait until the task is done, successfully or not; re-raise a cancellation afterwards."""
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await _wait_done(task)
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled:
        raise cancelled


async def _publish_shielded(publishing: Coroutine[None, None, None], response: ExecutorResponse) -> None:
    """Publish a response completely, even if interrupted meanwhile; raises StepCancelled and StepNotSaved."""
    task = asyncio.create_task(publishing)
    try:
        await wait_ignoring_cancel(task)
    except asyncio.CancelledError:
        failure = task.exception()
        raise StepCancelled(unsaved_response(response) if failure else response) from failure
    try:
        task.result()
    except LogWriteError as error:
        raise StepNotSaved(error, unsaved_response(response)) from error


_BACKOFF_S, _JITTER_S = 0.6, 0.2
_RETRIES = 2
INTERRUPTED = "Interrupted."
NO_INSTRUCTION = "The step has no instruction."


@dataclass(slots=True, kw_only=True)
class _StepRun:
    """A running step: the request and its results so far."""

    step: PlanStep
    request: ExecutorRequest
    profile: ExecutorProfile
    ctx: ExecCtx
    conversation: Conversation
    started: float
    unfinished: UnfinishedStep | None = None
    attempts: int = 1
    check: StepCheck | None = None

    @property
    def attempt_ctx(self) -> ExecCtx:
        return self.ctx if self.ctx.attempt == self.attempts else replace(self.ctx, attempt=self.attempts)

    @property
    def check_ctx(self) -> ExecCtx:
        """Return the context of the step's check, which may use its tool regardless of the step's tools."""
        ctx = self.attempt_ctx
        return replace(ctx, allowed_tools=(CHECK_TOOL,)) if self.step.verify and self.profile.may_check else ctx

    @property
    def limit_s(self) -> float:
        """Return the time limit of all attempts together: a step can only shorten its profile's."""
        of_profile = self.profile.timeout_ms / 1000
        return min(self.step.timeout_s or of_profile, of_profile)

    @property
    def max_retries(self) -> int:
        return _RETRIES if self.profile.max_retries is None else self.profile.max_retries


class Executor:
    """Runs steps: faults, limits, refusals and bugs become responses; only cancellation and a broken log are raised."""

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
        cache: StepCache | None = None,
        control: StepControl | None = None,
        end: Callable[[ExecutorResponse], Awaitable[ExecutorResponse] | None] = lambda response: None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._runner = runner
        self._end = end
        self._verifier = Verifier(calls=calls, channel=channel)
        self._tool_steps = ToolStepRunner(calls=calls, verifier=self._verifier)
        self._asker = asker
        self._channel = channel
        self._usage_of = usage_of
        self._waited_s = waited_s
        self._on_bug = on_bug
        self._cache = cache or NoStepCache()
        self._control = control or StepControl()
        self._sleep = sleep

    async def run(
        self,
        step: PlanStep,
        request: ExecutorRequest,
        profile: ExecutorProfile,
        ctx: ExecCtx,
        *,
        key: str | None = None,
        unfinished: UnfinishedStep | None = None,
    ) -> ExecutorResponse:
        """Run a step and publish its start and its end; raises StepCancelled and StepNotSaved.

        A final result is stored under `key` before its end is published. `unfinished` is the conversation to resume.
        """
        is_resumed = unfinished is not None and step.type == "task"
        conversation = Conversation.from_unfinished(unfinished) if unfinished and is_resumed else Conversation()
        conversation.messages[:0] = request.history
        work = _StepRun(
            step=step,
            request=request,
            profile=profile,
            ctx=ctx,
            conversation=conversation,
            started=time.monotonic(),
            unfinished=unfinished,
        )
        try:
            # Not awaited: later events of the step reach the disk after this one.
            started = StepStarted(title=step.title, cache="resumed" if unfinished else "miss")
            self._channel.emit(started, step_id=step.id, attempt=1)
            response = self._response(await self._run_guarded(work), work)
            response = await self._end_work(response)
        except asyncio.CancelledError:
            response = self._response(StepResult(status="cancelled", reason=INTERRUPTED), work)
            with contextlib.suppress(asyncio.CancelledError):
                response = await self._end_work(response)
            await self._save_and_publish(response, work.started)
            raise StepCancelled(response) from None
        await self._save_and_publish(response, work.started, key if is_final(response) else None)
        return response

    async def _end_work(self, response: ExecutorResponse) -> ExecutorResponse:
        """Record and merge the changes of a step, if any; an interruption waits until both are done."""
        work = self._end(response)
        if work is None:
            return response
        ending = asyncio.ensure_future(work)
        await wait_ignoring_cancel(ending)
        return ending.result()

    async def publish_result(
        self, step: PlanStep, response: ExecutorResponse, *, key: str | None = None
    ) -> ExecutorResponse:
        """Publish a step whose result is known without running it: cached under `key`, or refused beforehand."""
        # Its cost is counted in the run that executed it.
        known = replace(response, task_id=step.id, usage=Usage())

        async def publish() -> None:
            started = StepStarted(title=step.title, cache="hit" if key else "miss")
            await self._channel.publish(started, step_id=step.id, attempt=1)
            await self._publish_completed(known, time.monotonic(), key)

        await _publish_shielded(publish(), known)
        return known

    async def skip(self, step: PlanStep, reason: str) -> ExecutorResponse:
        """Publish that a step will never run."""
        response = ExecutorResponse(task_id=step.id, status="skipped", summary=f"Not run: {reason}.")
        completed = StepCompleted(status=response.status, summary=response.summary)
        await self._channel.publish(completed, step_id=step.id, attempt=1)
        return response

    async def _run_guarded(self, work: _StepRun) -> StepResult:
        """Turn every failure into a result."""
        try:
            return await self._run_until_deadline(work)
        except LogWriteError:
            raise
        except BudgetExhausted as stop:
            return _error_result(f"Stopped: {stop}.", exit_codes.BUDGET)
        except ModelFault as fault:
            return _error_result(str(fault), fault.policy.exit_code, fault.policy.hint)
        except AgentError as error:
            return _error_result(error.message, error.exit_code, error.hint)
        except OSError as error:
            return _error_result(f"The step failed: {error}", exit_codes.FAILED)
        except Exception as error:  # noqa: BLE001 (the edge of a step: a bug in one must not end the others)
            warning = f"internal error in step {work.step.id}: {error!r}; {self._on_bug()}"
            await self._channel.publish(WarningRaised(message=warning), step_id=work.step.id, attempt=work.attempts)
            return _error_result(f"internal error: {error!r}", exit_codes.FAILED)

    async def _run_until_deadline(self, work: _StepRun) -> StepResult:
        """Run attempts until done or out of time; the clock stops while the step waits for the user."""
        working = asyncio.create_task(self._run_attempts(work))
        try:
            with self._control.track(work.step.id, working):
                while not working.done():
                    left = work.started + work.limit_s + self._waited_s(work.step.id) - time.monotonic()
                    if left <= 0:
                        return StepResult(status="timeout", reason=f"Stopped at the time limit of {work.limit_s:g} s.")
                    await _wait_done(working, left)
                if working.cancelled() and (reason := self._control.stop_reason(work.step.id)):
                    return StepResult(status="cancelled", reason=reason)
                return working.result()
        finally:
            working.cancel()
            await wait_ignoring_cancel(working)
            # Retrieve the exception so asyncio does not log it.
            working.cancelled() or working.exception()

    async def _run_attempts(self, work: _StepRun) -> StepResult:
        """Retry transient failures; each attempt continues the same conversation, so that no work is repeated."""
        while True:
            try:
                return await self._attempt(work)
            except Exception as error:
                if work.attempts > work.max_retries or not is_transient(error):
                    raise
                warning = f"step {work.step.id}: {error}; retrying"
            await self._channel.publish(WarningRaised(message=warning), step_id=work.step.id, attempt=work.attempts)
            await self._sleep(backoff_s(work.attempts))
            work.attempts += 1

    async def _attempt(self, work: _StepRun) -> StepResult:
        step, conversation = work.step, work.conversation
        if step.type == "ask_user":
            return await self._ask_user(step, work.attempt_ctx)
        if work.check is None:
            work.check = await self._verifier.prepare(step, work.check_ctx, is_resumed=work.unfinished is not None)
        check = work.check
        if step.type == "tool":
            return await self._tool_steps.run(
                step, check, conversation, work.attempt_ctx, check_ctx=work.check_ctx, unfinished=work.unfinished
            )
        if not work.request.goal.strip():
            return _error_result(NO_INSTRUCTION, exit_codes.FAILED)
        while True:
            result = await self._runner.run(work.request, work.profile, work.attempt_ctx, conversation)
            if not check.command or not is_success(result.status):
                return result
            can_repair = not result.exit_code and len(conversation.checks) < MAX_CHECKS
            checked = await self._verifier.check(check, result, conversation, work.check_ctx)
            if checked.verified is not False or not can_repair:
                return await self._verifier.conclude(check, result, checked, conversation, work.check_ctx)
            await self._verifier.report_failure(conversation, work.attempt_ctx)

    async def _ask_user(self, step: PlanStep, ctx: ExecCtx) -> StepResult:
        question = step.ask_question or step.instruction
        answer = await self._asker.ask(Question(text=question, options=step.ask_options), ctx)
        if answer is None:
            return StepResult(status="needs_input", reason=question, questions=(question,), exit_code=exit_codes.FAILED)
        return StepResult(status="ok", text=answer, reason=f"{question} — {answer}")

    def _response(self, result: StepResult, work: _StepRun) -> ExecutorResponse:
        usage = self._usage_of(work.step.id)
        return build_response(work.step.id, result, work.conversation, usage=usage, attempts=work.attempts)

    async def _save_and_publish(self, response: ExecutorResponse, started: float, key: str | None = None) -> None:
        """Store and publish a response; an interruption waits until both are done."""

        async def save_and_publish() -> None:
            try:
                if key:
                    await self._cache.put(key, response)
                await self._publish_completed(response, started, key)
            except OSError as error:
                await self._publish_completed(unsaved_response(response), started)
                problem = f"the result of step {response.task_id} cannot be saved: {error.strerror or error}"
                raise LogWriteError(problem, "free some space or set AGENT_SANDBOX to another folder") from error

        await _publish_shielded(save_and_publish(), response)

    async def _publish_completed(self, response: ExecutorResponse, started: float, key: str | None = None) -> None:
        completed = StepCompleted(
            status=response.status,
            summary=response.summary,
            verified=response.verified,
            evidence=tuple(f"{fact.tool} exit {fact.exit_code}" for fact in response.tool_calls),
            usage=response.usage,
            cost_usd=response.usage.cost_usd,
            # Time spent waiting for the user is not counted.
            elapsed_ms=max(0, int((time.monotonic() - started - self._waited_s(response.task_id)) * 1000)),
            key=key,
        )
        await self._channel.publish(completed, step_id=response.task_id, attempt=response.attempts)


def is_transient(error: BaseException) -> bool:
    """Return whether a retry may succeed: network faults, never disk faults.

    Model faults are not transient here: the model layer has already retried those that can be.
    """
    if isinstance(error, (AgentError, ModelFault, FileNotFoundError, PermissionError)):
        return False
    words = str(error).lower()
    if "blocked" in words or "not allowed" in words:
        return False
    marks = ("timeout", "timed out", "connection", "temporarily", "reset by peer")
    return isinstance(error, (ConnectionError, TimeoutError)) or any(mark in words for mark in marks)


def backoff_s(attempt: int) -> float:
    """Return the delay after an attempt: exponential, with jitter so that steps do not retry in unison."""
    import random

    return _BACKOFF_S * float(2 ** (attempt - 1)) + random.uniform(0, _JITTER_S)


def _error_result(reason: str, exit_code: int, hint: str = "") -> StepResult:
    return StepResult(status="error", reason=reason, exit_code=exit_code, hint=hint)
