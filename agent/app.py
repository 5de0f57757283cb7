"""Builds a run out of settings and sees it through: `init` first, `result` last, whatever happens between."""

import asyncio
import sys
import traceback
from collections.abc import Mapping
from dataclasses import field, replace
from pathlib import Path

from agent.config.load import Loaded
from agent.engine import AgentExecutor
from agent.execution.approvals import Person
from agent.execution.result.structured import OutputForm
from agent.execution.step.control import Wishes
from agent.memory.run_memory import RunMemory, open_memory
from agent.model.budget import BudgetExhausted, Ledger
from agent.model.faults import ModelFault
from agent.model.prices import PriceTable
from agent.model.router import ModelSwitch
from agent.model_choice import chosen_model, needs_model
from agent.orchestrator import OrchestratorRunner, Review
from agent.protocol.channel import Subscription
from agent.protocol.commands import Answer, SetLimits, Steer, StopStep, Submit, Wish
from agent.protocol.events import ErrorRaised, MessageSaid, RunCompleted, RunStarted, StepCounts, WarningRaised
from agent.protocol.masking import masked
from agent.run_scope import Place, RunScope, open_scope
from agent.sessions.lock import Patience
from agent.toolbox import Surroundings, Toolbox
from agent.vocabulary import exit_codes
from agent.vocabulary.errors import AgentError
from agent.vocabulary.outcome import Outcome
from agent.vocabulary.plan import RESUMED, Plan
from agent.vocabulary.status import is_success
from agent.vocabulary.unfinished import UnfinishedRun
from agent.wiring import Parts
from tooling.contract.action import Effect
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.tool import ToolExecutor

WHOLE_OUTPUT_CHARS = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """What a person chose for this run beyond the settings; `resumes` is the run to be gone on with."""

    place: Place
    is_person_present: bool = False
    record: Path | None = None
    replay: Path | None = None
    output_schema: Path | None = None
    patience: Patience = field(default_factory=Patience)
    review: Review | None = None
    resumes: str | None = None


