"""Builds a run: the object graph from tools and models up to the engine."""

import asyncio
import shlex
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from agent.backends.process.environment import clean_environment
from agent.config.user_dirs import config_dir
from agent.dispatcher import Dispatcher
from agent.execution.graph.delegation import LeadDelegation
from agent.execution.graph.plan_tool import PlanTool
from agent.execution.result.compose import Composer
from agent.execution.step.prompts import system_message
from agent.memory.memory_file import MemoryFile
from agent.memory.run_memory import RunMemory
from agent.model.metered_client import MeteredModel
from agent.model.router import ModelRouter
from agent.model_setup import build_reviewer, build_router, choose_model, secret_names
from agent.orchestrator import GraphSettings, OrchestratorRunner
from agent.planning.capabilities import Capabilities
from agent.planning.estimate import build_estimator
from agent.planning.planner import Planner
from agent.plugins.find import load_full_catalog, open_plugins
from agent.protocol.commands import Submit
from agent.request_runner import RequestRunner
from agent.run_context import RunContext
from agent.sessions.checkpoints.checkpoints import Checkpoints
from agent.sessions.step_results import StepResultStore
from agent.step_runner import StepFolders
from agent.tool_setup import (
    ToolEnvironment,
    ToolSetup,
    build_tools,
    open_scheduler,
    open_step_folders,
)
from agent.vocabulary import exit_codes
from agent.vocabulary.plan import PLAN_TOOL, RESUMED, Plan
from agent.vocabulary.step import ExecutorResponse
from agent.vocabulary.unfinished import UnfinishedRun
from agent.workspace.opening import Surroundings, prepare_opening
from tooling.contract.action import Reviewer
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.tool import schema_name

if TYPE_CHECKING:
    from agent.executor import Executor
    from agent.hooks.runner import HookRunner
    from agent.plugins.run_plugins import OpenPlugins
    from agent.skills.find import SkillSet
    from tooling.mcp.servers import McpServer

# Assumed for unknown models, and reduced after their "too long" error.
UNKNOWN_CONTEXT_TOKENS = 32_000
# Outputs are trimmed for models; without a model they are the answer.
FULL_OUTPUT_CHARS = 100_000
NO_APPROVAL_POSSIBLE = "{subject!r} needs approval, and no user is present"
_ASKING_MODES = ("ask", "auto-edit", "plan", "review")


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
    runner: RequestRunner
    checkpoints: Checkpoints
    skill_problems: tuple[str, ...] = ()


async def build_run(context: RunContext, submit: Submit, hooks: "HookRunner | None" = None) -> Run:
    """Build a run; raises AgentError if a setting, the run to resume or the model is missing or wrong."""
    unfinished = await _load_unfinished(context)
    if unfinished:
        submit = _resumed_submit(unfinished)
    memory = _open_memory(context, submit.prompt)
    opening = _prepare_opening(context) if context.needs_model(submit) and not unfinished else lambda: ""
    model = await choose_model(context, submit) if context.needs_model(submit) else ""
    plugins = await open_plugins(context.plugins, context.settings, context.scope, context.questions)
    client = build_router(context, model, plugins)
    metered = MeteredModel(client=client, budget=context.budget, channel=context.scope.channel, price=client.cost)
    reviewer = build_reviewer(context.settings, metered, context.scope, submit.prompt)
    env = replace(_tool_environment(context, submit, memory, model, reviewer, plugins, metered), unfinished=unfinished)
    tools = build_tools(env, hooks.interceptors if hooks else ())
    steps = submit.plan.steps if submit.plan else ()
    tools.permissions.check_secrets(secret_names(context.settings, model, steps))
    if context.skills and context.skills.skills:
        _add_skill_tool(context, context.skills, tools)
    names = tuple(schema_name(schema) for schema in tools.executor.schemas())
    usable = names if context.settings.tools is None else tuple(filter(context.settings.tools.__contains__, names))
    checkpoints = context.scope.open_checkpoints(config_dir(context.environ))
    orchestrator = _build_orchestrator(context, tools, metered, client, names, model, unfinished, checkpoints, hooks)
    if context.settings.planning == "auto" and orchestrator.is_led(submit, unfinished):
        tools.executor.add_tool(PlanTool(orchestrator.delegation, tuple(context.options.task.agents)))
        # Without tools, the lead cannot delegate either.
        usable = (*usable, PLAN_TOOL) if usable else ()
    context.questions.set_wait_callbacks(started=orchestrator.scheduler.pause, ended=orchestrator.scheduler.resume)
    runner = RequestRunner(
        scope=context.scope,
        orchestrator=orchestrator,
        client=metered,
        model=model,
        output_schema=context.output_schema,
        memory=memory,
        require_vision=client.vision.require,
        effect_of=tools.executor.effect_of,
        has_notes=context.settings.project_notes and not context.scope.uses_session_workspace,
        opening=opening,
        instructions=context.settings.instructions,
    )
    return Run(
        submit=submit,
        model=model,
        unfinished=unfinished,
        tools=tools,
        tool_names=usable,
        client=client,
        orchestrator=orchestrator,
        runner=runner,
        checkpoints=checkpoints,
        skill_problems=context.skills.problems if context.skills else (),
    )


