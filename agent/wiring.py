"""Puts the parts of a run together: who plans, who works, who composes, and the desk at which they all ask."""

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from agent.config.load import LoadedSettings
from agent.dispatcher import Dispatcher
from agent.execution.approvals import PendingQuestions
from agent.execution.result.compose import Composer
from agent.execution.step.control import StepControl
from agent.execution.step.prompts import system_message
from agent.model.budget import Budget
from agent.model.metered_client import MeteredModel
from agent.model.prices import PriceTable
from agent.model.router import ModelRouter
from agent.model_choice import replans_given_plans
from agent.orchestrator import GraphSettings, OrchestratorRunner, Review
from agent.planning.capabilities import Capabilities
from agent.planning.estimate import build_estimator
from agent.planning.planner import Planner
from agent.run_scope import RunScope
from agent.sessions.step_results import StepResultStore
from agent.vocabulary.unfinished import UnfinishedRun
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.tool import ToolExecutor

if TYPE_CHECKING:
    from agent.executor import Executor

# What an unknown model is trusted with; its own "too long" makes the window smaller.
UNKNOWN_CONTEXT_TOKENS = 32_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RunBuilder:
    """What a run is made of, besides the request; `before` is the run it goes on with."""

    loaded: LoadedSettings
    scope: RunScope
    questions: PendingQuestions
    control: StepControl
    budget: Budget
    prices: PriceTable
    client: ModelRouter
    tools: ToolExecutor
    tool_names: tuple[str, ...]
    model: str
    unfinished: UnfinishedRun | None
    review: Review | None
    on_bug: Callable[[], str]

    def build_model(self) -> MeteredModel:
        """Return the one place from which models are asked."""
        return MeteredModel(client=self.client, budget=self.budget, channel=self.scope.channel, price=self.client.cost)

    def build_orchestrator(self, desk: MeteredModel) -> OrchestratorRunner:
        """Return who sees the request through."""
        settings, scope = self.loaded.settings, self.scope
        dispatcher = Dispatcher(settings, self.tool_names)
        shelf = StepResultStore(scope.folder.steps, scope.redactor.redact) if scope.is_persistent else None
        orchestrator = OrchestratorRunner(
            planner=self._build_planner(desk, dispatcher),
            executor=lambda: self._build_executor(desk, shelf),
            composer=Composer(
                client=desk, channel=scope.channel, model=self.model, max_output_tokens=settings.max_output_tokens
            ),
            dispatcher=dispatcher,
            channel=scope.channel,
            budget=self.budget,
            ctx_of=scope.ctx_of,
            settings=self._graph_settings(),
            cache=shelf,
            review=self.review,
        )
        self.questions.set_wait_callbacks(began=orchestrator.scheduler.pause, ended=orchestrator.scheduler.resume)
        return orchestrator

    def _build_planner(self, desk: MeteredModel, dispatcher: Dispatcher) -> Planner:
        settings = self.loaded.settings
        return Planner(
            client=desk,
            model=settings.planner_model or self.model,
            max_output_tokens=settings.max_output_tokens,
            capabilities=Capabilities(
                tools={name: spec for name in self.tool_names if (spec := self.tools.spec_of(name))},
                profiles=dispatcher.profiles,
                models=(self.model, settings.planner_model),
            ),
            estimate=build_estimator(self.model or settings.model, self.client.cost),
        )

    def _build_executor(self, desk: MeteredModel, shelf: StepResultStore | None) -> "Executor":
        """Return who works on steps; it is loaded while the planner thinks."""
        from agent.execution.step.agent_loop import AgentRunner, RunnerSettings
        from agent.execution.step.tool_calls import ToolCallRunner
        from agent.executor import Executor

        settings, scope = self.loaded.settings, self.scope
        calls = ToolCallRunner(tools=self.tools, channel=scope.channel, charge=desk.record_tool_cost)
        of_steps = RunnerSettings(
            model=self.model,
            system=system_message(cwd=str(scope.cwd), platform=sys.platform, date=scope.date),
            context_tokens=lambda name: self.prices.context_size(name) or UNKNOWN_CONTEXT_TOKENS,
            max_output_tokens=settings.max_output_tokens,
            temperature=settings.temperature,
        )
        return Executor(
            runner=AgentRunner(
                client=desk, calls=calls, channel=scope.channel, control=self.control, settings=of_steps
            ),
            calls=calls,
            asker=self.questions,
            channel=scope.channel,
            control=self.control,
            usage_of=self.budget.step_usage,
            waited_s=self.questions.waited_s,
            on_bug=self.on_bug,
            cache=shelf,
        )

    def _graph_settings(self) -> GraphSettings:
        settings, scope = self.loaded.settings, self.scope
        return GraphSettings(
            concurrency=settings.concurrency,
            max_steps=settings.max_steps,
            root=scope.cwd,
            # Results are found under the name of the model that the chain began with, whoever goes on.
            model=self.unfinished.model if self.unfinished else self.model,
            replan=settings.replan if self.model else "never",
            max_replans=settings.max_replans,
            replans_given_plans=replans_given_plans(self.loaded),
            require_verified=settings.require_verified,
            resume_command=f"agent resume {scope.run_id}" if scope.is_persistent else None,
            mask=scope.redactor.redact,
        )
