"""One run from its first event to its last: `init` first, `result` last, whatever happens in between."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace

from agent.assembly import UNKNOWN_CONTEXT_TOKENS, Run, RunContext, RunOptions, build_run
from agent.config.load import LoadedSettings
from agent.engine import publish_request
from agent.execution.approvals import PendingQuestions
from agent.execution.result.structured import OutputSchema
from agent.execution.step.control import StepControl
from agent.model.budget import Budget, BudgetExhausted
from agent.model.faults import ModelFault
from agent.model.prices import PriceTable
from agent.protocol.channel import Subscription
from agent.protocol.commands import Answer, Detach, RunControl, SetLimits, Steer, StopStep, Submit
from agent.protocol.events import ErrorRaised, RunCompleted, RunStarted, StepCounts
from agent.protocol.masking import mask_strings
from agent.run_scope import RunScope, open_scope
from agent.vocabulary import exit_codes
from agent.vocabulary.errors import AgentError
from agent.vocabulary.outcome import Outcome
from agent.vocabulary.status import is_success
from tooling.contract.fast_dataclass import dataclass

INTERRUPTED = "interrupted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Interruption:
    """Why and how a run was ended from outside."""

    exit_code: int
    reason: str
    hint: str = ""


class App:
    """One run: subscribe, run, send answers, interrupt."""

    def __init__(self, *, loaded: LoadedSettings, environ: Mapping[str, str], options: RunOptions) -> None:
        settings = loaded.settings
        schema = OutputSchema.from_file(options.output_schema) if options.output_schema else None
        scope = open_scope(options.location, loaded.secrets, options.lock_timeout)
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
        )
        self._run: Run | None = None
        self._task: asyncio.Task[Outcome] | None = None
        self._interruption: Interruption | None = None

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
        """End the run soon, with what is finished as its answer."""
        if self._interruption:
            # Cancelling again would cut the clean-up short.
            return
        self._interruption = Interruption(exit_code=exit_code, reason=reason, hint=hint)
        if self._task:
            self._task.cancel()

    async def run(self, submit: Submit) -> Outcome:
        """Run a request to its result event and return its outcome."""
        scope = self.scope
        scope.record_request(submit.prompt)
        try:
            outcome = mask_strings(await self._run_guarded(submit), scope.redactor.redact)
            if scope.deletes_files:
                outcome = replace(outcome, artifacts=())
            plan_id = self._run.orchestrator.plan_id if self._run else None
            await self._channel.publish(run_completed(outcome, plan_id))
        finally:
            problem = await scope.close()
        return replace(outcome, warnings=(problem,)) if problem else outcome

    async def _run_guarded(self, submit: Submit) -> Outcome:
        """Turn every way a run can end into an outcome."""
        self._task = asyncio.ensure_future(self._execute(submit))
        if self._interruption:
            self._task.cancel()
        try:
            outcome = await self._wait_with_timeout(self._task)
            if outcome.error:
                await self._channel.publish(
                    ErrorRaised(message=outcome.error, hint=outcome.hint or None, exit_code=outcome.exit_code)
                )
            return outcome
        except asyncio.CancelledError:
            if self._run and self._run.engine.answered:
                # The answer is published: only the update of the memory was cut short.
                return self._run.engine.answered
            stop = self._interruption or Interruption(exit_code=exit_codes.INTERRUPTED, reason=INTERRUPTED)
            return await self._fail(submit, stop.exit_code, stop.reason, stop.hint)
        except BudgetExhausted as stop:
            return await self._fail(submit, exit_codes.BUDGET, str(stop))
        except ModelFault as fault:
            return await self._fail(submit, fault.policy.exit_code, str(fault), fault.policy.hint)
        except AgentError as error:
            return await self._fail(submit, error.exit_code, error.message, error.hint)
        except Exception as error:  # noqa: BLE001 (the edge of a run: a bug is reported, its traceback saved)
            return await self._fail(
                submit, exit_codes.FAILED, f"internal error: {error!r}", self.scope.save_traceback()
            )

    async def _wait_with_timeout(self, task: "asyncio.Task[Outcome]") -> Outcome:
        """Wait for the run; past its time limit it is interrupted."""
        limit_s = self._context.settings.timeout_s
        done, _ = await asyncio.wait({task}, timeout=limit_s)
        if not done:
            self.interrupt(exit_codes.TIMED_OUT, f"the time limit of {limit_s:g} s was reached")
        return await task

    async def _execute(self, submit: Submit) -> Outcome:
        run = self._run = await build_run(self._context, submit)
        try:
            if run.unfinished:
                self.scope.record_request(run.submit.prompt)
            self._emit_started(run.submit, run)
            run.client.warm_up()
            if not run.submit.plan_only:
                run.tools.backend.start()
                if run.checkpoints:
                    run.checkpoints.start()
            return await run.engine.execute(run.submit, run.unfinished)
        finally:
            await run.tools.close()
            if run.checkpoints:
                await run.checkpoints.close()
            await run.client.close()

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
            warnings=(*context.loaded.warnings, *(run.tools.warnings if run else ())),
            resumes=run.unfinished.run_id if run and run.unfinished else None,
            plan_only=submit.plan_only,
            cassette=str(record.absolute()) if record else None,
            context_window=(context.prices.context_size(model) or UNKNOWN_CONTEXT_TOKENS) if model else None,
        )
        # Not awaited: it reaches the disk together with the request.
        self._channel.emit(started)

    async def _fail(self, submit: Submit, exit_code: int, message: str, hint: str = "") -> Outcome:
        """Publish an error, after the events that every run begins with, and return the outcome."""
        run = self._run
        if run is None:
            self._emit_started(submit, None)
        if run is None or not run.engine.has_published_request:
            await publish_request(self._channel, run.submit.prompt if run else submit.prompt)
        await self._channel.publish(ErrorRaised(message=message, hint=hint or None, exit_code=exit_code))
        if run:
            return run.orchestrator.early_outcome(exit_code, message)
        return Outcome(subtype=exit_codes.SUBTYPES[exit_code], exit_code=exit_code, answer="", error=message)


def run_completed(outcome: Outcome, plan_id: str | None) -> RunCompleted:
    """Return the `result` event of an outcome."""
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