def _add_skill_tool(context: RunContext, skills: "SkillSet", tools: ToolSetup) -> None:
    """Offer the skills to the model; a plugin's tool with this name overrides it."""
    from agent.skills.tool import SKILL_TOOL, SkillTool, stage_skill

    if not tools.executor.has_tool(SKILL_TOOL):
        tools.executor.add_tool(SkillTool(skills, lambda skill: stage_skill(skill, context.scope)))


def _prepare_opening(context: RunContext) -> Callable[[], str]:
    """Return the function that builds the opening; git is queried in the background from now on."""
    settings, scope = context.settings, context.scope
    return prepare_opening(
        Surroundings(
            folder=scope.cwd,
            environ=clean_environment(context.environ),
            date=scope.date,
            command_timeout_s=settings.command_timeout_s,
            backend=settings.backend,
            extra_dirs=scope.extra_dirs,
            read_dirs=scope.read_dirs,
            allow_net=settings.allow_net,
            # In yolo mode nothing is asked, and hosts that were not approved stay blocked.
            can_ask=context.options.is_user_present and settings.approval_mode in _ASKING_MODES,
            is_planning=settings.approval_mode == "plan" or settings.read_only,
        )
    )


async def _load_unfinished(context: RunContext) -> UnfinishedRun | None:
    """Load the state of the run to resume."""
    resumes = context.options.resumes
    if resumes is None:
        return None
    from agent.sessions.resume.resume_state import ResumedMeanwhile, unfinished_run

    effects = {spec.name: spec.effect for spec in load_full_catalog(context.environ, context.settings).specs}
    unfinished = await asyncio.to_thread(unfinished_run, context.scope.folder.events, resumes, effects.get)
    # Another process may have resumed the run meanwhile and made a call that must not simply be repeated.
    if unfinished.has_ended and unfinished.run_id != resumes:
        raise ResumedMeanwhile(resumes, unfinished.run_id)
    return unfinished


def _resumed_submit(unfinished: UnfinishedRun) -> Submit:
    """Return the request of a resumed run; a given plan is kept unchanged."""
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
    context: RunContext,
    submit: Submit,
    memory: RunMemory | None,
    model: str,
    reviewer: Reviewer | None,
    plugins: "OpenPlugins | None",
    client: MeteredModel,
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
        on_refused=lambda reason, hint: context.interrupt(
            exit_codes.APPROVAL, reason if hint else NO_APPROVAL_POSSIBLE.format(subject=reason), hint
        ),
        on_sandbox_error=lambda error: context.interrupt(error.exit_code, error.message, error.hint),
        memory=memory,
        # As for the memory: a cassette must work on any machine.
        scheduler=None
        if context.options.record or context.options.replay
        else open_scheduler(context.scope, context.environ, model),
        reviewer=reviewer,
        context_tokens=lambda: context.prices.context_size(model),
        shared_backend=context.options.shared_backend,
        manifest=context.options.manifest,
        plugins=plugins,
        resumes=context.options.resumes,
        mcp_servers=_task_servers(context),
        requests=lambda: (*context.scope.earlier_requests(), submit.prompt),
        client=client,
        model=model,
    )


