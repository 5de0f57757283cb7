"""One run from its first event to its last: `init` is always first, `result` always last."""

import asyncio
import errno
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing
from dataclasses import replace
from types import TracebackType
from typing import Self

from agent.assembly import UNKNOWN_CONTEXT_TOKENS, Run
from agent.backends.shared import SharedBackend
from agent.config.environment import is_shared_place
from agent.config.load import LoadedSettings, load_settings
from agent.config.user_dirs import data_dir, os_environ
from agent.engine import AgentExecutor, open_hooks
from agent.execution.approvals import PendingQuestions
from agent.execution.step.control import StepControl
from agent.model.budget import Budget, BudgetExhausted
from agent.model.faults import ModelFault
from agent.model.prices import PriceTable
from agent.plugins.find import find_plugins
from agent.protocol.channel import Subscription
from agent.protocol.commands import Answer, Detach, RunControl, SetLimits, Steer, StopStep, Submit
from agent.protocol.envelope import Envelope
from agent.protocol.events import ErrorRaised, Event, ManifestApplied, RunStarted
from agent.protocol.masking import mask_strings
from agent.request_runner import publish_request, run_completed
from agent.run_context import RunContext, RunOptions
from agent.run_context import WindlassConfig as WindlassConfig
from agent.run_scope import RunScope, SessionLocation, open_scope, open_temp_dir
from agent.sessions.lock import LockTimeout
from agent.task_setup import apply_mounts, apply_task, task_secrets
from agent.telemetry.followers import Followers
from agent.tool_setup import limit_settings, plan_manifest
from agent.vocabulary import exit_codes
from agent.vocabulary.errors import AgentError
from agent.vocabulary.outcome import Outcome
from tooling.contract.fast_dataclass import dataclass

INTERRUPTED = "interrupted"
TOO_MANY_FILES = "this process may not open enough files"
RAISE_FILE_LIMIT = "raise the limit: ulimit -n 1024"


@dataclass(frozen=True, slots=True, kw_only=True)
class Interruption:
    """Reason and exit code of a run that was interrupted."""

    exit_code: int
    reason: str
    hint: str = ""


