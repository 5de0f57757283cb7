"""A plan in the person's editor before it runs, on a terminal that is lent for it."""

from collections.abc import Awaitable, Callable
from dataclasses import replace

from agent.planning.graph import topological_order
from agent.vocabulary.errors import AgentError
from agent.vocabulary.plan import Plan, PlanStep
from cli.repl.state import ReplState

RunExternal = Callable[[Callable[[], None]], Awaitable[None]]


class ReplPlanReview:
    """Opens the editor while the run waits for it; what goes wrong there ends the run, not the REPL."""

    def __init__(self, place: ReplState, lend: RunExternal, request: str) -> None:
        self._state = place
        self._run_external = lend
        self._request = request

    async def __call__(self, plan: Plan) -> Plan:
        """Return the plan as the person wants it."""
        if plan.answer is not None:
            return plan
        ended: list[tuple[PlanStep, ...] | AgentError] = []
        await self._run_external(lambda: ended.append(self._edit(plan)))
        if isinstance(ended[0], AgentError):
            raise ended[0]
        return replace(plan, steps=topological_order(ended[0]))

    def _edit(self, plan: Plan) -> tuple[PlanStep, ...] | AgentError:
        from cli.run.plan_editor import PlanEditor, check_step_limit, plan_capabilities

        settings = self._state.read_settings().settings
        editor = PlanEditor(plan_capabilities(settings), self._state.environ)
        try:
            steps = tuple(editor.edit(plan.steps, self._request))
            check_step_limit(len(steps), settings)
        except AgentError as error:
            return error
        return steps
