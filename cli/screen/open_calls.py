"""The subjects of running calls, folded from events; an edited command is shown as edited."""

from dataclasses import replace

from agent.protocol.envelope import Envelope
from agent.protocol.events import ApprovalRequested, ApprovalResolved, RunStarted, ToolOutput, ToolStarted
from cli.screen.format import call_subject
from tooling.contract.fast_dataclass import dataclass

# Number of output lines shown for a running call; its event does not contain the total.
MAX_LIVE_LINES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenCall:
    """The subject of a call, whether the user edited it, and its last output so far."""

    subject: str = ""
    is_edited: bool = False
    output: str = ""


class OpenCalls:
    """Tracks started calls; an approval contains only its step and subject."""

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
            case ToolOutput(tool_id=tool_id, text=text) if call := self._calls.get((envelope.step_id, tool_id)):
                last = "\n".join(text.splitlines()[-MAX_LIVE_LINES:])
                self._calls[(envelope.step_id, tool_id)] = replace(call, output=last)
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
