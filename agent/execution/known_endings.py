"""How steps end that nobody works on: the question that is not put any more, the step a bug kept from beginning."""

from agent.vocabulary import exit_codes
from agent.vocabulary.plan import PlanStep
from agent.vocabulary.step import ExecutorResponse


def unasked(step: PlanStep) -> ExecutorResponse:
    """Return how a question ends that is one too many."""
    question = step.ask_question or step.instruction
    return ExecutorResponse(
        task_id=step.id,
        status="needs_input",
        summary=question,
        next_questions=(question,),
        exit_code=exit_codes.FAILED,
    )


def broken(step: PlanStep, error: Exception) -> ExecutorResponse:
    """Return how a step ends that could not even begin."""
    return ExecutorResponse(
        task_id=step.id, status="error", summary=f"internal error: {error!r}", exit_code=exit_codes.FAILED
    )
