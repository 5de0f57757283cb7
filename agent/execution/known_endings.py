"""How steps end that nobody works on: one question too many, a call whose secret is gone, a bug before the start."""

from dataclasses import replace

from agent.vocabulary import exit_codes
from agent.vocabulary.plan import PlanStep
from agent.vocabulary.step import ExecutorResponse
from tooling.safety.secrets.redact import MASK


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


def is_censored(step: PlanStep) -> bool:
    """Say whether what a step would run had a secret in it that the log masks."""
    return MASK in step.verify or (step.type == "tool" and MASK in str(step.args))


def censored(step: PlanStep) -> ExecutorResponse:
    """Return how a step ends that would run the mask instead of the secret."""
    summary = "What it runs holds a secret, and no log keeps secrets: start it anew with `agent run`."
    return ExecutorResponse(task_id=step.id, status="error", summary=summary, exit_code=exit_codes.FAILED)


def broken(step: PlanStep, error: Exception) -> ExecutorResponse:
    """Return how a step ends that could not even begin."""
    return ExecutorResponse(
        task_id=step.id, status="error", summary=f"internal error: {error!r}", exit_code=exit_codes.FAILED
    )


def unkept(response: ExecutorResponse) -> ExecutorResponse:
    """Return how a step ends whose end could not be kept: it may not be called done."""
    return replace(response, status="cancelled", summary="Its end could not be kept.")
