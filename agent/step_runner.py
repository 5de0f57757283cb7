"""Runs one step of the graph: reuses a cached result or executes the step, and replans if it ended unexpectedly."""

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from agent.dispatcher import Dispatcher
from agent.execution.graph.plan_permissions import PlanDeclined, PlanPermissions
from agent.execution.graph.run_state import RunState
from agent.execution.graph.step_cache import (
    KeySource,
    NoStepCache,
    StepCache,
    cache_key,
    provisional_key,
)
from agent.execution.result.compose import dependency_excerpts
from agent.execution.step.prompts import forked_step_message
from agent.execution.step.step_result import (
    StepCancelled,
    StepNotSaved,
    declined_response,
    failed_response,
    has_masked_secret,
    internal_error_response,
    is_final,
    masked_secret_response,
    question_limit_response,
)
from agent.protocol.channel import Channel
from agent.protocol.events import WarningRaised
from agent.protocol.masking import mask_strings
from agent.vocabulary.errors import AgentError
from agent.vocabulary.message import Message
from agent.vocabulary.plan import LEAD, PlanStep
from agent.vocabulary.step import ExecutorProfile, ExecutorRequest, ExecutorResponse
from agent.vocabulary.unfinished import UnfinishedRun
from agent.workspace.request_context import wrap_in_tag
from tooling.contract.context import ExecCtx
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.image import Image

if TYPE_CHECKING:
    from agent.executor import Executor


# Instruction for a step that works in its own worktree.
OWN_FOLDER = (
    "You work in a git worktree of your own, {folder}; use paths relative to it. Other steps do not see your changes "
    "until your step has ended: then they are merged."
)


class StepFolders(Protocol):
    """Assigns folders to steps."""

    async def open(self, step: PlanStep) -> Path | None:
        """Return the folder of a step, or None if it works in the folder of the run. Raises AgentError."""
        ...

    async def close(self, response: ExecutorResponse) -> ExecutorResponse:
        """Merge the changes of a step; return its response, with a note if that failed."""
        ...


