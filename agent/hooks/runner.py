"""Calls the hooks of a run in order, with time limits; their failures never stop the run."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TypeVar

from agent.hooks.hook import AgentState, EventHook, GuardedCall, GuardHook, Hook, HookFailed, PromptDecision
from agent.hooks.interceptor import HookInterceptor
from agent.protocol.channel import Channel, Subscription
from agent.protocol.envelope import Envelope
from agent.protocol.events import MessageAdded, StepCompleted, ToolCompleted, WarningRaised
from agent.vocabulary.task_config import TaskConfig
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.json_codec import JsonObject

T = TypeVar("T")
# A hook with this many failures is no longer called in this run, except for its `after_execution`.
MAX_FAILURES = 3
# Time that the end of a run waits for slow hooks.
DRAIN_S = 15.0
# How often hooks may make the agent continue after its answer.
MAX_CONTINUATIONS = 8


@dataclass(slots=True, kw_only=True)
class _Turn:
    """A turn of a step with unfinished tool calls."""

    number: int
    text: str
    open_calls: set[str]


class HookRunner:
    """The hooks of one run. Warnings go to `emit`; those before the first event are buffered."""

    def __init__(self, hooks: Iterable[Hook]) -> None:
        self.hooks: tuple[Hook, ...] = tuple(hooks)
        self._guards = tuple(hook for hook in self.hooks if isinstance(hook, GuardHook))
        self._failures: dict[int, int] = {}
        self._channel: Channel | None = None
        self._events: Subscription | None = None
        self._pump: asyncio.Task[None] | None = None
        self._turn = 0
        self._turns: dict[str, _Turn] = {}
        self._inputs: dict[str, tuple[int, JsonObject]] = {}
        self._last_response = ""
        self._continuations = 0
        self._has_checked_answer = False
        self._has_ended = False
        self.early_warnings: list[str] = []

    @property
    def interceptors(self) -> tuple[HookInterceptor, ...]:
        """The interceptor that asks the guards before every tool call; none without guards."""
        if not self._guards:
            return ()
        return (HookInterceptor(self._guards, in_time=in_time, comment=self._comment_on_call, report=self.warn),)

    def follow(self, channel: Channel) -> None:
        """Call the hooks for all further events of a run."""
        self._channel = channel
        self._events = channel.subscribe()
        self._pump = asyncio.create_task(self._deliver(self._events), name="hooks")

    async def before_execution(self, config: TaskConfig) -> None:
        """Notify all hooks that a task starts."""
        await self._notify("before_execution", lambda hook: hook.before_execution(config))

    async def check_prompt(self, prompt: str) -> PromptDecision:
        """Return the first refusal of a guard, or the context of all."""
        contexts: list[str] = []
        for guard in self._guards:
            decision = await self._call(guard, "check_prompt", guard.check_prompt(prompt), guard.guard_timeout_s)
            if decision is None:
                continue
            if decision.refusal:
                return decision
            contexts += [decision.context] if decision.context.strip() else []
        return PromptDecision(context="\n\n".join(contexts))

    async def check_answer(self, answer: str) -> str:
        """Return why the agent must continue after an answer; empty if it may stop."""
        self._has_checked_answer = True
        for guard in self._guards:
            check = guard.check_answer(answer, is_repeated=self._continuations > 0)
            reason = await self._call(guard, "check_answer", check, guard.guard_timeout_s)
            if reason and self._continuations >= MAX_CONTINUATIONS:
                self.warn(f"the hook {guard.name} does not let the agent stop; it was ignored")
            elif reason:
                self._continuations += 1
                return reason
        return ""

    async def after_execution(self, *, success: bool, answer: str, error: str | None) -> None:
        """Notify all hooks how the task ended, exactly once and in reverse order."""
        if self._has_ended:
            return
        self._has_ended = True
        await self._drain()
        if success and not self._has_checked_answer:
            # Without a lead no agent could continue.
            await self.check_answer(answer)
        if answer and answer != self._last_response:
            await self._notify("on_response", lambda hook: hook.on_response(max(1, self._turn), answer))
        for hook in reversed(self.hooks):
            await self._call(hook, "after_execution", hook.after_execution(success, error), hook.timeout_s)

    async def _comment_on_call(self, call: GuardedCall, output: str) -> Sequence[str]:
        remarks = [
            await self._call(guard, "comment_on_call", guard.comment_on_call(call, output), guard.guard_timeout_s)
            for guard in self._guards
        ]
        return [remark for remark in remarks if remark]

    async def _deliver(self, events: Subscription) -> None:
        async for envelope in events:
            await self._on_event(envelope)

    async def _drain(self) -> None:
        """Wait, for a limited time, until the hooks have received all events."""
        if self._channel is None or self._events is None or self._pump is None:
            return
        await self._channel.wait_delivered()
        self._events.close()
        await asyncio.wait({self._pump}, timeout=DRAIN_S)
        if not self._pump.done():
            self._pump.cancel()
            self.warn(f"hooks were still busy {DRAIN_S:g} s after the end of the work; the rest was left out")

    async def _on_event(self, envelope: Envelope) -> None:
        for hook in self.hooks:
            if isinstance(hook, EventHook) and not self._is_given_up(hook):
                await self._call(hook, "on_event", hook.on_event(envelope), hook.timeout_s)
        match envelope.event:
            case MessageAdded(role="assistant", delta=False) if envelope.step_id:
                await self._on_reply(envelope, envelope.event)
            case ToolCompleted(tool_id=tool_id, name=name, output=output) if tool_id in self._inputs:
                turn, arguments = self._inputs.pop(tool_id)
                await self._notify("on_tool_call", lambda hook: hook.on_tool_call(turn, name, arguments, output))
                await self._end_turns(envelope.step_id or "", tool_id)
            case StepCompleted():
                await self._end_turns(envelope.step_id or "", None)
            case _:
                pass

    async def _on_reply(self, envelope: Envelope, message: MessageAdded) -> None:
        step_id = envelope.step_id or ""
        await self._end_turns(step_id, None)
        self._turn += 1
        turn, calls = self._turn, message.tool_calls or ()
        state = AgentState(
            session_id=envelope.session_id,
            run_id=envelope.run_id,
            step_id=step_id,
            text=message.content,
            tool_calls=calls,
            usage=message.spent,
        )
        await self._notify("on_agent_turn", lambda hook: hook.on_agent_turn(turn, state))
        self._inputs |= {call.id: (turn, call.input) for call in calls}
        self._turns[step_id] = _Turn(number=turn, text=message.content, open_calls={call.id for call in calls})
        if not calls:
            await self._end_turns(step_id, None)

    async def _end_turns(self, step_id: str, ended_call: str | None) -> None:
        """Report the text of a step's turn once all its calls have ended; without `ended_call`, now."""
        turn = self._turns.get(step_id)
        if turn is None:
            return
        if ended_call is not None:
            turn.open_calls.discard(ended_call)
            if turn.open_calls:
                return
        del self._turns[step_id]
        if text := turn.text.strip():
            self._last_response = text
            await self._notify("on_response", lambda hook: hook.on_response(turn.number, text))

    async def _notify(self, moment: str, call: Callable[[Hook], Awaitable[None]]) -> None:
        for hook in self.hooks:
            if not self._is_given_up(hook):
                await self._call(hook, moment, call(hook), hook.timeout_s)

    def _is_given_up(self, hook: Hook) -> bool:
        return self._failures.get(id(hook), 0) >= MAX_FAILURES

    async def _call(self, hook: Hook, moment: str, call: Awaitable[T], limit_s: float) -> T | None:
        """Return the result of a hook; None, with a warning, if it fails or times out."""
        try:
            return await in_time(limit_s, call)
        except TimeoutError:
            problem = f"took longer than {limit_s:g} s"
        except HookFailed as failure:
            problem = str(failure)
        except (Exception, SystemExit) as error:  # noqa: BLE001 (the edge: the run continues after any error of a hook)
            problem = f"failed: {type(error).__name__}: {error}"
        count = self._failures[id(hook)] = self._failures.get(id(hook), 0) + 1
        given_up = "; it is not called again in this run" if count == MAX_FAILURES else ""
        self.warn(f"the hook {hook.name} {problem} (in {moment}){given_up}")
        return None

    def warn(self, message: str) -> None:
        """Show a message to the user; before the first event it is buffered."""
        if self._channel is None:
            self.early_warnings.append(message)
        else:
            self._channel.emit(WarningRaised(message=message))


async def in_time(limit_s: float, call: Awaitable[T]) -> T:
    """Wait for a hook; raises TimeoutError after `limit_s`, even if the hook ignores cancellation."""
    task = asyncio.ensure_future(_contained(call))
    try:
        done, _ = await asyncio.wait({task}, timeout=limit_s)
    except asyncio.CancelledError:
        task.cancel()
        raise
    if done:
        return task.result()
    task.cancel()
    task.add_done_callback(_retrieve)
    raise TimeoutError


async def _contained(call: Awaitable[T]) -> T:
    """Turn exceptions that would exit the program into ordinary errors."""
    try:
        return await call
    except SystemExit as error:
        raise RuntimeError(f"it called sys.exit({error.code})") from error
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        raise RuntimeError("it was cancelled") from error


def _retrieve(task: "asyncio.Future[T]") -> None:
    """Retrieve the exception of a late hook, so that asyncio does not log it."""
    if not task.cancelled():
        task.exception()