class App:
    """One run: subscribe, run, send answers, interrupt."""

    def __init__(self, *, loaded: LoadedSettings, environ: Mapping[str, str], options: RunOptions) -> None:
        task = options.task
        loaded = replace(
            loaded,
            settings=apply_task(loaded.settings, task),
            secrets=(*loaded.secrets, *task_secrets(task)),
        )
        settings = limit_settings(loaded, options.manifest)
        schema = None
        if options.output_schema:
            from agent.execution.result.structured import OutputSchema

            schema = OutputSchema.from_file(options.output_schema)
        is_shared = is_shared_place(settings.shared, environ)
        location = apply_mounts(options.location, task)
        scope = open_scope(location, loaded.secrets, options.lock_timeout, is_shared=is_shared)
        self._channel = scope.channel
        self._context = RunContext(
            loaded=loaded,
            settings=settings,
            environ=environ,
            options=options,
            scope=scope,
            questions=PendingQuestions(
                channel=scope.channel, is_present=options.is_user_present, timeout_s=settings.approval_timeout_s
            ),
            control=StepControl(),
            budget=Budget(max_tokens=settings.max_tokens, max_budget_usd=settings.max_budget_usd),
            prices=PriceTable(),
            output_schema=schema,
            interrupt=self.interrupt,
            plugins=None if loaded.is_bare else find_plugins(environ, settings),
        )
        self._engine: AgentExecutor | None = None
        self._task: asyncio.Task[Outcome] | None = None
        self._interruption: Interruption | None = None

    @property
    def _run(self) -> Run | None:
        return self._engine.run if self._engine else None

    @property
    def scope(self) -> RunScope:
        """Return the session, folder and channel of the run."""
        return self._context.scope

    @property
    def is_user_present(self) -> bool:
        """Return whether the user can be asked."""
        return self._context.options.is_user_present

    @property
    def is_interrupted(self) -> bool:
        """Return whether the run was ended from outside."""
        return self._interruption is not None

    def subscribe(self) -> Subscription:
        """Receive every event of the run."""
        return self._channel.subscribe()

    def send(self, command: Answer | RunControl) -> bool:
        """Deliver an answer or a control command; False if nothing is waiting for it."""
        context = self._context
        match command:
            case Steer():
                return context.control.steer(command)
            case StopStep():
                return context.control.stop(command)
            case SetLimits():
                context.budget.set_limits(max_tokens=command.max_tokens, max_budget_usd=command.max_budget_usd)
                return True
            case Detach():
                context.questions.detach()
                return True
            case _:
                return context.questions.resolve(command)

    def interrupt(self, exit_code: int, reason: str, hint: str = "") -> None:
        """Stop the run soon; finished work becomes its answer."""
        if self._interruption:
            # Cancelling again would abort the clean-up.
            return
        self._interruption = Interruption(exit_code=exit_code, reason=reason, hint=hint)
        if self._task:
            self._task.cancel()

    async def run(self, submit: Submit) -> Outcome:
        """Run a request to its result event and return its outcome."""
        scope = self.scope
        scope.record_request(submit.prompt)
        followers = Followers(self._context)
        try:
            outcome = mask_strings(await self._run_guarded(submit), scope.redactor.redact)
            if self._run:
                outcome = replace(outcome, effects_in_doubt=self._run.tools.effects.in_doubt)
            if scope.deletes_files:
                outcome = replace(outcome, artifacts=())
            elif self._engine:
                outcome = await self._engine.collect_files(outcome)
                if self._run:
                    outcome = replace(outcome, will_run=self._run.checkpoints.will_run)
            plan_id = self._run.orchestrator.plan_id if self._run else None
            if self._engine:
                self._engine.start_closing()
            await self._channel.publish(run_completed(outcome, plan_id))
        finally:
            problem = await scope.close(self._engine.wait_closed if self._engine else None)
            await followers.close()
        return replace(outcome, warnings=(problem,)) if problem else outcome

    async def _run_guarded(self, submit: Submit) -> Outcome:
        """Turn every possible end of a run into an outcome."""
        self._task = asyncio.ensure_future(self._execute(submit))
        if self._interruption:
            self._task.cancel()
        try:
            outcome = self._with_manifest(await self._wait_with_timeout(self._task), submit)
            if outcome.error:
                await self._channel.publish(
                    ErrorRaised(message=outcome.error, hint=outcome.hint or None, exit_code=outcome.exit_code)
                )
            return outcome
        except asyncio.CancelledError:
            if self._run and self._run.runner.answered:
                # The answer is published: only the update of the memory was cut short.
                return self._run.runner.answered
            stop = self._interruption or Interruption(exit_code=exit_codes.INTERRUPTED, reason=INTERRUPTED)
            return await self._fail(submit, stop.exit_code, stop.reason, stop.hint)
        except BudgetExhausted as stop:
            return await self._fail(submit, exit_codes.BUDGET, str(stop))
        except ModelFault as fault:
            return await self._fail(submit, fault.policy.exit_code, str(fault), fault.policy.hint)
        except AgentError as error:
            return await self._fail(submit, error.exit_code, error.message, error.hint)
        except OSError as error:
            if error.errno not in (errno.EMFILE, errno.ENFILE):
                return await self._fail_by_bug(submit, error)
            return await self._fail(submit, exit_codes.FAILED, TOO_MANY_FILES, RAISE_FILE_LIMIT)
        except Exception as error:  # noqa: BLE001 (the edge of a run: a bug is reported, its traceback saved)
            return await self._fail_by_bug(submit, error)

    def _with_manifest(self, outcome: Outcome, submit: Submit) -> Outcome:
        """Add the permissions that the run's manifest lacks, or the manifest of a plan that was not executed."""
        if self._run is None:
            return outcome
        permissions = self._run.tools.permissions
        steps = outcome.plan.steps if outcome.plan else ()
        if steps and submit.plan_only:
            settings = self._context.settings
            model = self._run.model or settings.model
            return replace(outcome, manifest=plan_manifest(permissions, settings, model, steps))
        hint = permissions.hint if outcome.exit_code == exit_codes.APPROVAL else ""
        return replace(outcome, missing=permissions.missing if permissions.hint else None, hint=hint or outcome.hint)

    async def _wait_with_timeout(self, task: "asyncio.Task[Outcome]") -> Outcome:
        """Wait for the run; interrupt it at its time limit."""
        limit_s = self._context.settings.timeout_s
        done, _ = await asyncio.wait({task}, timeout=limit_s)
        if not done:
            self.interrupt(exit_codes.TIMED_OUT, f"the time limit of {limit_s:g} s was reached")
        return await task

    async def _execute(self, submit: Submit) -> Outcome:
        self._engine = AgentExecutor(
            self._context,
            hooks=open_hooks(self._context),
            on_built=self._start,
            why_cancelled=lambda: self._interruption.reason if self._interruption else INTERRUPTED,
        )
        return await self._engine.execute(submit.prompt, self._context.options.task, submit)

    def _start(self, run: Run) -> None:
        if run.unfinished:
            self.scope.record_request(run.submit.prompt)
        self._emit_started(run.submit, run)

    def _emit_started(self, submit: Submit, run: Run | None) -> None:
        context, settings = self._context, self._context.settings
        model = run.model if run else ""
        record = context.options.record
        started = RunStarted(
            model=model,
            planner_model=(settings.planner_model or model) if model else "",
            cwd=str(self.scope.cwd),
            workspace=str(self.scope.cwd),
            backend=settings.backend,
            approval_mode=settings.approval_mode,
            tools=run.tool_names if run else (),
            warnings=(
                *context.loaded.warnings,
                *(self._engine.early_warnings if self._engine else ()),
                *(run.tools.warnings if run else ()),
                *(run.skill_problems if run else ()),
            ),
            resumes=run.unfinished.run_id if run and run.unfinished else None,
            plan_only=submit.plan_only,
            cassette=str(record.absolute()) if record else None,
            image=settings.docker_image if settings.backend == "docker" else None,
            context_window=(context.prices.context_size(model) or UNKNOWN_CONTEXT_TOKENS) if model else None,
            task_id=context.options.task_id or None,
            trace_id=context.options.trace_id or None,
        )
        # Held back until the request follows: every run that is reported can be resumed.
        self._channel.hold()
        self._channel.emit(started)
        if given := context.options.manifest:
            applied = ManifestApplied(by="file", manifest=given.manifest, manifest_file=str(given.path))
            self._channel.emit(applied)

    async def _fail_by_bug(self, submit: Submit, error: Exception) -> Outcome:
        return await self._fail(submit, exit_codes.FAILED, f"internal error: {error!r}", self.scope.save_traceback())

    async def _fail(self, submit: Submit, exit_code: int, message: str, hint: str = "") -> Outcome:
        """Publish an error, after the first events of every run, and return the outcome."""
        run = self._run
        if run is None:
            self._emit_started(submit, None)
        if run is None or not run.runner.has_published_request:
            await publish_request(self._channel, run.submit.prompt if run else submit.prompt)
        await self._channel.publish(ErrorRaised(message=message, hint=hint or None, exit_code=exit_code))
        if run:
            return self._with_manifest(run.orchestrator.early_outcome(exit_code, message), submit)
        return Outcome(subtype=exit_codes.SUBTYPES[exit_code], exit_code=exit_code, answer="", error=message)


