"""What the running calls are about, folded from events; a command that the user edited is shown as edited."""

from agent.protocol.envelope import Envelope
from agent.protocol.events import ApprovalRequested, ApprovalResolved, RunStarted, ToolStarted
from cli.screen.format import call_subject
from tooling.contract.fast_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenCall:
    """The subject of a call, and whether it is what the user changed the command to."""

    subject: str = ""
    is_edited: bool = False


class OpenCalls:
    """Tracks the calls that have started; an approval says only in which step it was asked, and about what."""

    def __init__(self) -> None:
        self._calls: dict[tuple[str | None, str], OpenCall] = {}
        self._asked: dict[str, str] = {}

    def on_event(self, envelope: Envelope) -> None:
        """Update the calls from one event."""
        match envelope.event:
            case RunStarted():
                self._calls, self._asked = {}, {}
            case ToolStarted(tool_id=tool_id, input=arguments):
                self._calls[(envelope.step_id, tool_id)] = OpenCall(subject=call_subject(arguments))
            case ApprovalRequested(approval_id=asked, command=command):
                self._asked[asked] = " ".join(command.split())
            case ApprovalResolved(approval_id=asked, edited_command=edited):
                command = self._asked.pop(asked, "")
                if edited:
                    self._replace(envelope.step_id, command, " ".join(edited.split()))
            case _:
                pass

    def pop(self, step: str | None, tool_id: str) -> OpenCall:
        """Return a call that has ended."""
        return self._calls.pop((step, tool_id), OpenCall())

    def _replace(self, step: str | None, command: str, edited: str) -> None:
        for key, call in self._calls.items():
            if key[0] == step and call == OpenCall(subject=command):
                self._calls[key] = OpenCall(subject=edited, is_edited=True)
                return
