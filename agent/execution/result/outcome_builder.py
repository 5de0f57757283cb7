"""Builds the outcome of a run: exit code, reason, artifacts, cost, and the command to resume it."""

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from agent.execution.graph.run_state import RunState
from agent.execution.result.compose import join_results
from agent.execution.result.run_status import combine_verified, run_status
from agent.execution.step.step_result import collect_refusals
from agent.model.budget import Budget
from agent.vocabulary import exit_codes
from agent.vocabulary.outcome import Outcome
from agent.vocabulary.plan import Plan, PlanStep
from agent.vocabulary.status import is_success
from agent.vocabulary.step import ExecutorResponse
from agent.vocabulary.usage import Usage

# Resuming makes sense if time, budget, a provider, the user or a step stopped the run; not if the request was invalid.
_RESUMABLE = frozenset(
    {
        exit_codes.FAILED,
        exit_codes.NO_KEY,
        exit_codes.LIMIT,
        exit_codes.TOOL_FAILED,
        exit_codes.BUDGET,
        exit_codes.APPROVAL,
        exit_codes.RETRY_LATER,
        exit_codes.TIMED_OUT,
        exit_codes.INTERRUPTED,
        exit_codes.TERMINATED,
    }
)


class OutcomeBuilder:
    """Builds the outcome of a run from its state and budget."""

    def __init__(
        self, *, state: RunState, budget: Budget, root: Path, resume_command: str | None, require_verified: bool
    ) -> None:
        self._state = state
        self._budget = budget
        self._root = root
        self._resume_command = resume_command
        self._require_verified = require_verified
        self._started = time.monotonic()
        # Some file systems store modification times in seconds.
        self._started_at = time.time() - 1

    def build(self, answer: str, plan: Plan | None) -> Outcome:
        """Return the outcome of a run that was not interrupted."""
        state = self._state
        effective = state.effective_responses
        status = run_status(
            effective,
            answer,
            replaced=[response for step, response in state.results if step.id in state.replaced],
            require_verified=self._require_verified,
        )
        responses = tuple(response for _, response in state.results)
        refused = collect_refusals(responses)
        return Outcome(
            subtype=status.subtype,
            exit_code=status.exit_code,
            answer=answer,
            plan=plan,
            responses=responses,
            artifacts=find_artifacts(state.results, self._root, self._started_at),
            denials=refused.denied,
            deferred=refused.deferred,
            usage=self._budget.total,
            model_usage=dict(self._budget.by_model),
            num_turns=self._budget.total.requests,
            duration_ms=int((time.monotonic() - self._started) * 1000),
            error=status.error,
            hint=status.hint,
            verified=combine_verified(effective),
            resume=self._resume_after(status.exit_code) if status.can_resume else None,
        )

    def build_stopped(self, answer: str, plan: Plan | None, exit_code: int, reason: str) -> Outcome:
        """Return the outcome of a run that was stopped early."""
        outcome = self.build(answer, plan)
        subtype, resume = exit_codes.SUBTYPES[exit_code], self._resume_after(exit_code)
        return replace(outcome, exit_code=exit_code, subtype=subtype, error=reason, hint="", resume=resume)

    def _resume_after(self, exit_code: int) -> str | None:
        """Return the resume command; without a plan there is nothing to resume."""
        return self._resume_command if exit_code in _RESUMABLE and self._state.plan_log.all_steps else None


def find_artifacts(
    results: Sequence[tuple[PlanStep, ExecutorResponse]], root: Path, since: float = 0.0
) -> tuple[str, ...]:
    """Return existing files that steps changed, produced, or declared in `writes` and wrote after `since`."""
    paths: list[str] = []
    for step, response in results:
        paths += [path for fact in response.tool_calls for path in fact.changed]
        paths += [output.path for output in response.outputs if output.path]
        if is_success(response.status):
            paths += [path for path in step.writes if _is_written_in(root, path, since)]
    return tuple(path for path in dict.fromkeys(map(str, map(Path, paths))) if (root / path).exists())


def _is_written_in(root: Path, path: str, since: float) -> bool:
    file = root / path
    is_inside = file.is_file() and file.resolve().is_relative_to(root.resolve())
    return is_inside and file.stat().st_mtime >= since


STILL_PLANNING = "steps that were still being planned"


def partial_answer(
    results: Sequence[tuple[PlanStep, ExecutorResponse]],
    unfinished: Sequence[PlanStep],
    reason: str,
    *,
    is_plan_complete: bool = True,
) -> str:
    """Return an answer without a model for a stopped run; empty if no step has succeeded."""
    if not any(is_success(response.status) for _, response in results):
        return ""
    unfinished_ids = {step.id for step in unfinished}
    finished = [pair for pair in results if pair[0].id not in unfinished_ids]
    return "\n\n".join(
        (join_results(finished), stop_note(results, unfinished, reason, is_plan_complete=is_plan_complete))
    )


def stop_note(
    results: Sequence[tuple[PlanStep, ExecutorResponse]],
    unfinished: Sequence[PlanStep],
    reason: str,
    *,
    is_plan_complete: bool = True,
) -> str:
    """Return why the run stopped, the missing steps, and their cost."""
    missing = [step.title for step in unfinished] + ([] if is_plan_complete else [STILL_PLANNING])
    sentences = [f"Stopped: {reason.removeprefix('Stopped: ').rstrip('.')}."]
    if missing:
        sentences.append(f"Not finished: {'; '.join(missing)}.")
    if unfinished and (cost := remaining_cost([response for _, response in results], len(unfinished))):
        sentences.append(f"Finishing would cost about {cost}.")
    return " ".join(sentences)


def remaining_cost(responses: Sequence[ExecutorResponse], steps: int) -> str | None:
    """Return the cost of further steps, at the average of the finished ones; None if unknown."""
    paid = [response.usage for response in responses if is_success(response.status) and response.usage.requests]
    if not paid:
        return None
    total = sum(paid, Usage())
    if total.cost_usd:
        usd = total.cost_usd / len(paid) * steps
        return f"${usd:,.2f}" if usd >= 0.01 else f"${usd:.1g}"
    return f"{round(total.total_tokens / len(paid) * steps):,} tokens" if total.total_tokens else None