class Windlass:
    """Windlass as a library: a session that runs one request after another, each with the conversation so far."""

    def __init__(self, config: WindlassConfig | None = None) -> None:
        self.config = config or WindlassConfig()
        self.session_id: str | None = self.config.session_id
        self.outcome: Outcome | None = None
        self._environ = os_environ() if self.config.environ is None else self.config.environ
        self._temp_dir = open_temp_dir() if self.config.ephemeral else None
        self._backend = SharedBackend()
        self._app: App | None = None
        self._running: asyncio.Task[Outcome] | None = None
        self._is_interrupted = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def run(self, prompt: str) -> AsyncIterator[Event]:
        """Run a request and yield its events, `init` first and `result` last; then `outcome` is set.

        Raises AgentError if the run cannot start. Leaving the loop early interrupts the run, and so does a new request.
        """
        async with aclosing(self.submit(Submit(prompt=prompt))) as envelopes:
            async for envelope in envelopes:
                yield envelope.event

    async def submit(self, submit: Submit) -> AsyncGenerator[Envelope]:
        """Like `run`, for a request with attachments or a plan; yields events with their step, time and number."""
        await self._end_running()
        self.outcome, self._is_interrupted = None, False
        app = self._app = await self._open()
        self.session_id = app.scope.folder.id
        events = app.subscribe()
        running = self._running = asyncio.ensure_future(app.run(submit))
        try:
            async for envelope in events:
                yield envelope
            self.outcome = await running
        finally:
            await self._end(app, running)

    async def answer(self, reply: Answer) -> bool:
        """Answer an approval or a question of the running request; False if nothing waits for it."""
        return self._app is not None and self._app.send(reply)

    async def steer(self, text: str) -> bool:
        """Send a message to the running request; False if none is running."""
        return self._app is not None and self._app.send(Steer(text=text))

    def interrupt(self) -> None:
        """Stop the running request soon; its last event still follows."""
        self._is_interrupted = True
        if self._app:
            self._app.interrupt(exit_codes.INTERRUPTED, INTERRUPTED)

    def configure(self, **settings: object) -> None:
        """Change settings for the requests that follow."""
        self.config = replace(self.config, settings={**self.config.settings, **settings})

    async def close(self) -> None:
        """Interrupt the running request, stop background commands, and delete an ephemeral session."""
        await self._end_running()
        await self._backend.close()
        if self._temp_dir:
            self._temp_dir.remove()

    async def _open(self) -> App:
        """Open the next run, in a thread: it may wait for a session that another process is using."""
        opening = asyncio.ensure_future(asyncio.to_thread(self._open_app))
        try:
            app = await asyncio.shield(opening)
        except asyncio.CancelledError:
            await (await opening).scope.close()
            raise
        if self._is_interrupted:
            app.interrupt(exit_codes.INTERRUPTED, INTERRUPTED)
        return app

    def _open_app(self) -> App:
        config = self.config
        loaded = load_settings(environ=self._environ, flags=config.settings, profile=config.profile, bare=config.bare)
        location = SessionLocation(
            data_dir=self._temp_dir.path if self._temp_dir else data_dir(self._environ),
            session_id=self.session_id,
            cwd=config.cwd,
            extra_dirs=config.extra_dirs,
        )
        options = RunOptions(
            location=location,
            is_user_present=config.answers,
            lock_timeout=LockTimeout(limit_s=loaded.settings.session_wait_s),
            shared_backend=self._backend,
            task=config.task,
            hooks=config.hooks,
            trace_id=config.trace_id,
        )
        return App(loaded=loaded, environ=self._environ, options=options)

    async def _end_running(self) -> None:
        if self._app and self._running:
            await self._end(self._app, self._running)

    async def _end(self, app: App, running: "asyncio.Task[Outcome]") -> None:
        """Interrupt a run that has not ended, and wait for its end."""
        if not running.done():
            app.interrupt(exit_codes.INTERRUPTED, INTERRUPTED)
            await asyncio.wait([running])
        if self._app is app:
            self._app = self._running = None
