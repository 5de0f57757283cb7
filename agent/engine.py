"""Runs one task: hooks, workspace, repository and inputs before the agent, hooks and artifacts after it."""

import asyncio
import contextlib
import importlib
import sys
from collections.abc import Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from agent.assembly import Run, build_run
from agent.config.user_dirs import (
    PROJECT_HOOK_FILES,
    config_dir,
    current_folder,
    has_spooled_callbacks,
    hooks_file,
)
from agent.protocol.commands import Submit
from agent.run_context import RunContext
from agent.task_setup import describe_agents, without_credentials
from agent.vocabulary.errors import AgentError, InputError
from agent.vocabulary.outcome import Outcome
from agent.vocabulary.task_config import TaskConfig
from agent.workspace.artifacts import OutputFolder, describe_files, has_output
from agent.workspace.request_context import stage_inputs, wrap_in_tag
from tooling.contract.lazy_pattern import compile_patterns
from tooling.entry_points import HOOKS, entry_points

if TYPE_CHECKING:
    from agent.hooks.runner import HookRunner

# Sandbox and checkpoints start after the first request was sent, at the latest after this time.
LATEST_START_S = 1.0
# Modules that every run needs after its first reply, in this order; imported while waiting for the model.
AFTER_FIRST_REQUEST = (
    "agent.model.http.response_parser",
    "agent.model.wire.reply_stream",
    "agent.sessions.log.log_index",
    "agent.sessions.views.session_summary",
)
PROMPT_REFUSED = "a hook refused the task: {reason}"


class AgentExecutor:
    """Runs one task from its configuration to its outcome.

    `on_built` is called after the agent is built and before it starts; `why_cancelled` returns the reason of a
    cancellation. Without `hooks` none are called.
    """

    def __init__(
        self,
        context: RunContext,
        *,
        on_built: Callable[[Run], None],
        why_cancelled: Callable[[], str],
        hooks: "HookRunner | None" = None,
    ) -> None:
        self._context = context
        self._on_built = on_built
        self._why_cancelled = why_cancelled
        self._hooks = hooks
        self._output: OutputFolder | None = None
        self._closing: list[asyncio.Future[None]] = []
        self._has_closed_tools = False
        self.run: Run | None = None

    @property
    def early_warnings(self) -> tuple[str, ...]:
        """Warnings of hooks before the first event."""
        return tuple(self._hooks.early_warnings) if self._hooks else ()

    async def execute(self, prompt: str, config: TaskConfig, request: Submit | None = None) -> Outcome:
        """Run a task; `request` contains additions of a front end: attachments, a plan, a run to resume.

        1. hooks `before_execution` 2. workspace 3. repository 4. MCP servers 5. skills 6. inputs 7. build the agent
        8. run it, 9. with hooks at its calls 10. hooks `after_execution` 11. clean up.
        """
        submit = replace(request or Submit(prompt=prompt), prompt=prompt)
        if self._hooks is None:
            return await self._execute(submit, config)
        return await self._execute_with_hooks(self._hooks, submit, config)

    async def _execute_with_hooks(self, hooks: "HookRunner", submit: Submit, config: TaskConfig) -> Outcome:
        outcome, error = None, ""
        try:
            await hooks.before_execution(without_credentials(config))
            if not self._context.options.resumes:
                submit = await self._check_prompt(hooks, submit)
            outcome = await self._execute(submit, config)
            error = outcome.error or ""
            return outcome
        except asyncio.CancelledError:
            error = self._why_cancelled()
            raise
        except Exception as problem:
            error = problem.message if isinstance(problem, AgentError) else f"{type(problem).__name__}: {problem}"
            raise
        finally:
            success = outcome is not None and not outcome.is_error
            answer = outcome.answer if outcome else ""
            await hooks.after_execution(success=success, answer=answer, error=None if success else error)

    async def _check_prompt(self, hooks: "HookRunner", submit: Submit) -> Submit:
        decision = await hooks.check_prompt(submit.prompt)
        if decision.refusal:
            raise InputError(PROMPT_REFUSED.format(reason=decision.refusal.strip()))
        notes = (wrap_in_tag("hook", decision.context),) if decision.context else ()
        return replace(submit, notes=(*submit.notes, *notes))

    async def _execute(self, submit: Submit, config: TaskConfig) -> Outcome:
        scope = self._context.scope
        if config.repo_url:
            scope.cwd = await self._clone(config)
        submit = await self._prepare(submit, config)
        is_there = has_output(scope.cwd)
        self._output = await asyncio.to_thread(OutputFolder, scope.cwd) if is_there else OutputFolder(scope.cwd)
        run = self.run = await build_run(self._context, submit, self._hooks)
        background: asyncio.Future[None] = asyncio.Future()
        try:
            self._on_built(run)
            if self._hooks:
                self._hooks.follow(scope.channel)
            run.client.warm_up()
            background = asyncio.ensure_future(_start_background(run))
            return await run.runner.run(run.submit, run.unfinished)
        finally:
            background.cancel()
            may_report = run.checkpoints.has_followed_commands or run.tools.plugins
            if may_report:
                # Commands can change files until they have ended.
                await self.wait_closed()
            self._close_soon(run.checkpoints.close(run.orchestrator.is_declared_write))
            if may_report:
                await self.wait_closed()
            await self._write_manifest()

    def start_closing(self) -> None:
        """Close the sandbox and the connections, while the result is being stored."""
        if self.run and not self._has_closed_tools:
            self._has_closed_tools = True
            self._close_soon(self.run.tools.close())
            self._close_soon(self.run.client.close())

    async def wait_closed(self) -> None:
        """Wait until everything that the run has opened is closed."""
        self.start_closing()
        await asyncio.gather(*self._closing)

    def _close_soon(self, closing: Coroutine[None, None, None]) -> None:
        self._closing.append(asyncio.ensure_future(closing))

    async def _write_manifest(self) -> None:
        """Write the manifest of the run's changes; a full disk does not invalidate the answer."""
        scope = self._context.scope
        if not scope.channel.file_changes or not scope.is_persistent:
            return
        from agent.hooks.workspace_hook import write_manifest

        with contextlib.suppress(OSError):
            await asyncio.to_thread(
                write_manifest, scope.cwd, scope.folder.root, scope.run_id, scope.channel.file_changes
            )

    async def _clone(self, config: TaskConfig) -> Path:
        from agent.workspace.clone import Cloner, parse_url

        cloner = Cloner(self._context.environ)
        workspace = self._context.scope.cwd
        return await cloner.open(parse_url(config.repo_url), config.git_branch, workspace, is_shallow=config.is_shallow)

    async def _prepare(self, submit: Submit, config: TaskConfig) -> Submit:
        """Put the skills and then the inputs of the task into the workspace. MCP servers need nothing there."""
        # A thread is only asked where there is something to do: that takes as long as all the rest.
        has_skills = config.skill_files or _may_have_skills(self._context)
        skill_notes = await asyncio.to_thread(self._prepare_skills, config) if has_skills else ()
        cwd = self._context.scope.cwd
        staged = await asyncio.to_thread(stage_inputs, config.inputs, cwd) if config.inputs else ()
        instructions = config.custom_instructions.strip()
        given = (("instructions", instructions), ("agents", describe_agents(config)))
        notes = tuple(wrap_in_tag(tag, text) for tag, text in given if text) + skill_notes
        return replace(submit, staged=(*submit.staged, *staged), notes=(*notes, *submit.notes))

    def _prepare_skills(self, config: TaskConfig) -> tuple[str, ...]:
        """Find the skills of the run; return the instructions of those that the user asked for."""
        from agent.skills.find import choose_skills, find_run_skills
        from agent.skills.tool import describe_skill, stage_skill

        context = self._context
        known, chosen = choose_skills(config.skill_files, find_run_skills(context), current_folder())
        self._context = replace(context, skills=known)
        return tuple(describe_skill(skill, stage_skill(skill, context.scope)) for skill in chosen)

    async def collect_files(self, outcome: Outcome) -> Outcome:
        """Return the outcome with all files that the run left in `output/`, with size and hash."""
        workspace = self._context.scope.cwd
        written = await asyncio.to_thread(self._output.changed) if self._output and has_output(workspace) else ()
        artifacts = tuple(dict.fromkeys((*outcome.artifacts, *written)))
        files = await asyncio.to_thread(describe_files, workspace, artifacts) if artifacts else ()
        return replace(outcome, artifacts=artifacts, files=files, cwd=str(workspace))