class App:
    """One run: subscribe, run, send answers, interrupt."""

    def __init__(self, *, loaded: Loaded, environ: Mapping[str, str], options: RunOptions) -> None:
        self._loaded = loaded
        self._settings = loaded.settings
        self._environ = environ
        self._options = options
        self._form = OutputForm.of_file(options.output_schema) if options.output_schema else None
        self._scope = open_scope(options.place, loaded.secrets, options.patience)
        self._channel = self._scope.channel
        self._person = Person(
            channel=self._channel,
            is_present=options.is_person_present,
            patience_s=self._settings.approval_timeout_s,
        )
        self._wishes = Wishes()
        self._prices = PriceTable()
        self._ledger = Ledger(max_tokens=self._settings.max_tokens, max_budget_usd=self._settings.max_budget_usd)
        self._orchestrator: OrchestratorRunner | None = None
        self._work: asyncio.Task[Outcome] | None = None
        self._stopped: tuple[int, str, str] | None = None
        self._submit = Submit(prompt="")
        self._has_begun = False
        self._memory: RunMemory | None = None
        self._answered: Outcome | None = None
        self._has_asked = False
        self._resumes: str | None = None

    @property
    def scope(self) -> RunScope:
        """Return where the run works."""
        return self._scope

    def subscribe(self) -> Subscription:
        """Listen to every event of the run."""
        return self._channel.subscribe()

    def send(self, command: Answer | Wish) -> bool:
        """Hand in an answer or a wish; False when nobody waits for it."""
        match command:
            case Steer():
                return self._wishes.steer(command)
            case StopStep():
                return self._wishes.stop(command)
            case SetLimits():
                self._ledger.limit(max_tokens=command.max_tokens, max_budget_usd=command.max_budget_usd)
                return True
            case _:
                return self._person.resolve(command)

    def interrupt(self, exit_code: int, why: str, hint: str = "") -> None:
        """End the run soon, with what is finished as its answer."""
        if self._stopped:
            # The first wish is being granted: cancelling again would cut short the tidying up.
            return
        self._stopped = (exit_code, why, hint)
        if self._work:
            self._work.cancel()

    @property
    def is_person_present(self) -> bool:
        """Say whether somebody can be asked."""
        return self._options.is_person_present

    @property
    def is_interrupted(self) -> bool:
        """Say whether somebody ended the run."""
        return self._stopped is not None

    async def run(self, submit: Submit) -> Outcome:
        """See the request through to its result event, and return the outcome it tells of."""
        self._submit = submit
        self._scope.tell(submit.prompt)
        try:
            outcome = masked(await self._guarded(submit), self._scope.redactor.redact)
            await self._channel.publish(_completed(outcome, self._plan_id))
        finally:
            problem = await self._scope.close()
        return replace(outcome, warnings=(problem,)) if problem else outcome

    async def _guarded(self, submit: Submit) -> Outcome:
        """Turn every way a run can end into an outcome."""
        self._work = asyncio.ensure_future(self._attempt(submit))
        if self._stopped:
            self._work.cancel()
        try:
            outcome = await self._in_time(self._work)
            if outcome.error:
                await self._channel.publish(ErrorRaised(message=outcome.error, exit_code=outcome.exit_code))
            return outcome
        except asyncio.CancelledError:
            if self._answered:
                # The answer is out: only remembering was cut short.
                return self._answered
            return await self._failed(*(self._stopped or (exit_codes.INTERRUPTED, "interrupted", "")))
        except BudgetExhausted as stop:
            return await self._failed(exit_codes.BUDGET, str(stop))
        except ModelFault as fault:
            return await self._failed(fault.row.exit_code, str(fault), fault.row.hint)
        except AgentError as error:
            return await self._failed(error.exit_code, error.message, error.hint)
        except Exception as error:  # noqa: BLE001 (the edge of a run: a bug is told of, its traceback kept)
            return await self._failed(exit_codes.FAILED, f"internal error: {error!r}", self._keep_traceback())

    async def _in_time(self, work: "asyncio.Task[Outcome]") -> Outcome:
        """Wait for the end of the work; past the time limit it is interrupted like by anybody else."""
        done, _ = await asyncio.wait({work}, timeout=self._settings.timeout_s)
        if not done:
            self.interrupt(exit_codes.TIMED_OUT, f"the time limit of {self._settings.timeout_s:g} s is over")
        return await work

    async def _attempt(self, submit: Submit) -> Outcome:
        toolbox = self._toolbox(submit)
        before = await self._unfinished(toolbox.executor)
        if before:
            submit = self._submit = _again(before)
            toolbox = self._toolbox(submit)
            self._scope.tell(submit.prompt)
        names = tuple(_name_of(schema) for schema in toolbox.executor.schemas())
        model = ""
        if needs_model(submit, self._loaded):
            model = await chosen_model(submit, self._settings, is_replay=bool(self._options.replay))
        self._begin(model, names, toolbox.warnings)
        client = ModelSwitch(
            replace(self._settings, model=model, planner_model=self._settings.planner_model if model else ""),
            prices=self._prices,
            record=self._options.record,
            replay=self._options.replay,
            volatile={str(self._scope.cwd): "<workspace>", f" on {sys.platform}. Today": " on <platform>. Today"},
            redact=self._scope.redactor.redact,
            on_retry=self._tell_of_retry,
        )
        client.warm_up()
        try:
            if not submit.plan_only:
                toolbox.begin()
            engine = self._engine(model, client, toolbox.executor, names, before)
            return await engine.execute(submit, before)
        finally:
            await toolbox.close()
            await client.close()

    async def _unfinished(self, tools: ToolExecutor) -> UnfinishedRun | None:
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

    def _toolbox(self, submit: Submit) -> Toolbox:
        settings = self._settings
        is_taped = bool(self._options.record or self._options.replay)
        self._memory = open_memory(settings, self._scope, submit.prompt, is_taped=is_taped)
        if not needs_model(submit, self._loaded):
            # Outputs are trimmed for models; here they are the answer.
            settings = replace(settings, output_trim_chars=max(settings.output_trim_chars, WHOLE_OUTPUT_CHARS))
        return Toolbox(
            Surroundings(
                settings=settings,
                environ=self._environ,
                secrets=self._loaded.secrets,
                scope=self._scope,
                person=self._person,
                is_person_present=self._options.is_person_present,
                on_refused=self._stop_at_approval,
                on_broken=lambda error: self.interrupt(error.exit_code, error.message, error.hint),
                memory=self._memory,
            )
        )

    def _keep_answer(self, outcome: Outcome) -> None:
        self._answered = outcome

    def _engine(
        self,
        model: str,
        client: ModelSwitch,
        tools: ToolExecutor,
        names: tuple[str, ...],
        before: UnfinishedRun | None,
    ) -> AgentExecutor:
        parts = Parts(
            loaded=self._loaded,
            scope=self._scope,
            person=self._person,
            wishes=self._wishes,
            ledger=self._ledger,
            prices=self._prices,
            client=client,
            tools=tools,
            names=names,
            model=model,
            before=before,
            review=self._options.review,
            on_bug=self._keep_traceback,
        )
        desk = parts.desk()
        self._orchestrator = parts.orchestrator(desk)
        return AgentExecutor(
            scope=self._scope,
            orchestrator=self._orchestrator,
            desk=desk,
            model=model,
            ask=self._ask,
            form=self._form,
            memory=self._memory,
            has_notes=self._settings.project_notes and not self._scope.is_own_workspace,
            on_answer=self._keep_answer,
        )

    def _begin(self, model: str, tools: tuple[str, ...], warnings: tuple[str, ...]) -> None:
        """Tell of `init`; a run that ends before it got so far does it at its end."""
        self._has_begun = True
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
        self._channel.whisper(started)

    async def _ask(self, beside: tuple[MessageSaid, ...] = ()) -> None:
        """Publish the request behind all that comes with it: a log that holds it holds the rest as well."""
        self._has_asked = True
        for said in beside:
            self._channel.whisper(said)
        await self._channel.publish(MessageSaid(role="user", content=self._submit.prompt))

    def _tell_of_retry(self, fault: ModelFault, wait_s: float) -> None:
        self._channel.whisper(WarningRaised(message=f"{fault}; trying again in {wait_s:.1f} s"))

    def _stop_at_approval(self, subject: str) -> None:
        self.interrupt(exit_codes.APPROVAL, f"{subject!r} needs an approval that nobody can give")

    def _ended(self, exit_code: int, why: str) -> Outcome:
        if self._orchestrator:
            return self._orchestrator.ended_early(exit_code, why)
        return Outcome(subtype=exit_codes.SUBTYPES[exit_code], exit_code=exit_code, answer="", error=why)

    async def _failed(self, exit_code: int, message: str, hint: str = "") -> Outcome:
        if not self._has_begun:
            self._begin("", (), ())
        if not self._has_asked:
            await self._ask()
        await self._channel.publish(ErrorRaised(message=message, hint=hint or None, exit_code=exit_code))
        return self._ended(exit_code, message)

    @property
    def _plan_id(self) -> str | None:
        return self._orchestrator.plan_id if self._orchestrator else None

    def _keep_traceback(self) -> str:
        if not self._scope.is_kept:
            return "this is a bug in Windlass; its traceback is kept when the run is not ephemeral"
        path = self._scope.folder.root / "crash.txt"
        try:
            path.touch(mode=0o600)
            path.write_text(self._scope.redactor.redact(traceback.format_exc()), "utf-8", "backslashreplace")
        except OSError:
            return "this is a bug in Windlass"
        return f"this is a bug in Windlass; its traceback is in {path}"


def _completed(outcome: Outcome, plan_id: str | None) -> RunCompleted:
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


def _again(before: UnfinishedRun) -> Submit:
    """Return the request of a run that is gone on with; a plan that was given stays as it was given."""
    is_given = before.is_as_written and before.is_plan_complete
    return Submit(prompt=before.request, plan=Plan(steps=before.plan, reason=RESUMED) if is_given else None)


def _name_of(schema: Mapping[str, object]) -> str:
    function = schema.get("function")
    return str(function.get("name")) if isinstance(function, Mapping) else ""
