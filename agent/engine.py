"""Runs one task: stages what comes with it, has it orchestrated, gives the answer its form, lets it be remembered."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import replace

from agent.execution.result.structured import OutputSchema
from agent.memory.run_memory import RunMemory
from agent.model.budget import BudgetExhausted
from agent.model.faults import ModelFault
from agent.model.metered_client import MeteredModel
from agent.orchestrator import OrchestratorRunner, Task
from agent.protocol.channel import LogWriteError
from agent.protocol.commands import Submit
from agent.protocol.events import MessageSaid, WarningRaised
from agent.protocol.masking import mask_strings
from agent.run_scope import RunScope
from agent.vocabulary import exit_codes
from agent.vocabulary.outcome import Outcome
from agent.vocabulary.plan import Plan
from agent.vocabulary.unfinished import UnfinishedRun
from agent.workspace.project_notes import read_notes
from agent.workspace.request_context import build_context, read_attachment, stage_inputs, wrap_in_tag
from tooling.contract.json_codec import encode

_MEMORY_INTRO = "What is known of this user, as data; keep to what concerns the answer:"

# Makes the request known, behind what comes with it.
PublishRequest = Callable[[tuple[MessageSaid, ...]], Awaitable[None]]


class AgentExecutor:
    """The engine around the orchestrator: everything before the plan and after the answer."""

    def __init__(
        self,
        *,
        scope: RunScope,
        orchestrator: OrchestratorRunner,
        desk: MeteredModel,
        model: str,
        ask: PublishRequest,
        form: OutputSchema | None = None,
        memory: RunMemory | None = None,
        has_notes: bool = False,
        on_answer: Callable[[Outcome], None] = lambda outcome: None,
    ) -> None:
        self._scope = scope
        self._orchestrator = orchestrator
        self._client = desk
        self._model = model
        self._publish_request = ask
        self._output_schema = form
        self._memory = memory
        self._has_notes = has_notes
        self._on_answer = on_answer

    async def execute(self, submit: Submit, before: UnfinishedRun | None = None) -> Outcome:
        """Run the task with what comes with it, or go on with one that did not end; form and remember the answer."""
        task = await (self._resume_task(submit, before) if before else self._build_task(submit))
        outcome = await self._orchestrator.run(task, before)
        if outcome.is_error or submit.plan_only:
            return outcome
        if self._output_schema:
            outcome = await self._apply_schema(outcome, self._output_schema)
        has_asked = bool(self._client.budget.total.requests or (before and before.answer))
        return await self._remember(outcome) if has_asked else outcome

    async def _build_task(self, submit: Submit) -> Task:
        """Gather what comes with a request; it is used exactly as it is logged, so that it can be found again."""
        if self._output_schema is None and submit.schema:
            self._output_schema = OutputSchema(submit.schema)
        memory = await self._recall()
        form = self._output_schema.constraints if self._output_schema else ""
        context = await self._build_context(submit, memory, form)
        beside = {
            "context": context,
            "schema": self._output_schema.text if self._output_schema else "",
            "plan": self._plan_text(submit.plan) if submit.plan else "",
        }
        await self._publish_request(
            tuple(MessageSaid(role=role, content=text) for role, text in beside.items() if text)
        )
        return Task(
            request=submit.prompt,
            lineage=self._scope.run_id if self._scope.is_persistent else "",
            context=context,
            constraints=_constraints(form, memory),
            plan_only=submit.plan_only,
            plan=submit.plan,
        )

    def _plan_text(self, plan: Plan) -> str:
        # Masked step by step: the text as a whole could lose a quotation mark with a secret.
        return json.dumps(encode(mask_strings(plan.steps, self._scope.redactor.redact)))

    async def _resume_task(self, submit: Submit, before: UnfinishedRun) -> Task:
        await self._publish_request(())
        if self._output_schema is None and before.schema:
            self._output_schema = OutputSchema(before.schema)
        memory = await self._recall()
        return Task(
            request=before.request,
            lineage=before.lineage,
            context=before.context,
            constraints=_constraints(self._output_schema.constraints if self._output_schema else "", memory),
            plan=submit.plan,
        )

    async def _build_context(self, submit: Submit, memory: str, form: str) -> str:
        if submit.context is not None:
            await asyncio.to_thread(stage_inputs, submit.inputs, self._scope.cwd)
            return submit.context
        gathered = await asyncio.to_thread(self._gather_context, submit, memory)
        return "\n\n".join(part for part in (self._scope.redactor.redact(gathered), form) if part)

    def _gather_context(self, submit: Submit, memory: str) -> str:
        return build_context(
            stdin=submit.stdin,
            attachments=[read_attachment(path) for path in submit.files],
            staged=stage_inputs(submit.inputs, self._scope.cwd),
            session=self._scope.session(),
            notes=mask_strings(read_notes(self._scope.cwd), self._scope.redactor.redact) if self._has_notes else (),
            memory=memory,
        )

    async def _recall(self) -> str:
        """Return what is remembered, as far as prompts have room for it."""
        try:
            return await asyncio.to_thread(self._memory.recall) if self._memory else ""
        except OSError as error:
            self._scope.channel.emit(WarningRaised(message=f"the memory could not be read: {error.strerror}"))
            return ""

    async def _remember(self, outcome: Outcome) -> Outcome:
        """Have something of the run remembered; its answer is told before that, and nothing takes it back."""
        if self._memory is None or outcome.is_error:
            return outcome
        remembering = self._memory.build_updater(self._client, self._model)
        if not remembering.has_work():
            return outcome
        self._on_answer(outcome)
        try:
            await self._scope.channel.publish(MessageSaid(role="assistant", content=outcome.answer))
            await remembering.update(outcome.answer)
        except LogWriteError:
            # The disk is full: that is the log's trouble, not the answer's.
            pass
        return self._with_usage(outcome)

    async def _apply_schema(self, outcome: Outcome, form: OutputSchema) -> Outcome:
        try:
            data, answer, problem = await form.coerce(outcome.answer, self._client, self._model)
        except (ModelFault, BudgetExhausted) as stop:
            data, answer, problem = None, outcome.answer, f"the answer could not be put into its form: {stop}"
        outcome = self._with_usage(outcome)
        if problem:
            return replace(outcome, subtype="error_task", exit_code=exit_codes.FAILED, error=problem)
        return replace(outcome, answer=answer, structured=data)

    def _with_usage(self, outcome: Outcome) -> Outcome:
        """Return the outcome with what was asked of models after the answer."""
        ledger = self._client.budget
        spent = ledger.total
        return replace(outcome, usage=spent, model_usage=dict(ledger.by_model), num_turns=spent.requests)


def _constraints(form: str, memory: str) -> str:
    habits = f"{_MEMORY_INTRO}\n{wrap_in_tag('memory', memory)}" if memory else ""
    return "\n\n".join(part for part in (form, habits) if part)
