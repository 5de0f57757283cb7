"""Builds a run: the object graph from tools and models up to the engine."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from agent.backends.process.environment import clean_environment
from agent.backends.shared import SharedBackend
from agent.config.load import LoadedSettings
from agent.config.settings import Settings
from agent.config.user_dirs import config_dir
from agent.dispatcher import Dispatcher
from agent.engine import AgentExecutor
from agent.execution.approvals import PendingQuestions
from agent.execution.graph.delegation import LeadDelegation
from agent.execution.graph.plan_tool import PlanTool
from agent.execution.result.compose import Composer
from agent.execution.result.structured import OutputSchema
from agent.execution.step.control import StepControl
from agent.execution.step.prompts import system_message
from agent.memory.memory_file import MemoryFile
from agent.memory.run_memory import RunMemory
from agent.model.budget import Budget
from agent.model.faults import ModelFault
from agent.model.metered_client import MeteredModel
from agent.model.prices import PriceTable
from agent.model.router import ModelRouter
from agent.orchestrator import GraphSettings, OrchestratorRunner, Review
from agent.planning.capabilities import Capabilities
from agent.planning.estimate import build_estimator
from agent.planning.planner import Planner
from agent.protocol.commands import Submit
from agent.protocol.events import WarningRaised
from agent.run_scope import RunScope, SessionLocation
from agent.sessions.checkpoints.checkpoints import Checkpoints
from agent.sessions.lock import LockTimeout
from agent.sessions.step_results import StepResultStore
from agent.tool_setup import ToolEnvironment, ToolSetup, build_reviewer, build_tools
from agent.vocabulary import exit_codes
from agent.vocabulary.plan import PLAN_TOOL, RESUMED, Plan
from agent.vocabulary.unfinished import UnfinishedRun
from agent.workspace.opening import Surroundings, prepare_opening
from tooling.contract.action import Reviewer
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.tool import schema_name
from tooling.files.blobs import BlobStore

if TYPE_CHECKING:
    from agent.executor import Executor

# Assumed for unknown models; their own "too long" error makes it smaller.
UNKNOWN_CONTEXT_TOKENS = 32_000
# Outputs are trimmed for models; without a model they are the answer.
FULL_OUTPUT_CHARS = 100_000
NO_APPROVAL_POSSIBLE = "{subject!r} needs approval, and no user is present"
_ASKING_MODES = ("ask", "auto-edit", "plan", "review")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """What the user chose for this run beyond the settings; `resumes` names the run to resume.

    A `shared_backend` keeps background commands and temporary files for the next run.
    """

    location: SessionLocation
    is_user_present: bool = False
    record: Path | None = None
    replay: Path | None = None
    output_schema: Path | None = None
    lock_timeout: LockTimeout = field(default_factory=LockTimeout)
    review: Review | None = None
    resumes: str | None = None
    shared_backend: SharedBackend | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunContext:
    """The inputs for building a run: settings, session, budget, and the user's controls.

    `interrupt` ends the run with an exit code, a reason and a hint.
    """

    loaded: LoadedSettings
    settings: Settings
    environ: Mapping[str, str]
    options: RunOptions
    scope: RunScope
    questions: PendingQuestions
    control: StepControl
    budget: Budget
    prices: PriceTable
    output_schema: OutputSchema | None
    interrupt: Callable[[int, str, str], None]

    @property
    def replans_given_plans(self) -> bool:
        """Whether a plan from a file may be replanned: only if a flag asks for it."""
        return self.loaded.origins["replan"].layer == "flag" and self.settings.replan != "never"

    def needs_model(self, submit: Submit) -> bool:
        """Whether a model may be asked: by the planner, by a task step, or to replan."""
        return submit.needs_model or (self.replans_given_plans and not submit.plan_only)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A run that is ready to start."""

    submit: Submit
    model: str
    unfinished: UnfinishedRun | None
    tools: ToolSetup
    tool_names: tuple[str, ...]
    client: ModelRouter
    orchestrator: OrchestratorRunner
    engine: AgentExecutor
    checkpoints: Checkpoints | None


