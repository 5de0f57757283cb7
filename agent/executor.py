"""Runs one step: its deadline, its attempts, its checks; whatever happens, a response comes back."""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TypeAlias

from agent.execution.aio import to_the_end, uncut
from agent.execution.graph.step_cache import NoShelf, StepShelf
from agent.execution.step.agent_loop import AgentRunner
from agent.execution.step.context import Conversation
from agent.execution.step.control import Wishes
from agent.execution.step.step_result import Ending, response_of, stands, unkept
from agent.execution.step.tool_calls import CallDesk
from agent.execution.step.verification import ROUNDS, CheckDesk, ToolSteps
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
Note: TypeAlias = Callable[[ExecutorResponse], None]
_BACKOFF_S, _JITTER_S = 0.6, 0.2


@dataclass(slots=True, kw_only=True)
class _Work:
    """One step on its way: what was asked for and what has come of it so far."""

    step: PlanStep
    request: ExecutorRequest
    profile: ExecutorProfile
    ctx: ExecCtx
    talk: Conversation
    began: float
    before: UnfinishedStep | None = None
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
        calls: CallDesk,
        asker: Asker,
        channel: Channel,
        usage_of: Callable[[str], Usage] = lambda step_id: Usage(),
        waited_s: Callable[[str], float] = lambda step_id: 0.0,
        on_bug: Callable[[], str] = lambda: "this is a bug in Windlass",
        shelf: StepShelf | None = None,
        wishes: Wishes | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._runner = runner
        self._checks = CheckDesk(calls=calls, channel=channel)
        self._tool_steps = ToolSteps(calls=calls, checks=self._checks)
        self._asker = asker
        self._channel = channel
        self._usage_of = usage_of
        self._waited_s = waited_s
        self._on_bug = on_bug
        self._shelf = shelf or NoShelf()
        self._wishes = wishes or Wishes()
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
        note: Note = lambda response: None,
    ) -> ExecutorResponse:
        """Run the step to its response, telling when it starts and how it ends.

        What stands is kept under `key` before anybody hears of it. `begun` is the conversation to go on with.
        `note` hears the response before anybody else: of a step that is cancelled it cannot be returned.
        """
        work = _Work(
            step=step,
            request=request,
            profile=profile,
            ctx=ctx,
            talk=Conversation.going_on(begun) if begun and step.type == "task" else Conversation(),
            began=time.monotonic(),
            before=begun,
        )
        try:
            # Not waited for: whatever the step does that matters is on disk after this.
            started = StepStarted(title=step.title, cache="resumed" if begun else "miss")
            self._channel.whisper(started, step_id=step.id, attempt=1)
            response = self._response(await self._guarded(work), work)
        except asyncio.CancelledError:
            response = self._response(Ending(status="cancelled", reason="Interrupted."), work)
            note(response)
            await self._close(response, work.began, note)
            raise
        note(response)
        await self._close(response, work.began, note, key if stands(response) else None)
        return response

    async def settle(
        self,
        step: PlanStep,
        response: ExecutorResponse,
        *,
        key: str | None = None,
        note: Note = lambda response: None,
    ) -> ExecutorResponse:
        """Tell of a step whose end is known without running it: found on the shelf under `key`, or not to be asked."""
        # What it cost was paid by the run that did it.
        settled = replace(response, task_id=step.id, usage=Usage())
        note(settled)

        async def tell() -> None:
            try:
                started = StepStarted(title=step.title, cache="hit" if key else "miss")
                await self._channel.publish(started, step_id=step.id, attempt=1)
                await self._tell(settled, time.monotonic(), key)
            except LogWriteError:
                note(unkept(settled))
                raise

        await uncut(tell())
        return settled

    async def skip(self, step: PlanStep, reason: str, status: StepStatus = "skipped") -> ExecutorResponse:
        """Answer for a step that will never run."""
        response = ExecutorResponse(task_id=step.id, status=status, summary=f"Not run: {reason}.")
        completed = StepCompleted(status=response.status, summary=response.summary)
        await self._channel.publish(completed, step_id=step.id, attempt=1)
        return response

    async def _guarded(self, work: _Work) -> Ending:
        """Turn everything that can go wrong into an ending."""
        try:
            return await self._in_time(work)
        except LogWriteError:
            raise
        except BudgetExhausted as stop:
            return _failed(f"Stopped: {stop}.", exit_codes.BUDGET)
        except ModelFault as fault:
            return _failed(str(fault), fault.row.exit_code)
        except AgentError as error:
            return _failed(error.message, error.exit_code)
        except OSError as error:
            return _failed(f"The step failed: {error}", exit_codes.FAILED)
        except Exception as error:  # noqa: BLE001 (the edge of a step: a bug in one must not end the others)
            warning = f"internal error in step {work.step.id}: {error!r}; {self._on_bug()}"
            await self._channel.publish(WarningRaised(message=warning), step_id=work.step.id, attempt=work.attempts)
            return _failed(f"internal error: {error!r}", exit_codes.FAILED)

    async def _in_time(self, work: _Work) -> Ending:
        """Work until done or out of time; the clock stands still while the step waits for a person."""
        working = asyncio.ensure_future(self._until_done(work))
        try:
            with self._wishes.at_work(work.step.id, working):
                return await self._until_its_end(work, working)
        finally:
            working.cancel()
            await to_the_end(working)
            # Of what is over anyway nobody wants to hear a failure.
            working.cancelled() or working.exception()

    async def _until_its_end(self, work: _Work, working: "asyncio.Future[Ending]") -> Ending:
        while not working.done():
            left = work.began + work.limit_s + self._waited_s(work.step.id) - time.monotonic()
            if left <= 0:
                return Ending(status="timeout", reason=f"Stopped at the time limit of {work.limit_s:g} s.")
            await asyncio.wait({working}, timeout=left)
        if working.cancelled() and self._wishes.is_stopped(work.step.id):
            return Ending(status="cancelled", reason="Stopped by the person.")
        return working.result()

    async def _until_done(self, work: _Work) -> Ending:
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

    async def _attempt(self, work: _Work) -> Ending:
        step, talk = work.step, work.talk
        if step.type == "ask_user":
            return await self._ask_user(step, work.attempt_ctx)
        if step.type == "tool":
            return await self._tool_steps.run(
                step, talk, work.attempt_ctx, check_ctx=work.check_ctx, before=work.before
            )
        if not work.request.goal.strip():
            return _failed("The step does not say what to do.", exit_codes.FAILED)
        while True:
            ending = await self._runner.run(work.request, work.profile, work.attempt_ctx, talk)
            if not step.verify or not is_success(ending.status):
                return ending
            can_mend = not ending.exit_code and len(talk.checks) < ROUNDS
            ending = await self._checks.check(step.verify, ending, talk, work.check_ctx)
            if ending.verified is not False or not can_mend:
                return ending
            await self._checks.tell(talk, work.attempt_ctx)

    async def _ask_user(self, step: PlanStep, ctx: ExecCtx) -> Ending:
        question = step.ask_question or step.instruction
        answer = await self._asker.ask(Question(text=question, options=step.ask_options), ctx)
        if answer is None:
            return Ending(status="needs_input", reason=question, questions=(question,), exit_code=exit_codes.FAILED)
        return Ending(status="ok", text=answer, reason=f"{question} — {answer}")

    def _response(self, ending: Ending, work: _Work) -> ExecutorResponse:
        usage = self._usage_of(work.step.id)
        return response_of(work.step.id, ending, work.talk, usage=usage, attempts=work.attempts)

    async def _close(self, response: ExecutorResponse, began: float, note: Note, key: str | None = None) -> None:
        """Keep and tell of a response; an interruption waits until both are done."""

        async def keep_and_tell() -> None:
            try:
                if key:
                    await self._shelf.keep(key, response)
                await self._tell(response, began, key)
            except LogWriteError:
                note(unkept(response))
                raise
            except OSError as error:
                note(unkept(response))
                await self._tell(unkept(response), began)
                problem = f"the result of step {response.task_id} cannot be kept: {error.strerror or error}"
                raise LogWriteError(problem, "free some space or set AGENT_SANDBOX to another folder") from error

        await uncut(keep_and_tell())

    async def _tell(self, response: ExecutorResponse, began: float, key: str | None = None) -> None:
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


def _failed(reason: str, exit_code: int) -> Ending:
    return Ending(status="error", reason=reason, exit_code=exit_code)
