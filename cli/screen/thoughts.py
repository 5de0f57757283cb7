"""The thoughts of models while they stream; a finished one is folded into a single line."""

from collections.abc import Callable

from agent.protocol.envelope import Envelope
from agent.protocol.events import MessageAdded, RunCompleted, RunStarted
from cli.screen.colors import wrap
from tooling.contract.fast_dataclass import dataclass

_LIVE_CHARS = 600


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedThought:
    """A thought that has ended, and how long it took."""

    text: str
    seconds: float


@dataclass(slots=True, kw_only=True)
class _Thought:
    started_at: float
    text: str = ""


class Thoughts:
    """Collects the reasoning of each step; any other event of the step ends it."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._current: dict[str, _Thought] = {}

    def on_event(self, envelope: Envelope) -> FinishedThought | None:
        """Update from one event; return the thought that it ends."""
        step = envelope.step_id or ""
        match envelope.event:
            case MessageAdded(role="thought", content=content):
                thought = self._current.pop(step, None) or _Thought(started_at=self._now())
                thought.text += content
                # The latest comes last.
                self._current[step] = thought
                return None
            case RunStarted() | RunCompleted():
                self._current.clear()
                return None
            case _:
                ended = self._current.pop(step, None)
        return FinishedThought(text=ended.text, seconds=self._now() - ended.started_at) if ended else None

    def lines(self, width: int, height: int) -> list[str]:
        """Return the end of the latest thought in at most `height` lines."""
        if not self._current or height <= 0:
            return []
        latest = tuple(self._current.values())[-1]
        return wrap(latest.text[-_LIVE_CHARS:].strip(), width)[-height:]