class StepObserver(Protocol):
    """Observes every step that ends: the replanner, or the lead that delegated it."""

    async def after_step(self, step: PlanStep, response: ExecutorResponse) -> None:
        """Return when the dependents of the step may start."""
        ...

    def may_ask(self) -> bool:
        """Count one more question to the user and return whether it is within the limit."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class StepSource:
    """The inputs that all steps of a run share.

    `lineage` is the first run of a chain of resumed runs; without one no result is cached. `unfinished` is the run that
    is resumed. `mask` hides secrets: cache keys are computed from logged text. `background` is context that is
    not part of the keys. `history` is the lead's conversation up to the request, `prefix_of` that of a forked step.
    """

    request: str
    context: str = ""
    images: tuple[Image, ...] = ()
    background: str = ""
    history: tuple[Message, ...] = ()
    prefix_of: Callable[[str], tuple[Message, ...]] = lambda step_id: ()
    lineage: str = ""
    model: str = ""
    may_replan: bool = True
    unfinished: UnfinishedRun | None = None
    mask: Callable[[str], str] = lambda text: text


class CachingStepRunner:
    """Runs steps through the executor, records their responses, and notifies the replanner."""

    def __init__(
        self,
        *,
        source: StepSource,
        executor: "Callable[[], Executor]",
        dispatcher: Dispatcher,
        state: RunState,
        observer: StepObserver,
        channel: Channel,
        ctx_of: Callable[[str], ExecCtx],
        cache: StepCache | None = None,
        folders: StepFolders | None = None,
        permissions: PlanPermissions | None = None,
    ) -> None:
        self._permissions = permissions
        self._source = source
        self._folders = folders
        self._make_executor = executor
        self._dispatcher = dispatcher
        self._state = state
        self._observer = observer
        self._channel = channel
        self._ctx_of = ctx_of
        self._cache = cache or NoStepCache()
        self._keys: dict[str, str] = {}
        self.has_executed = False

    @cached_property
    def executor(self) -> "Executor":
        """Return the executor; its modules load with the first use."""
        return self._make_executor()

    async def run(self, step: PlanStep) -> ExecutorResponse:
        """Run a step, record its response, and replan if needed; a bug around one step does not end the others."""
        try:
            await self._state.plan_log.wait_announced(step.id)
            response = await self._declined(step) or await self._respond(step)
            self._state.record(response)
            if self._source.may_replan:
                # During replanning the step waits and needs no slot.
                self._state.scheduler.pause(step.id)
                await self._observer.after_step(step, response)
            return response
        except (StepCancelled, StepNotSaved) as stop:
            self._state.record(stop.response)
            raise
        except AgentError:
            raise
        except Exception as error:  # noqa: BLE001 (the edge of a step: a bug around one must not end the others)
            await self._channel.publish(WarningRaised(message=f"internal error around step {step.id}: {error!r}"))
            if known := self._state.response_of(step.id):
                return known
            response = await self.executor.publish_result(step, internal_error_response(step, error))
            self._state.record(response)
            return response

    async def _declined(self, step: PlanStep) -> ExecutorResponse | None:
        """Wait until the permissions of the step are decided; return its response if the user declined them."""
        permissions = self._permissions
        if permissions is None or not permissions.must_decide(step) or self.cached_result(step):
            return None
        self._state.scheduler.pause(step.id)
        try:
            await permissions.decide(step, lambda: self._state.unfinished)
        except PlanDeclined as declined:
            if not self._source.history:
                raise
            return await self.executor.publish_result(step, declined_response(step, declined.message))
        finally:
            self._state.scheduler.resume(step.id)
        return None

    async def skip(self, step: PlanStep, reason: str) -> None:
        """Report and record a step that will never run."""
        await self._state.plan_log.wait_announced(step.id)
        self._state.record(await self.executor.skip(step, reason))

    def cached_result(self, step: PlanStep) -> ExecutorResponse | None:
        """Return the result of the step if a run of this chain already has it."""
        source = self._source
        if not source.lineage or step.id == LEAD:
            # The lead's answer is in its conversation.
            return None
        # A resumed run has requests and steps only in logged form, so secrets are not part of a key.
        shared = KeySource(
            lineage=source.lineage, model=source.model, request=source.mask(source.request), context=source.context
        )
        given = [self._keys[dep] for dep in step.depends_on if dep in self._keys]
        profile = self._dispatcher.profile_of(step)
        self._keys[step.id] = cache_key(shared, mask_strings(step, source.mask), profile, given)
        return self._cache.get(self._keys[step.id])

    async def _respond(self, step: PlanStep) -> ExecutorResponse:
        """Return the response of a step: cached, refused beforehand, or executed."""
        source = self._source
        if found := self.cached_result(step):
            if self._folders:
                # The run may have been killed before the merge.
                found = await self._folders.close(replace(found, task_id=step.id))
            return await self.executor.publish_result(step, found, key=self._keys[step.id])
        if source.unfinished and (known := source.unfinished.reported.get(step.id)):
            return await self.executor.publish_result(step, known)
        if step.type == "ask_user" and source.may_replan and not self._observer.may_ask():
            return await self.executor.publish_result(step, question_limit_response(step))
        if source.unfinished and has_masked_secret(step):
            return await self.executor.publish_result(step, masked_secret_response(step))
        self.has_executed = True
        profile = self._dispatcher.profile_of(step)
        ctx = self._ctx_of(step.id)
        if (ctx.allowed_tools, ctx.read_only) != (profile.allowed_tools, profile.read_only):
            ctx = replace(ctx, allowed_tools=profile.allowed_tools, read_only=profile.read_only)
        try:
            folder = await self._folders.open(step) if self._folders else None
        except AgentError as error:
            return await self.executor.publish_result(step, failed_response(step, error))
        response = await self.executor.run(
            step,
            await self._build_request(step, profile, folder),
            profile,
            replace(ctx, working_dir=folder) if folder else ctx,
            key=self._keys.get(step.id),
            unfinished=source.unfinished.steps.get(step.id) if source.unfinished else None,
        )
        if step.id in self._keys and not is_final(response):
            self._keys[step.id] = provisional_key(self._keys[step.id], response)
        return response

    async def _build_request(self, step: PlanStep, profile: ExecutorProfile, folder: Path | None) -> ExecutorRequest:
        source = self._source
        if step.id == LEAD:
            return ExecutorRequest(task_id=step.id, goal=source.request, history=source.history)
        found = self._state.results_of(step.depends_on)
        is_whole_task = step.instruction == source.request
        full_request = self._state.full_request(source.request)
        task = "" if is_whole_task else f"The whole request, for orientation only: {full_request}"
        known = await dependency_excerpts(found, self._ctx_of(step.id).outputs_dir, source.mask) if found else ""
        forked = source.prefix_of(step.id)
        place = OWN_FOLDER.format(folder=folder) if folder else ""
        told = wrap_in_tag("instructions", profile.instructions) if profile.instructions else ""
        context = (told, place, known) if forked else (source.background, place, source.context, told, task, known)
        request = ExecutorRequest(
            task_id=step.id,
            goal=step.instruction if is_whole_task else f"Your step: {step.instruction}",
            context="\n\n".join(part for part in context if part),
            expected_outputs=step.expect or None,
            model=step.model or profile.model,
            # The lead's conversation already contains them.
            images=() if forked else source.images,
        )
        return replace(request, history=(*forked, forked_step_message(request))) if forked else request
