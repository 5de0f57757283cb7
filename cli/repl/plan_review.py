"""A plan in the person's editor before it runs, on a terminal that is lent for it."""

from collections.abc import Awaitable, Callable
from dataclasses import replace

from agent.planning.graph import in_order
from agent.vocabulary.errors import AgentError
from agent.vocabulary.plan import Plan, PlanStep
from cli.repl.state import ReplPlace

Lend = Callable[[Callable[[], None]], Awaitable[None]]


class PlanReview:
    """Opens the editor while the run waits for it; what goes wrong there ends the run, not the REPL."""

    def __init__(self, place: ReplPlace, lend: Lend, request: str) -> None:
        self._place = place
        self._lend = lend
        self._request = request

    async def __call__(self, plan: Plan) -> Plan:
        """Return the plan as the person wants it."""
        if plan.answer is not None:
            return plan
        ended: list[tuple[PlanStep, ...] | AgentError] = []
        await self._lend(lambda: ended.append(self._edited(plan)))
        if isinstance(ended[0], AgentError):
            raise ended[0]
        return replace(plan, steps=in_order(ended[0]))

    def _edited(self, plan: Plan) -> tuple[PlanStep, ...] | AgentError:
        from cli.run.plan_editor import PlanEditor, check_size, means_of

        settings = self._place.loaded().settings
        editor = PlanEditor(means_of(settings), self._place.environ)
        try:
            steps = tuple(editor.edited(plan.steps, self._request))
            check_size(len(steps), settings)
        except AgentError as error:
            return error
        return steps
