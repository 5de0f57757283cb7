"""Runs one request: gathers its context, orchestrates it, converts the answer to a schema, updates the memory."""

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from agent.memory.run_memory import RunMemory
from agent.model.budget import BudgetExhausted
from agent.model.faults import ModelFault
from agent.model.metered_client import MeteredModel
from agent.orchestrator import OrchestratorRunner, Task
from agent.protocol.channel import Channel, LogWriteError
from agent.protocol.commands import Submit
from agent.protocol.events import MessageAdded, RunCompleted, StepCounts, WarningRaised
from agent.protocol.masking import mask_strings
from agent.run_scope import RunScope
from agent.sessions.resume.conversation import read_conversation, request_message
from agent.sessions.resume.step_history import EffectOf
from agent.vocabulary import exit_codes
from agent.vocabulary.message import Message
from agent.vocabulary.outcome import Outcome
from agent.vocabulary.plan import Plan
from agent.vocabulary.status import is_success
from agent.vocabulary.unfinished import UnfinishedRun
from agent.workspace.project_notes import read_notes
from agent.workspace.request_context import (
    attached,
    background,
    history,
    is_image,
    read_attachment,
    read_images,
    told_environment,
    wrap_in_tag,
)
from tooling.contract.image import Image
from tooling.contract.json_codec import encode

if TYPE_CHECKING:
    from agent.execution.result.structured import OutputSchema

_MEMORY_INTRO = "What is known of this user, as data; keep to what concerns the answer:"


