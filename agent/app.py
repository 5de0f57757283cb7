"""Builds a run out of settings and sees it through: `init` first, `result` last, whatever happens between."""

import asyncio
import sys
import traceback
from collections.abc import Mapping
from dataclasses import field, replace
from pathlib import Path

from agent.config.load import LoadedSettings
from agent.engine import AgentExecutor
from agent.execution.approvals import PendingQuestions
from agent.execution.result.structured import OutputSchema
from agent.execution.step.control import StepControl
from agent.memory.run_memory import RunMemory, open_memory
from agent.model.budget import Budget, BudgetExhausted
from agent.model.faults import ModelFault
from agent.model.prices import PriceTable
from agent.model.router import ModelRouter
from agent.model_choice import choose_model, needs_model
from agent.orchestrator import OrchestratorRunner, Review
from agent.protocol.channel import Subscription
from agent.protocol.commands import Answer, RunControl, SetLimits, Steer, StopStep, Submit
from agent.protocol.events import ErrorRaised, MessageSaid, RunCompleted, RunStarted, StepCounts, WarningRaised
from agent.protocol.masking import mask_strings
from agent.run_scope import RunScope, SessionLocation, open_scope
from agent.sessions.lock import LockTimeout
from agent.toolbox import ToolEnvironment, ToolSetup
from agent.vocabulary import exit_codes
from agent.vocabulary.errors import AgentError
from agent.vocabulary.outcome import Outcome
from agent.vocabulary.plan import RESUMED, Plan
from agent.vocabulary.status import is_success
from agent.vocabulary.unfinished import UnfinishedRun
from agent.wiring import RunBuilder
from tooling.contract.action import Effect
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.tool import ToolExecutor

FULL_OUTPUT_CHARS = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """What a person chose for this run beyond the settings; `resumes` is the run to be gone on with."""

    location: SessionLocation
    is_user_present: bool = False
    record: Path | None = None
    replay: Path | None = None
    output_schema: Path | None = None
    lock_timeout: LockTimeout = field(default_factory=LockTimeout)
    review: Review | None = None
    resumes: str | None = None


