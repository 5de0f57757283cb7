"""The envelope of every event: when it happened, and in which session, run and step."""

from agent.protocol.events import Event, MessageAdded, ToolOutput
from tooling.contract.fast_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope:
    """An event with its time, sequence number, session, run, step and attempt."""

    seq: int
    ts: str
    session_id: str
    run_id: str
    event: Event
    step_id: str | None = None
    attempt: int | None = None

    @property
    def is_durable(self) -> bool:
        """Whether this event is logged: all except fragments of text and the output of running calls."""
        event = self.event
        return type(event) is not ToolOutput and not (isinstance(event, MessageAdded) and event.delta)
