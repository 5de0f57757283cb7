"""The first two messages of a step; the system message is the same for all steps of all runs."""

from dataclasses import replace

from agent.prompts.load import load_prompt
from agent.vocabulary.message import Message
from agent.vocabulary.step import ExecutorRequest


def system_message() -> Message:
    """Return the first message, the same for every step of every run on every machine."""
    return Message(role="system", content=load_prompt("system"))


def step_message(request: ExecutorRequest) -> Message:
    """Return the step's instruction with its context."""
    parts = [request.context, request.goal]
    if request.expected_outputs:
        parts.append(f"A good result: {request.expected_outputs}")
    parts.append(load_prompt("step"))
    return Message(role="user", content="\n\n".join(part for part in parts if part), images=request.images)


def forked_step_message(request: ExecutorRequest) -> Message:
    """Return the instruction of a step that knows the lead's conversation."""
    message = step_message(request)
    return replace(message, content=f"{load_prompt('fork')}\n\n{message.content}")