class App:
    """One run: subscribe, run, send answers, interrupt."""

    def __init__(self, *, loaded: LoadedSettings, environ: Mapping[str, str], options: RunOptions) -> None:
        self._loaded = loaded
        self._settings = loaded.settings
        self._environ = environ
        self._options = options
        self._output_schema = OutputSchema.from_file(options.output_schema) if options.output_schema else None
        self._scope = open_scope(options.location, loaded.secrets, options.lock_timeout)
        self._channel = self._scope.channel
        self._questions = PendingQuestions(
            channel=self._channel,
            is_present=options.is_user_present,
            timeout_s=self._settings.approval_timeout_s,
        )
        self._control = StepControl()
        self._prices = PriceTable()
        self._budget = Budget(max_tokens=self._settings.max_tokens, max_budget_usd=self._settings.max_budget_usd)
        self._orchestrator: OrchestratorRunner | None = None
        self._run_task: asyncio.Task[Outcome] | None = None
        self._interruption: tuple[int, str, str] | None = None
        self._submit = Submit(prompt="")
        self._has_started = False
        self._memory: RunMemory | None = None
        self._answer_outcome: Outcome | None = None
        self._has_published_request = False
        self._resumes: str | None = None

    @property
    def scope(self) -> RunScope:
        """Return where the run works."""
        return self._scope

    def subscribe(self) -> Subscription:
        """Listen to every event of the run."""
        return self._channel.subscribe()

    def send(self, command: Answer | RunControl) -> bool:
        """Hand in an answer or a wish; False when nobody waits for it."""
        match command:
            case Steer():
                return self._control.steer(command)
            case StopStep():
                return self._control.stop(command)
            case SetLimits():
                self._budget.set_limits(max_tokens=command.max_tokens, max_budget_usd=command.max_budget_usd)
                return True
            case _:
                return self._questions.resolve(command)

    def interrupt(self, exit_code: int, why: str, hint: str = "") -> None:
        """End the run soon, with what is finished as its answer."""
        if self._interruption:
            # The first wish is being granted: cancelling again would cut short the tidying up.
            return
        self._interruption = (exit_code, why, hint)
        if self._run_task:
            self._run_task.cancel()

    @property
    def is_user_present(self) -> bool:
        """Say whether somebody can be asked."""
        return self._options.is_user_present

    @property
    def is_interrupted(self) -> bool:
        """Say whether somebody ended the run."""
        return self._interruption is not None

    async def run(self, submit: Submit) -> Outcome:
        """See the request through to its result event, and return the outcome it tells of."""
        self._submit = submit
        self._scope.record_request(submit.prompt)
        try:
            outcome = mask_strings(await self._run_guarded(submit), self._scope.redactor.redact)
            await self._channel.publish(_run_completed(outcome, self._plan_id))
        finally:
            problem = await self._scope.close()
        return replace(outcome, warnings=(problem,)) if problem else outcome

    async def _run_guarded(self, submit: Submit) -> Outcome:
        """Turn every way a run can end into an outcome."""
        self._run_task = asyncio.ensure_future(self._attempt(submit))
        if self._interruption:
            self._run_task.cancel()
        try:
            outcome = await self._wait_with_timeout(self._run_task)
            if outcome.error:
                await self._channel.publish(ErrorRaised(message=outcome.error, exit_code=outcome.exit_code))
            return outcome
        except asyncio.CancelledError:
            if self._answer_outcome:
                # The answer is out: only remembering was cut short.
                return self._answer_outcome
            return await self._fail(*(self._interruption or (exit_codes.INTERRUPTED, "interrupted", "")))
        except BudgetExhausted as stop:
            return await self._fail(exit_codes.BUDGET, str(stop))
        except ModelFault as fault:
            return await self._fail(fault.policy.exit_code, str(fault), fault.policy.hint)
        except AgentError as error:
            return await self._fail(error.exit_code, error.message, error.hint)
        except Exception as error:  # noqa: BLE001 (the edge of a run: a bug is told of, its traceback kept)
            return await self._fail(exit_codes.FAILED, f"internal error: {error!r}", self._save_traceback())

    async def _wait_with_timeout(self, work: "asyncio.Task[Outcome]") -> Outcome:
        """Wait for the end of the work; past the time limit it is interrupted like by anybody else."""
        done, _ = await asyncio.wait({work}, timeout=self._settings.timeout_s)
        if not done:
            self.interrupt(exit_codes.TIMED_OUT, f"the time limit of {self._settings.timeout_s:g} s is over")
        return await work

    async def _attempt(self, submit: Submit) -> Outcome:
        toolbox = self._build_tools(submit)
        before = await self._load_unfinished(toolbox.executor)
        if before:
            submit = self._submit = _resumed_submit(before)
            toolbox = self._build_tools(submit)
            self._scope.record_request(submit.prompt)
        names = tuple(_tool_name(schema) for schema in toolbox.executor.schemas())
        model = ""
        if needs_model(submit, self._loaded):
            model = await choose_model(submit, self._settings, is_replay=bool(self._options.replay))
        self._emit_started(model, names, toolbox.warnings)
        client = ModelRouter(
            replace(self._settings, model=model, planner_model=self._settings.planner_model if model else ""),
            prices=self._prices,
            record=self._options.record,
            replay=self._options.replay,
            volatile={str(self._scope.cwd): "<workspace>", f" on {sys.platform}. Today": " on <platform>. Today"},
            redact=self._scope.redactor.redact,
            on_retry=self._warn_retry,
        )
        client.warm_up()
        try:
            if not submit.plan_only:
                toolbox.start()
            engine = self._build_executor(model, client, toolbox.executor, names, before)
            return await engine.execute(submit, before)
        finally:
            await toolbox.close()
            await client.close()

    async def _load_unfinished(self, tools: ToolExecutor) -> UnfinishedRun | None:
        """Read how far the run to be gone on with had come."""
        if self._options.resumes is None:
            return None

        def effect_of(name: str) -> Effect | None:
            spec = tools.spec_of(name)
            return spec.effect if spec else None

        from agent.sessions.resume.resume_state import unfinished_run

        found = await asyncio.to_thread(unfinished_run, self._scope.folder.events, self._options.resumes, effect_of)
        self._resumes = found.run_id
        return found

    def _build_tools(self, submit: Submit) -> ToolSetup:
        settings = self._settings
        is_taped = bool(self._options.record or self._options.replay)
        self._memory = open_memory(settings, self._scope, submit.prompt, is_taped=is_taped)
        if not needs_model(submit, self._loaded):
            # Outputs are trimmed for models; here they are the answer.
            settings = replace(settings, output_trim_chars=max(settings.output_trim_chars, FULL_OUTPUT_CHARS))
        return ToolSetup(
            ToolEnvironment(
                settings=settings,
                environ=self._environ,
                secrets=self._loaded.secrets,
                scope=self._scope,
                questions=self._questions,
                is_user_present=self._options.is_user_present,
                on_refused=self._interrupt_for_approval,
                on_sandbox_error=lambda error: self.interrupt(error.exit_code, error.message, error.hint),
                memory=self._memory,
            )
        )

    def _save_answer(self, outcome: Outcome) -> None:
        self._answer_outcome = outcome

    def _build_executor(
        self,
        model: str,
        client: ModelRouter,
        tools: ToolExecutor,
        names: tuple[str, ...],
        before: UnfinishedRun | None,
    ) -> AgentExecutor:
        parts = RunBuilder(
            loaded=self._loaded,
            scope=self._scope,
            questions=self._questions,
            control=self._control,
            budget=self._budget,
            prices=self._prices,
            client=client,
            tools=tools,
            tool_names=names,
            model=model,
            unfinished=before,
            review=self._options.review,
            on_bug=self._save_traceback,
        )
        desk = parts.build_model()
        self._orchestrator = parts.build_orchestrator(desk)
        return AgentExecutor(
            scope=self._scope,
            orchestrator=self._orchestrator,
            desk=desk,
            model=model,
            ask=self._publish_request,
            form=self._output_schema,
            memory=self._memory,
            has_notes=self._settings.project_notes and not self._scope.is_own_workspace,
            on_answer=self._save_answer,
        )

    def _emit_started(self, model: str, tools: tuple[str, ...], warnings: tuple[str, ...]) -> None:
        """Tell of `init`; a run that ends before it got so far does it at its end."""
        self._has_started = True
        started = RunStarted(
            model=model,
            planner_model=(self._settings.planner_model or model) if model else "",
            cwd=str(self._scope.cwd),
            workspace=str(self._scope.cwd),
            backend=self._settings.backend,
            approval_mode=self._settings.approval_mode,
            tools=tools,
            warnings=(*self._loaded.warnings, *warnings),
            resumes=self._resumes,
            plan_only=self._submit.plan_only,
            cassette=str(self._options.record.absolute()) if self._options.record else None,
        )
        # Not waited for: it reaches the disk together with the request.
        self._channel.emit(started)

    async def _publish_request(self, beside: tuple[MessageSaid, ...] = ()) -> None:
        """Publish the request behind all that comes with it: a log that holds it holds the rest as well."""
        self._has_published_request = True
        for said in beside:
            self._channel.emit(said)
        await self._channel.publish(MessageSaid(role="user", content=self._submit.prompt))

    def _warn_retry(self, fault: ModelFault, wait_s: float) -> None:
        self._channel.emit(WarningRaised(message=f"{fault}; trying again in {wait_s:.1f} s"))

    def _interrupt_for_approval(self, subject: str) -> None:
        self.interrupt(exit_codes.APPROVAL, f"{subject!r} needs an approval that nobody can give")

    def _early_outcome(self, exit_code: int, why: str) -> Outcome:
        if self._orchestrator:
            return self._orchestrator.early_outcome(exit_code, why)
        return Outcome(subtype=exit_codes.SUBTYPES[exit_code], exit_code=exit_code, answer="", error=why)

    async def _fail(self, exit_code: int, message: str, hint: str = "") -> Outcome:
        if not self._has_started:
            self._emit_started("", (), ())
        if not self._has_published_request:
            await self._publish_request()
        await self._channel.publish(ErrorRaised(message=message, hint=hint or None, exit_code=exit_code))
        return self._early_outcome(exit_code, message)

    @property
    def _plan_id(self) -> str | None:
        return self._orchestrator.plan_id if self._orchestrator else None

    def _save_traceback(self) -> str:
        if not self._scope.is_persistent:
            return "this is a bug in Windlass; its traceback is kept when the run is not ephemeral"
        path = self._scope.folder.root / "crash.txt"
        try:
            path.touch(mode=0o600)
            path.write_text(self._scope.redactor.redact(traceback.format_exc()), "utf-8", "backslashreplace")
        except OSError:
            return "this is a bug in Windlass"
        return f"this is a bug in Windlass; its traceback is in {path}"


