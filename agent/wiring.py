"""Puts the parts of a run together: who plans, who works, who composes, and the desk at which they all ask."""

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from agent.config.load import Loaded
from agent.dispatcher import Dispatcher
from agent.execution.approvals import Person
from agent.execution.result.compose import Composer
from agent.execution.step.control import Wishes
from agent.execution.step.prompts import system_message
from agent.model.budget import Ledger
from agent.model.metered_client import ModelDesk
from agent.model.prices import PriceTable
from agent.model.router import ModelSwitch
from agent.model_choice import replans_given_plans
from agent.orchestrator import GraphSettings, OrchestratorRunner, Review
from agent.planning.estimate import estimator
from agent.planning.means import Means
from agent.planning.planner import Planner
from agent.run_scope import RunScope
from agent.sessions.step_results import StepResults
from agent.vocabulary.unfinished import UnfinishedRun
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.tool import ToolExecutor

if TYPE_CHECKING:
    from agent.executor import Executor

# What an unknown model is trusted with; its own "too long" makes the window smaller.
UNKNOWN_CONTEXT_TOKENS = 32_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What a run is made of, besides the request; `before` is the run it goes on with."""

    loaded: Loaded
    scope: RunScope
    person: Person
    wishes: Wishes
    ledger: Ledger
    prices: PriceTable
    client: ModelSwitch
    tools: ToolExecutor
    names: tuple[str, ...]
    model: str
    before: UnfinishedRun | None
    review: Review | None
    on_bug: Callable[[], str]

    def desk(self) -> ModelDesk:
        """Return the one place from which models are asked."""
        return ModelDesk(client=self.client, ledger=self.ledger, channel=self.scope.channel, price=self.client.cost)

    def orchestrator(self, desk: ModelDesk) -> OrchestratorRunner:
        """Return who sees the request through."""
        settings, scope = self.loaded.settings, self.scope
        dispatcher = Dispatcher(settings, self.names)
        shelf = StepResults(scope.folder.steps, scope.redactor.redact) if scope.is_kept else None
        orchestrator = OrchestratorRunner(
            planner=self._planner(desk, dispatcher),
            executor=lambda: self._executor(desk, shelf),
            composer=Composer(desk=desk, model=self.model, max_output_tokens=settings.max_output_tokens),
            dispatcher=dispatcher,
            channel=scope.channel,
            ledger=self.ledger,
            ctx_of=scope.ctx_of,
            settings=self._graph_settings(),
            shelf=shelf,
            review=self.review,
        )
        self.person.watch(began=orchestrator.pause, ended=orchestrator.go_on)
        return orchestrator

    def _planner(self, desk: ModelDesk, dispatcher: Dispatcher) -> Planner:
        settings = self.loaded.settings
        return Planner(
            desk=desk,
            model=settings.planner_model or self.model,
            max_output_tokens=settings.max_output_tokens,
            means=Means(
                tools={name: spec for name in self.names if (spec := self.tools.spec_of(name))},
                profiles=dispatcher.profiles,
                models=(self.model, settings.planner_model),
            ),
            estimate=estimator(self.model or settings.model, self.client.cost),
        )

    def _executor(self, desk: ModelDesk, shelf: StepResults | None) -> "Executor":
        """Return who works on steps; it is loaded while the planner thinks."""
        from agent.execution.step.agent_loop import AgentRunner, RunnerSettings
        from agent.execution.step.tool_calls import CallDesk
        from agent.executor import Executor

        settings, scope = self.loaded.settings, self.scope
        calls = CallDesk(tools=self.tools, channel=scope.channel, book=desk.book)
        of_steps = RunnerSettings(
            model=self.model,
            system=system_message(cwd=str(scope.cwd), platform=sys.platform, date=scope.date),
            context_tokens=lambda name: self.prices.context_size(name) or UNKNOWN_CONTEXT_TOKENS,
            max_output_tokens=settings.max_output_tokens,
            temperature=settings.temperature,
        )
        return Executor(
            runner=AgentRunner(desk=desk, calls=calls, channel=scope.channel, wishes=self.wishes, settings=of_steps),
            calls=calls,
            asker=self.person,
            channel=scope.channel,
            wishes=self.wishes,
            usage_of=self.ledger.of_step,
            waited_s=self.person.waited_s,
            on_bug=self.on_bug,
            shelf=shelf,
        )

    def _graph_settings(self) -> GraphSettings:
        settings, scope = self.loaded.settings, self.scope
        return GraphSettings(
            concurrency=settings.concurrency,
            max_steps=settings.max_steps,
            root=scope.cwd,
            # Results are found under the name of the model that the chain began with, whoever goes on.
            model=self.before.model if self.before else self.model,
            replan=settings.replan if self.model else "never",
            max_replans=settings.max_replans,
            replans_given_plans=replans_given_plans(self.loaded),
            require_verified=settings.require_verified,
            resume=f"agent resume {scope.run_id}" if scope.is_kept else None,
            mask=scope.redactor.redact,
        )
