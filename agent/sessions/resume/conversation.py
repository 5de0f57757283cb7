"""Folds a session's log into its conversation: every request with its calls and results, as the model saw them."""

from collections.abc import Sequence
from itertools import takewhile
from pathlib import Path

from agent.protocol.envelope import Envelope
from agent.protocol.events import MessageAdded, RunCompleted, RunStarted, SessionRewound, StepStarted
from agent.sessions.log.log_index import LogLine, read_lines
from agent.sessions.resume.step_history import EffectOf, StepHistory
from agent.vocabulary.compaction import SUMMARY_PREFIX
from agent.vocabulary.message import Message
from agent.vocabulary.plan import LEAD
from agent.vocabulary.unfinished import UnfinishedStep
from tooling.contract.image import Image

# The request behind /compact; its answer replaces the conversation before it.
COMPACT_REQUEST = (
    "Sum up this conversation for yourself: what was asked, decided, found and changed, and what is still open. "
    "Leave out nothing that later requests may rely on. Do no work; answer with the summary alone."
)
# Sent when a run is resumed after other requests came in between.
RESUMED_LATER = "Go on with this earlier request, which was interrupted: {request}"
_NO_ANSWER = "(This request ended without an answer: {why})"


def request_message(context: str, request: str, images: tuple[Image, ...] = ()) -> Message:
    """Return a request as the model reads it: context, text and images."""
    return Message(role="user", content="\n\n".join(part for part in (context, request) if part), images=images)


def read_conversation(
    log: Path, effect_of: EffectOf, *, before: str | None = None, before_seq: int | None = None
) -> Sequence[Message]:
    """Return a session's conversation, or the part before a run or an event.

    Every call has a result, as providers require.
    """
    fold = _fold(log, effect_of, before, before_seq)
    fold.finish()
    return fold.history.messages


def resumed_conversation(log: Path, run_id: str, effect_of: EffectOf) -> UnfinishedStep:
    """Return the conversation at the point where a run stopped, ready to be resumed.

    Other requests that came in between stay in the conversation.
    """
    fold = _fold(log, effect_of)
    if fold.last_chain_member(run_id):
        fold.flush_request()
        fold.history.resume()
    else:
        fold.finish()
        fold.history.start_request(Message(role="user", content=RESUMED_LATER.format(request=fold.request_of(run_id))))
    history = fold.history
    return UnfinishedStep(
        messages=tuple(history.messages),
        open_calls=history.open_calls,
        facts=tuple(history.facts),
        turns=history.turns,
    )


def _fold(
    log: Path, effect_of: EffectOf, before: str | None = None, before_seq: int | None = None
) -> "_ConversationFold":
    fold = _ConversationFold(effect_of)
    for line in takewhile(lambda line: line.run_id != before and line.seq != before_seq, read_lines(log)):
        fold.apply(line)
    return fold


class _ConversationFold:
    """Accumulates a session's conversation line by line, decoding only the events that belong to it."""

    def __init__(self, effect_of: EffectOf) -> None:
        self._effect_of = effect_of
        self.history = StepHistory(effect_of)
        # The conversation before each run, for rewinding.
        self._before: dict[str, list[Message]] = {}
        self._requests: dict[str, str] = {}
        self._parents: dict[str, str | None] = {}
        self._run_id = ""
        self._context = ""
        self._images: tuple[Image, ...] = ()
        # The request of the current run until it is known whether a lead works on it.
        self._waiting: str | None = None
        self._has_lead = False
        self._resumes_directly = False

    def request_of(self, run_id: str) -> str:
        return self._requests.get(run_id, "")

    def last_chain_member(self, run_id: str) -> bool:
        """Whether no other request followed the run, or the runs that resumed it."""
        current: str | None = self._run_id
        while current is not None and current != run_id:
            current = self._parents.get(current)
        return current is not None

    def apply(self, line: LogLine) -> None:
        if line.step_id == LEAD:
            if envelope := line.envelope():
                self._apply_to_lead(envelope)
        elif line.step_id is None and line.type in _RUN_EVENTS and (envelope := line.envelope()):
            self._apply_to_run(envelope)

    def finish(self) -> None:
        """Close the last turn: the next message is a new request."""
        self.flush_request()
        self.history.close_turn()

    def flush_request(self) -> None:
        """Add the request of the current run, unless it resumes a request already in the conversation."""
        if self._waiting is None:
            return
        if self._parents.get(self._run_id) is None:
            self._add_request(self._waiting)
        elif self._resumes_directly:
            self._waiting = None
        else:
            self._context, self._images = "", ()
            self._add_request(RESUMED_LATER.format(request=self._waiting))

    def _add_request(self, request: str) -> None:
        self.history.start_request(request_message(self._context, request, self._images))
        self._waiting = None

    def _apply_to_lead(self, envelope: Envelope) -> None:
        self._has_lead = True
        if isinstance(envelope.event, StepStarted):
            self.flush_request()
        self.history.apply(envelope)

    def _apply_to_run(self, envelope: Envelope) -> None:
        match envelope.event:
            case RunStarted(resumes=resumes):
                self.flush_request()
                self._before[envelope.run_id] = list(self.history.messages)
                self._parents[envelope.run_id] = resumes
                self._resumes_directly = resumes is not None and self.last_chain_member(resumes)
                self._run_id, self._has_lead = envelope.run_id, False
                self._context, self._images = "", ()
            case MessageAdded(role="context", content=content):
                self._context = content
            case MessageAdded(role="user", content=content, images=images):
                self._requests[envelope.run_id] = content
                self._waiting, self._images = content, images or ()
            case SessionRewound(before_run=run_id):
                self._waiting = None
                self.history = StepHistory(self._effect_of)
                self.history.messages = self._before.get(run_id, [])
            case RunCompleted() as end:
                self._complete_run(end)
            case _:
                pass

    def _complete_run(self, end: RunCompleted) -> None:
        request = self._requests.get(self._run_id, "")
        if request == COMPACT_REQUEST and end.subtype == "success":
            self.history.messages = []
            self.history.start_request(Message(role="user", content=f"{SUMMARY_PREFIX}{end.result}"))
            self._waiting = None
        elif not self._has_lead and self._waiting is not None:
            # Handled by a plan of steps: only the request and its answer are part of the conversation.
            self._context = ""
            self.flush_request()
            answer = end.result or _NO_ANSWER.format(why=end.error or end.subtype)
            self.history.messages.append(Message(role="assistant", content=answer))
        else:
            self.history.has_failed = end.is_error


_RUN_EVENTS = frozenset(event.type for event in (RunStarted, MessageAdded, SessionRewound, RunCompleted))