def _run_completed(outcome: Outcome, plan_id: str | None) -> RunCompleted:
    statuses = [response.status for response in outcome.responses]
    ok, skipped = sum(map(is_success, statuses)), statuses.count("skipped")
    return RunCompleted(
        subtype=outcome.subtype,
        is_error=outcome.is_error,
        exit_code=outcome.exit_code,
        result=outcome.answer,
        structured_output=outcome.structured,
        verified=outcome.verified,
        plan_id=plan_id,
        steps=StepCounts(ok=ok, failed=len(statuses) - ok - skipped, skipped=skipped),
        artifacts=outcome.artifacts,
        permission_denials=outcome.denials,
        deferred=outcome.deferred,
        num_turns=outcome.num_turns,
        duration_ms=outcome.duration_ms,
        total_cost_usd=outcome.usage.cost_usd,
        usage=outcome.usage,
        model_usage=outcome.model_usage,
        resume=outcome.resume,
        error=outcome.error,
    )


def _resumed_submit(before: UnfinishedRun) -> Submit:
    """Return the request of a run that is gone on with; a plan that was given stays as it was given."""
    is_given = before.is_plan_given and before.is_plan_complete
    return Submit(prompt=before.request, plan=Plan(steps=before.plan, reason=RESUMED) if is_given else None)


def _tool_name(schema: Mapping[str, object]) -> str:
    function = schema.get("function")
    return str(function.get("name")) if isinstance(function, Mapping) else ""