def _task_servers(context: RunContext) -> "tuple[McpServer, ...]":
    """Return the MCP servers of the task. Raises ConfigError."""
    config = context.options.task.mcp_config
    if not config:
        return ()
    from agent.config.mcp_file import task_servers

    return task_servers(config)


def _build_orchestrator(
    context: RunContext,
    tools: ToolSetup,
    metered: MeteredModel,
    client: ModelRouter,
    names: tuple[str, ...],
    model: str,
    unfinished: UnfinishedRun | None,
    checkpoints: Checkpoints,
    hooks: "HookRunner | None",
) -> OrchestratorRunner:
    settings, scope = context.settings, context.scope
    dispatcher = Dispatcher(settings, names)
    folders = open_step_folders(scope, context.environ, tools, dispatcher, checkpoints)
    cache = StepResultStore(scope.folder.steps, scope.redactor.redact) if scope.is_persistent else None
    orchestrator = OrchestratorRunner(
        planner=_build_planner(context, tools, metered, client, names, model, dispatcher),
        executor=lambda: _build_executor(
            context, tools, metered, model, cache, orchestrator.delegation, checkpoints, hooks, folders
        ),
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
            resume_command=_resume_command(context) if scope.is_persistent else None,
            mask=scope.redactor.redact,
        ),
        control=context.control,
        cache=cache,
        review=context.options.review,
        folders=folders,
        permissions=tools.permissions,
    )
    return orchestrator


def _resume_command(context: RunContext) -> str:
    """Return how to resume the run; under a manifest only with it."""
    given = context.options.manifest
    command = ("agent", "resume", context.scope.run_id)
    return shlex.join((*command, "--manifest", str(given.path)) if given else command)


def _build_planner(
    context: RunContext,
    tools: ToolSetup,
    metered: MeteredModel,
    client: ModelRouter,
    names: tuple[str, ...],
    model: str,
    dispatcher: Dispatcher,
) -> Planner:
    settings = context.settings
    return Planner(
        client=metered,
        model=settings.planner_model or model,
        max_output_tokens=settings.max_output_tokens,
        capabilities=Capabilities(
            tools={name: spec for name in names if (spec := tools.executor.spec_of(name))},
            profiles=dispatcher.profiles,
            models=(model, settings.planner_model),
        ),
        estimate=build_estimator(model or settings.model, client.cost),
    )


def _build_executor(
    context: RunContext,
    tools: ToolSetup,
    metered: MeteredModel,
    model: str,
    cache: StepResultStore | None,
    delegation: LeadDelegation,
    checkpoints: Checkpoints,
    hooks: "HookRunner | None",
    folders: StepFolders | None,
) -> "Executor":
    """Build the executor of steps; its modules are imported while the planner waits for the model."""
    from agent.execution.step.agent_loop import AgentRunner, RunnerSettings
    from agent.execution.step.tool_calls import ToolCallRunner
    from agent.executor import Executor

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
        may_change=settings.approval_mode != "plan" and not settings.read_only,
    )

    async def settle_and_merge(response: ExecutorResponse) -> ExecutorResponse:
        await checkpoints.settle(response.task_id)
        return await folders.close(response) if folders else response

    def end_step(response: ExecutorResponse) -> Awaitable[ExecutorResponse] | None:
        # A step without commands or a folder of its own has nothing to wait for.
        is_done = folders is None and checkpoints.settle_at_once(response.task_id)
        return None if is_done else settle_and_merge(response)

    return Executor(
        runner=AgentRunner(
            client=metered,
            calls=calls,
            channel=scope.channel,
            control=context.control,
            settings=runner_settings,
            delegation=delegation,
            check_answer=hooks.check_answer if hooks else None,
        ),
        calls=calls,
        asker=context.questions,
        channel=scope.channel,
        control=context.control,
        usage_of=context.budget.step_usage,
        waited_s=context.questions.waited_s,
        on_bug=scope.save_traceback,
        cache=cache,
        end=end_step,
    )