async def build_run(context: RunContext, submit: Submit) -> Run:
    """Build a run; raises AgentError if a setting, the run to resume or the model is missing or wrong."""
    unfinished = await _load_unfinished(context)
    if unfinished:
        submit = _resumed_submit(unfinished)
    memory = _open_memory(context, submit.prompt)
    opening = _prepare_opening(context) if context.needs_model(submit) and not unfinished else lambda: ""
    model = await _choose_model(context, submit) if context.needs_model(submit) else ""
    client = _build_router(context, model)
    metered = MeteredModel(client=client, budget=context.budget, channel=context.scope.channel, price=client.cost)
    reviewer = build_reviewer(context.settings, metered, context.scope, submit.prompt)
    tools = build_tools(_tool_environment(context, submit, memory, model, reviewer))
    names = tuple(schema_name(schema) for schema in tools.executor.schemas())
    checkpoints = context.scope.open_checkpoints(config_dir(context.environ))
    orchestrator = _build_orchestrator(context, tools, metered, client, names, model, unfinished, checkpoints)
    if context.settings.planning == "auto" and orchestrator.is_led(submit, unfinished):
        tools.executor.add_tool(PlanTool(orchestrator.delegation))
        names = (*names, PLAN_TOOL)
    context.questions.set_wait_callbacks(started=orchestrator.scheduler.pause, ended=orchestrator.scheduler.resume)
    scope = context.scope
    engine = AgentExecutor(
        scope=scope,
        orchestrator=orchestrator,
        client=metered,
        model=model,
        output_schema=context.output_schema,
        memory=memory,
        require_vision=client.vision.require,
        effect_of=lambda tool: spec.effect if (spec := tools.executor.spec_of(tool)) else None,
        has_notes=context.settings.project_notes and not scope.uses_session_workspace,
        opening=opening,
    )
    return Run(
        submit=submit,
        model=model,
        unfinished=unfinished,
        tools=tools,
        tool_names=names,
        client=client,
        orchestrator=orchestrator,
        engine=engine,
        checkpoints=checkpoints,
    )


def _prepare_opening(context: RunContext) -> Callable[[], str]:
    """Return what builds the opening; git is asked in the background from now on."""
    settings, scope = context.settings, context.scope
    return prepare_opening(
        Surroundings(
            folder=scope.cwd,
            environ=clean_environment(context.environ),
            date=scope.date,
            command_timeout_s=settings.command_timeout_s,
            backend=settings.backend,
            extra_dirs=scope.extra_dirs,
            allow_net=settings.allow_net,
            # In the mode yolo nothing is asked, and a host that nobody approved stays closed.
            can_ask=context.options.is_user_present and settings.approval_mode in _ASKING_MODES,
            is_planning=settings.approval_mode == "plan",
        )
    )


async def _load_unfinished(context: RunContext) -> UnfinishedRun | None:
    """Read how far the run to resume had come."""
    resumes = context.options.resumes
    if resumes is None:
        return None
    from agent.sessions.resume.resume_state import unfinished_run
    from tooling.tool_catalog import load_catalog

    effects = {spec.name: spec.effect for spec in load_catalog().specs}
    return await asyncio.to_thread(unfinished_run, context.scope.folder.events, resumes, effects.get)


def _resumed_submit(unfinished: UnfinishedRun) -> Submit:
    """Return the request of a run that is resumed; a given plan stays as it was given."""
    is_given = unfinished.is_plan_given and unfinished.is_plan_complete
    plan = Plan(steps=unfinished.plan, reason=RESUMED) if is_given else None
    return Submit(prompt=unfinished.request, plan=plan)


def _open_memory(context: RunContext, request: str) -> RunMemory | None:
    """Return the memory of a run; recorded and replayed runs have none, since a cassette must work on any machine."""
    scope = context.scope
    if not context.settings.memory or context.options.record or context.options.replay:
        return None
    return RunMemory(
        file=MemoryFile(scope.data_dir),
        redactor=scope.redactor,
        channel=scope.channel,
        request=request,
        is_persistent=scope.is_persistent,
        settings=context.settings,
    )


def _tool_environment(
    context: RunContext, submit: Submit, memory: RunMemory | None, model: str, reviewer: Reviewer | None
) -> ToolEnvironment:
    settings = context.settings
    if not context.needs_model(submit):
        settings = replace(settings, output_trim_chars=max(settings.output_trim_chars or 0, FULL_OUTPUT_CHARS))
    return ToolEnvironment(
        settings=settings,
        environ=context.environ,
        secrets=context.loaded.secrets,
        scope=context.scope,
        questions=context.questions,
        is_user_present=context.options.is_user_present,
        on_refused=lambda subject: context.interrupt(
            exit_codes.APPROVAL, NO_APPROVAL_POSSIBLE.format(subject=subject), ""
        ),
        on_sandbox_error=lambda error: context.interrupt(error.exit_code, error.message, error.hint),
        memory=memory,
        reviewer=reviewer,
        context_tokens=lambda: context.prices.context_size(model),
        shared_backend=context.options.shared_backend,
    )


async def _choose_model(context: RunContext, submit: Submit) -> str:
    """Return the configured model, the first of a plan whose tasks all name one, or one that runs on this machine."""
    if context.settings.model or context.options.replay:
        return context.settings.model or "replay"
    named = [step.model for step in submit.plan.steps if step.type == "task"] if submit.plan else []
    if named and all(named):
        return named[0]
    from agent.model.local_server import find_local_server, raise_no_model

    found = await find_local_server()
    return found.model if found else raise_no_model()


