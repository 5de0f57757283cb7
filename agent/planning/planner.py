"""Asks a model for a plan and hands out its steps while the reply is still arriving."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from agent.model.metered_client import MeteredModel
from agent.model.port import Delta, ModelRequest, StreamRestarted, TextDelta
from agent.planning.capabilities import Capabilities
from agent.planning.estimate import Estimate
from agent.planning.graph import topological_order
from agent.planning.plan_reader import PlanReader
from agent.planning.prompt import planner_messages, replan_messages
from agent.planning.steps import StepBuilder, fallback_step, is_answer_only
from agent.vocabulary.message import Message
from agent.vocabulary.plan import Plan, PlanStep


class Planner:
    """One model request makes the plan, or answers at once when there is nothing to do."""

    def __init__(
        self,
        *,
        desk: MeteredModel,
        model: str,
        max_output_tokens: int,
        means: Capabilities | None = None,
        estimate: Estimate = lambda step: None,
    ) -> None:
        self._client = desk
        self._model = model
        self._max_output_tokens = max_output_tokens
        self._capabilities = means or Capabilities()
        self._estimate = estimate

    async def plan(self, request: str, context: str, on_step: Callable[[PlanStep], None]) -> Plan:
        """Return the whole plan; each step was given to `on_step` once, as early as it was known."""
        plan = await self._ask(planner_messages(request, context), request, on_step)
        if plan and (plan.steps or plan.answer is not None):
            return plan
        step = self._with_estimate(fallback_step(request))
        on_step(step)
        return Plan(steps=(step,))

    async def replan(
        self,
        request: str,
        context: str,
        progress: str,
        reason: str,
        on_step: Callable[[PlanStep], None] = lambda step: None,
    ) -> Plan | None:
        """Return all the work that remains, perhaps no step at all; None for a reply that holds no plan."""
        return await self._ask(replan_messages(request, context, progress, reason), request, on_step)

    def with_estimates(self, plan: Plan) -> Plan:
        """Return a plan that came from elsewhere with the estimated cost of its steps."""
        return replace(plan, steps=tuple(map(self._with_estimate, plan.steps)))

    def _with_estimate(self, step: PlanStep) -> PlanStep:
        return replace(step, est_usd=self._estimate(step))

    async def _ask(
        self, messages: tuple[Message, ...], request: str, on_step: Callable[[PlanStep], None]
    ) -> Plan | None:
        reader, maker = PlanReader(), StepBuilder(request, self._capabilities)
        seen: list[Mapping[str, object]] = []
        steps: list[PlanStep] = []

        def take(raw_steps: Iterable[Mapping[str, object]]) -> None:
            # A reply that broke off is asked for again: what it said twice is one step.
            for raw in raw_steps:
                if raw in seen:
                    continue
                seen.append(raw)
                if not is_answer_only(step := maker.build(raw)):
                    steps.append(self._with_estimate(step))
                    on_step(steps[-1])

        def hear(delta: Delta) -> None:
            if isinstance(delta, StreamRestarted):
                reader.restart()
            elif isinstance(delta, TextDelta):
                take(reader.feed(delta.text))

        asked = ModelRequest(
            model=self._model, messages=messages, purpose="planner", max_output_tokens=self._max_output_tokens
        )
        reply = await self._client.ask(asked, hear)
        whole = reader.finish(reply.message.content)
        if whole.answer is not None and not steps:
            return Plan(answer=whole.answer)
        take(whole.steps)
        return Plan(steps=topological_order(steps)) if steps or whole.is_empty else None