class RequestRunner:
    """Wraps the orchestrator: context before the plan, and memory after the answer."""

    def __init__(
        self,
        *,
        scope: RunScope,
        orchestrator: OrchestratorRunner,
        client: MeteredModel,
        model: str,
        output_schema: "OutputSchema | None" = None,
        memory: RunMemory | None = None,
        has_notes: bool = False,
        instructions: str = "",
        require_vision: Callable[[str], None] = lambda model: None,
        effect_of: EffectOf = lambda tool: None,
        opening: Callable[[], str] = lambda: "",
    ) -> None:
        self._scope = scope
        self._orchestrator = orchestrator
        self._client = client
        self._model = model
        self._output_schema = output_schema
        self._memory = memory
        self._has_notes = has_notes
        self._instructions = instructions
        self._require_vision = require_vision
        self._effect_of = effect_of
        self._opening = opening
        # Set once the answer is published; the memory update may still be running.
        self.answered: Outcome | None = None
        self.has_published_request = False

    async def run(self, submit: Submit, unfinished: UnfinishedRun | None = None) -> Outcome:
        """Run a request, or resume an unfinished one."""
        task = await (self._resume_task(submit, unfinished) if unfinished else self._build_task(submit))
        outcome = await self._orchestrator.run(task, unfinished)
        if outcome.is_error or submit.plan_only:
            return outcome
        if self._output_schema:
            outcome = await self._apply_schema(outcome, self._output_schema)
        has_asked = bool(self._client.budget.total.requests or (unfinished and unfinished.answer))
        return await self._remember(outcome) if has_asked else outcome

    async def _build_task(self, submit: Submit) -> Task:
        """Gather the context of a request; it is used exactly as logged, so that a resumed run sees the same."""
        if self._output_schema is None and submit.schema:
            self._output_schema = _read_schema(submit.schema)
        memory = await self._recall()
        schema_text = self._output_schema.constraints if self._output_schema else ""
        has_files = submit.images or submit.files
        images = await asyncio.to_thread(self._read_images, submit) if has_files else ()
        is_led = self._orchestrator.is_led(submit)
        before = await asyncio.to_thread(self._conversation, submit) if is_led else ()
        known, context = await self._build_context(submit, memory, schema_text, images, before if is_led else None)
        texts = {
            "context": context,
            "schema": self._output_schema.text if self._output_schema else "",
            "plan": self._plan_text(submit.plan) if submit.plan else "",
        }
        self.has_published_request = True
        messages = [MessageAdded(role=role, content=text) for role, text in texts.items() if text]
        await publish_request(self._scope.channel, submit.prompt, messages, images=images)
        asked = request_message(context, self._scope.redactor.redact(submit.prompt), images)
        return Task(
            request=submit.prompt,
            images=images,
            history=(*before, asked) if is_led else (),
            background=known if before else "",
            lineage=self._scope.run_id if self._scope.is_persistent else "",
            context=context,
            constraints=_constraints(schema_text, memory),
            plan_only=submit.plan_only,
            plan=submit.plan,
        )

    def _plan_text(self, plan: Plan) -> str:
        # Masked step by step: masking the encoded text could remove a quotation mark together with a secret.
        return json.dumps(encode(mask_strings(plan.steps, self._scope.redactor.redact)))

    async def _resume_task(self, submit: Submit, unfinished: UnfinishedRun) -> Task:
        self.has_published_request = True
        await publish_request(self._scope.channel, unfinished.request, images=unfinished.images)
        if self._output_schema is None and unfinished.schema:
            self._output_schema = _read_schema(unfinished.schema)
        memory = await self._recall()
        said = "\n".join(message.content for message in unfinished.conversation if message.role == "user")
        return Task(
            request=unfinished.request,
            images=unfinished.images,
            history=unfinished.conversation if self._orchestrator.is_led(submit, unfinished) else (),
            background="" if told_environment(unfinished.context) else told_environment(said),
            lineage=unfinished.lineage,
            context=unfinished.context,
            constraints=_constraints(self._output_schema.constraints if self._output_schema else "", memory),
            plan=submit.plan,
        )

    def _conversation(self, submit: Submit) -> tuple[Message, ...]:
        """Return the conversation that the request continues."""
        if submit.replays:
            return tuple(read_conversation(submit.replays.log, self._effect_of, before=submit.replays.run_id))
        return tuple(read_conversation(self._scope.folder.events, self._effect_of))

    def _read_images(self, submit: Submit) -> tuple[Image, ...]:
        """Store the attached images; raises InputError if the model cannot see them."""
        images = submit.images or read_images(submit.files, self._scope.folder.blobs, self._folders)
        if images and self._model:
            self._require_vision(self._model)
        return images

    @property
    def _folders(self) -> tuple[Path, ...]:
        """The folders in which commands can create links."""
        return (self._scope.cwd, *self._scope.extra_dirs)

    async def _build_context(
        self,
        submit: Submit,
        memory: str,
        schema_text: str,
        images: tuple[Image, ...],
        before: Sequence[Message] | None,
    ) -> tuple[str, str]:
        """Return the description of the environment, and the context of a request that continues a conversation."""
        if submit.context is not None:
            return "", submit.context
        known, context = await asyncio.to_thread(self._gather_context, submit, memory, images, before)
        redact = self._scope.redactor.redact
        return redact(known), "\n\n".join(part for part in (redact(context), schema_text) if part)

    def _gather_context(
        self, submit: Submit, memory: str, images: tuple[Image, ...], before: Sequence[Message] | None
    ) -> tuple[str, str]:
        """Gather the context; `before` is the conversation so far, None if the request is planned on its own."""
        notes = mask_strings(read_notes(self._scope.cwd), self._scope.redactor.redact) if self._has_notes else ()
        opening = self._opening()
        tell = partial(background, opening=opening, notes=notes, memory=memory, instructions=self._instructions)
        known = tell()
        said = "\n".join(message.content for message in before or () if message.role == "user")
        fresh = tell(said=said) if said else known
        earlier = history(self._scope.session()) if before is None else ""
        given = attached(
            stdin=submit.stdin,
            attachments=[read_attachment(path, self._folders) for path in submit.files if not is_image(path)],
            staged=submit.staged,
            images=images,
            notes=submit.notes,
        )
        return known, "\n\n".join(part for part in (fresh, earlier, given) if part)

    async def _recall(self) -> str:
        """Return the part of the memory that fits into prompts."""
        try:
            return await asyncio.to_thread(self._memory.recall) if self._memory else ""
        except OSError as error:
            self._scope.channel.emit(WarningRaised(message=f"cannot read the memory: {error.strerror}"))
            return ""

    async def _remember(self, outcome: Outcome) -> Outcome:
        """Update the memory; the answer is already published, and no failure here changes it."""
        if self._memory is None or outcome.is_error or not self._memory.has_work():
            return outcome
        updater = self._memory.build_updater(self._client, self._model)
        self.answered = outcome
        try:
            await self._scope.channel.publish(MessageAdded(role="assistant", content=outcome.answer))
            await updater.update(outcome.answer)
        except LogWriteError:
            # A full disk does not invalidate the answer.
            pass
        return self._with_usage(outcome)

    async def _apply_schema(self, outcome: Outcome, schema: "OutputSchema") -> Outcome:
        try:
            data, answer, problem = await schema.coerce(outcome.answer, self._client, self._model)
        except (ModelFault, BudgetExhausted) as stop:
            data, answer, problem = None, outcome.answer, f"the answer could not be converted to the schema: {stop}"
        outcome = self._with_usage(outcome)
        if problem:
            return replace(outcome, subtype="error_task", exit_code=exit_codes.FAILED, error=problem)
        return replace(outcome, answer=answer, structured=data)

    def _with_usage(self, outcome: Outcome) -> Outcome:
        """Return the outcome with the usage of model calls made after the answer."""
        budget = self._client.budget
        spent = budget.total
        return replace(outcome, usage=spent, model_usage=dict(budget.by_model), num_turns=spent.requests)