async def _start_background(run: Run) -> None:
    """Start sandbox and checkpoints while waiting for the model; a call that needs them earlier starts them itself."""
    if run.model:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(run.client.request_sent.wait(), LATEST_START_S)
    if not run.submit.plan_only:
        run.tools.backend.start()
        run.checkpoints.start()
    if run.model:
        await _warm_up(run.submit.prompt)


async def _warm_up(prompt: str) -> None:
    """Import modules for the reply in small parts, so that an early reply does not wait for all of them."""
    for name in AFTER_FIRST_REQUEST:
        compile_patterns(importlib.import_module(name))
        await asyncio.sleep(0)
    from agent.execution.step.described_change import asks_for_change
    from agent.memory.triggers import has_memory_trigger

    # Compiles their patterns; most replies need no others.
    for ask in (asks_for_change, has_memory_trigger):
        ask(prompt)
        await asyncio.sleep(0)


def open_hooks(context: RunContext) -> "HookRunner | None":
    """Return the hooks of a run; None if there are none, and then no module about hooks is imported."""
    if not _has_hooks(context):
        return None
    from agent.hooks.load import load_hooks

    return load_hooks(context)


def _may_have_skills(context: RunContext) -> bool:
    """Whether there may be skills, as far as known without reading files."""
    if context.loaded.is_bare:
        return False
    folders = [plugin.folder for plugin in context.plugins.plugins if plugin.folder] if context.plugins else []
    return context.settings.claude_skills or any(
        (folder / "skills").is_dir() for folder in (config_dir(context.environ), *folders)
    )


def _has_hooks(context: RunContext) -> bool:
    """Whether there may be hooks, as far as known without reading files."""
    if context.options.hooks or context.settings.hooks or context.settings.callback_url:
        return True
    if context.plugins and context.plugins.hooks:
        return True
    if has_spooled_callbacks(context.scope.data_dir) and context.scope.is_persistent:
        return True
    files = [] if context.loaded.is_bare else [hooks_file(context.environ)]
    if not (context.loaded.is_bare or context.scope.uses_session_workspace):
        files += [context.scope.cwd / name for name in PROJECT_HOOK_FILES]
    return any(path.exists() for path in files) or any(True for _ in entry_points(sys.path, HOOKS))
