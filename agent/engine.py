"""Runs one task: stages what comes with it, has it orchestrated, gives the answer its form."""

from dataclasses import replace

from agent.execution.ledger import BudgetExhausted
from agent.execution.model_desk import ModelDesk
from agent.execution.structured import OutputForm
from agent.model.faults import ModelFault
from agent.orchestrator import OrchestratorRunner, Task
from agent.protocol.commands import Submit
from agent.run_scope import RunScope
from agent.vocabulary import exit_codes
from agent.vocabulary.outcome import Outcome
from agent.workspace.materials import context_text, read_attachment, stage


class AgentExecutor:
    """The engine around the orchestrator: everything before the plan and after the answer."""

    def __init__(
        self,
        *,
        scope: RunScope,
        orchestrator: OrchestratorRunner,
        desk: ModelDesk,
        model: str,
        form: OutputForm | None = None,
    ) -> None:
        self._scope = scope
        self._orchestrator = orchestrator
        self._desk = desk
        self._model = model
        self._form = form

    async def execute(self, submit: Submit) -> Outcome:
        """Stage the inputs, run the task, fit the answer to the asked-for form."""
        context = context_text(
            stdin=submit.stdin,
            attachments=[read_attachment(path) for path in submit.files],
            staged=stage(submit.inputs, self._scope.cwd),
            session=self._scope.session(),
        )
        constraints = self._form.constraints if self._form else ""
        task = Task(
            request=submit.prompt,
            context="\n\n".join(part for part in (context, constraints) if part),
            constraints=constraints,
            plan_only=submit.plan_only,
            plan=submit.plan,
        )
        outcome = await self._orchestrator.run(task)
        if self._form is None or outcome.is_error or submit.plan_only:
            return outcome
        return await self._formed(outcome, self._form)

    async def _formed(self, outcome: Outcome, form: OutputForm) -> Outcome:
        try:
            data, answer, problem = await form.fit(outcome.answer, self._desk, self._model)
        except (ModelFault, BudgetExhausted) as stop:
            data, answer, problem = None, outcome.answer, f"the answer could not be put into its form: {stop}"
        ledger = self._desk.ledger
        outcome = replace(outcome, usage=ledger.total, model_usage=dict(ledger.by_model))
        if problem:
            return replace(outcome, subtype="error_task", exit_code=exit_codes.FAILED, error=problem)
        return replace(outcome, answer=answer, structured=data)