async def publish_request(
    channel: Channel, prompt: str, attached: Sequence[MessageAdded] = (), *, images: tuple[Image, ...] = ()
) -> None:
    """Publish a request after everything attached to it, so that a log with the request is complete."""
    for message in attached:
        channel.emit(message)
    published = channel.emit_durable(MessageAdded(role="user", content=prompt, images=images or None))
    # The start of the run was held back, so that no run is reported whose request could be lost.
    channel.release()
    await asyncio.shield(published)


def _read_schema(text: str) -> "OutputSchema":
    from agent.execution.result.structured import OutputSchema

    return OutputSchema(text)


def _constraints(schema_text: str, memory: str) -> str:
    habits = f"{_MEMORY_INTRO}\n{wrap_in_tag('memory', memory)}" if memory else ""
    return "\n\n".join(part for part in (schema_text, habits) if part)


def run_completed(outcome: Outcome, plan_id: str | None) -> RunCompleted:
    """Return the `result` event of an outcome."""
    statuses = [response.status for response in outcome.responses]
    ok, skipped = sum(map(is_success, statuses)), statuses.count("skipped")
    return RunCompleted(
        subtype=outcome.subtype,
        is_error=outcome.is_error,
        exit_code=outcome.exit_code,
        result=outcome.answer,
        structured_output=outcome.structured,
        verified=outcome.verified,
        plan_id=plan_id,
        steps=StepCounts(ok=ok, failed=len(statuses) - ok - skipped, skipped=skipped),
        artifacts=outcome.artifacts,
        files=outcome.files or None,
        cwd=outcome.cwd,
        permission_denials=outcome.denials,
        deferred=outcome.deferred,
        will_run=outcome.will_run,
        num_turns=outcome.num_turns,
        duration_ms=outcome.duration_ms,
        total_cost_usd=outcome.usage.cost_usd,
        usage=outcome.usage,
        model_usage=outcome.model_usage,
        resume=outcome.resume,
        error=outcome.error,
        missing=outcome.missing,
        effects_in_doubt=outcome.effects_in_doubt or None,
    )
