"""What listeners have heard begin and not yet end, so that they can be told of its end whatever happens."""

from collections.abc import Iterator

from agent.protocol.events import Envelope, MessageSaid, StepCompleted, StepStarted, ToolCompleted, ToolStarted
from tooling.contract.result import CANCELLED


class InFlightTracker:
    """Steps and calls under way, as far as they were told of."""

    def __init__(self) -> None:
        self._steps: dict[str, int | None] = {}
        self._calls: list[tuple[str, str, str]] = []

    def on_event(self, envelope: Envelope) -> None:
        """Take in an event that everybody hears."""
        step_id = envelope.step_id
        if step_id is None:
            return
        match envelope.event:
            case StepStarted():
                self._steps[step_id] = envelope.attempt
            case StepCompleted():
                self._steps.pop(step_id, None)
                self._calls = [call for call in self._calls if call[0] != step_id]
            case MessageSaid(tool_calls=calls) if calls:
                self._calls += [(step_id, call.id, call.name) for call in calls]
            case ToolStarted(tool_id=tool_id, name=name) if (step_id, tool_id, name) not in self._calls:
                # No model asked for it: the call of a tool step, or a check.
                self._calls.append((step_id, tool_id, name))
            case ToolCompleted(tool_id=tool_id, name=name) if (step_id, tool_id, name) in self._calls:
                self._calls.remove((step_id, tool_id, name))
            case _:
                pass

    def cancellations(self, why: str) -> Iterator[tuple[ToolCompleted | StepCompleted, str, int | None]]:
        """Return the ends of all that is under way, calls before their steps; they claim nothing but that."""
        for step_id, tool_id, name in tuple(self._calls):
            ended = ToolCompleted(tool_id=tool_id, name=name, status="cancelled", exit_code=CANCELLED, output=why)
            yield ended, step_id, self._steps.get(step_id)
        for step_id, attempt in tuple(self._steps.items()):
            yield StepCompleted(status="cancelled", summary=why), step_id, attempt