def _build_router(context: RunContext, model: str) -> ModelRouter:
    scope, settings = context.scope, context.settings

    def warn_retry(fault: ModelFault, wait_s: float) -> None:
        warn(f"{fault}; retrying in {wait_s:.1f} s")

    def warn(message: str) -> None:
        scope.channel.emit(WarningRaised(message=message))

    return ModelRouter(
        replace(
            settings,
            model=model,
            planner_model=settings.planner_model if model else "",
            composer_model=settings.composer_model if model else "",
        ),
        prices=context.prices,
        record=context.options.record,
        replay=context.options.replay,
        volatile={str(scope.cwd): "<workspace>"},
        redact=scope.redactor.redact,
        on_retry=warn_retry,
        warn=warn,
        read_image=BlobStore(scope.folder.blobs).read,
    )


def _build_orchestrator(
    context: RunContext,
    tools: ToolSetup,
    metered: MeteredModel,
    client: ModelRouter,
    names: tuple[str, ...],
    model: str,
    unfinished: UnfinishedRun | None,
    checkpoints: Checkpoints | None,
) -> OrchestratorRunner:
    settings, scope = context.settings, context.scope
    dispatcher = Dispatcher(settings, names)
    cache = StepResultStore(scope.folder.steps, scope.redactor.redact) if scope.is_persistent else None
    orchestrator = OrchestratorRunner(
        planner=Planner(
            client=metered,
            model=settings.planner_model or model,
            max_output_tokens=settings.max_output_tokens,
            capabilities=Capabilities(
                tools={name: spec for name in names if (spec := tools.executor.spec_of(name))},
                profiles=dispatcher.profiles,
                models=(model, settings.planner_model),
            ),
            estimate=build_estimator(model or settings.model, client.cost),
        ),
        executor=lambda: _build_executor(context, tools, metered, model, cache, orchestrator.delegation, checkpoints),
        composer=Composer(
            client=metered,
            channel=scope.channel,
            model=settings.composer_model or model,
            max_output_tokens=settings.max_output_tokens,
        ),
        dispatcher=dispatcher,
        channel=scope.channel,
        budget=context.budget,
        ctx_of=scope.ctx_of,
        settings=GraphSettings(
            concurrency=settings.concurrency,
            max_steps=settings.max_steps,
            root=scope.cwd,
            # Results are cached under the model that the chain of runs started with.
            model=unfinished.model if unfinished else model,
            # A check needs a plan.
            planning="always" if settings.require_verified else settings.planning,
            replan=settings.replan if model else "never",
            max_replans=settings.max_replans,
            replans_given_plans=context.replans_given_plans,
            require_verified=settings.require_verified,
            resume_command=f"agent resume {scope.run_id}" if scope.is_persistent else None,
            mask=scope.redactor.redact,
        ),
        control=context.control,
        cache=cache,
        review=context.options.review,
    )
    return orchestrator


def _build_executor(
    context: RunContext,
    tools: ToolSetup,
    metered: MeteredModel,
    model: str,
    cache: StepResultStore | None,
    delegation: LeadDelegation,
    checkpoints: Checkpoints | None,
) -> "Executor":
    """Build the executor of steps; its modules are imported while the planner's model thinks."""
    from agent.execution.step.agent_loop import AgentRunner, RunnerSettings
    from agent.execution.step.tool_calls import ToolCallRunner
    from agent.executor import Executor, nothing_to_settle

    settings, scope = context.settings, context.scope
    calls = ToolCallRunner(
        tools=tools.executor, channel=scope.channel, charge=metered.record_tool_cost, tracker=checkpoints
    )
    runner_settings = RunnerSettings(
        model=model,
        system=system_message(),
        context_tokens=lambda name: context.prices.context_size(name) or UNKNOWN_CONTEXT_TOKENS,
        max_output_tokens=settings.max_output_tokens,
        temperature=settings.temperature,
        cache_key=scope.folder.id,
        may_change=settings.approval_mode != "plan",
    )
    return Executor(
        runner=AgentRunner(
            client=metered,
            calls=calls,
            channel=scope.channel,
            control=context.control,
            settings=runner_settings,
            delegation=delegation,
        ),
        calls=calls,
        asker=context.questions,
        channel=scope.channel,
        control=context.control,
        usage_of=context.budget.step_usage,
        waited_s=context.questions.waited_s,
        on_bug=scope.save_traceback,
        cache=cache,
        settle=checkpoints.settle if checkpoints else nothing_to_settle,
    )
