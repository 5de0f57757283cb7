"""The end of a run that was stopped: what is finished is answered from, what is missing is named and priced."""

from collections.abc import Sequence

from agent.execution.result.compose import joined
from agent.vocabulary.plan import PlanStep
from agent.vocabulary.status import is_success
from agent.vocabulary.step import ExecutorResponse
from agent.vocabulary.usage import Usage


def partial_answer(
    results: Sequence[tuple[PlanStep, ExecutorResponse]],
    unfinished: Sequence[PlanStep],
    why: str,
    *,
    is_plan_whole: bool = True,
) -> str:
    """Return what can be said without a model; nothing when no step has succeeded."""
    if not any(is_success(response.status) for _, response in results):
        return ""
    cut_off = {step.id for step in unfinished}
    ended = [pair for pair in results if pair[0].id not in cut_off]
    return "\n\n".join((joined(ended), closing_note(results, unfinished, why, is_plan_whole=is_plan_whole)))


def closing_note(
    results: Sequence[tuple[PlanStep, ExecutorResponse]],
    unfinished: Sequence[PlanStep],
    why: str,
    *,
    is_plan_whole: bool = True,
) -> str:
    """Return why the work stopped, what is missing, and what that would cost."""
    missing = [step.title for step in unfinished] + ([] if is_plan_whole else ["what was still being planned"])
    words = [f"Stopped: {why.removeprefix('Stopped: ').rstrip('.')}."]
    if missing:
        words.append(f"Not finished: {'; '.join(missing)}.")
    if unfinished and (cost := cost_of_rest([response for _, response in results], len(unfinished))):
        words.append(f"The rest would cost about {cost}.")
    return " ".join(words)


def cost_of_rest(responses: Sequence[ExecutorResponse], steps: int) -> str | None:
    """Return what further steps would cost if they were like those that finished; None when nothing tells."""
    paid = [response.usage for response in responses if is_success(response.status) and response.usage.requests]
    if not paid:
        return None
    total = sum(paid, Usage())
    if total.cost_usd:
        return f"{total.cost_usd / len(paid) * steps:.2g} USD"
    return f"{round(total.total_tokens / len(paid) * steps):,} tokens" if total.total_tokens else None
