"""The reviewer: another model's opinion on an action that needs approval."""

import asyncio
import json
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence

from agent.model.budget import BudgetExhausted
from agent.model.faults import ModelFault
from agent.model.metered_client import MeteredModel
from agent.model.port import ModelRequest
from agent.prompts.load import load_prompt
from agent.protocol.channel import Channel, Subscription
from agent.protocol.envelope import Envelope
from agent.protocol.events import MessageAdded, ToolCompleted, ToolStarted, WarningRaised
from agent.vocabulary.message import Message
from tooling.contract.action import Action, Opinion, Verdict
from tooling.contract.context import ExecCtx
from tooling.contract.result import ToolError

# A reasoning model spends most of it before the reply, which is one line.
OUTPUT_TOKENS = 1000
NOT_SEEN_WHOLE = "It is too long to be reviewed as a whole."
NO_OPINION = "the reviewer gave no opinion: {why}"
UNREADABLE = "its reply could not be read"
_NO_REASON = "(no reason given)"
_REQUEST_CHARS, _SUBJECT_CHARS, _DIFF_CHARS = 4000, 8000, 20_000
_EARLIER_CHARS = 1000
_RECENT, _RECENT_CHARS = 8, 400
_REASON_CHARS = 300
_STRICTNESS = ("allow", "ask", "deny")


class ModelReviewer:
    """Asks a model for its opinion, with a time limit; any failure means that there is no opinion.

    `earlier` returns the conversation before the request, without which "yes, do it" cannot be understood.
    """

    def __init__(
        self,
        *,
        client: MeteredModel,
        model: str,
        request: str,
        channel: Channel,
        timeout_s: float,
        redact: Callable[[str], str],
        earlier: Callable[[], Sequence[str]] = tuple,
    ) -> None:
        self._client = client
        self._model = model
        self._request = request
        self._channel = channel
        self._timeout_s = timeout_s
        self._redact = redact
        self._earlier = earlier
        self._recent: dict[str, deque[str]] = {}
        # Ends with the channel.
        self.listening = asyncio.ensure_future(self._listen(channel.subscribe()))

    async def review(self, action: Action, verdict: Verdict, ctx: ExecCtx) -> Opinion | None:
        """Return the model's opinion; an action that does not fit into its prompt cannot be allowed."""
        subject, is_whole = _cut(self._redact(action.subject), _SUBJECT_CHARS)
        diff, is_whole_diff = _cut(self._redact(_preview(action)), _DIFF_CHARS)
        facts = {
            "earlier": [_cut(self._redact(said), _EARLIER_CHARS)[0] for said in await asyncio.to_thread(self._earlier)],
            "request": _cut(self._redact(self._request), _REQUEST_CHARS)[0],
            "action": {"tool": action.tool, "subject": subject, "folder": str(action.cwd), "diff": diff},
            "found": [*verdict.reasons, *(f"it {part}" for part in verdict.involves)],
            "recent": list(self._recent.get(ctx.step_id, ())),
        }
        opinion = await self._ask(facts, ctx)
        if opinion is not None and opinion.verdict == "allow" and not (is_whole and is_whole_diff):
            return Opinion(verdict="ask", text=NOT_SEEN_WHOLE)
        return opinion

    async def _ask(self, facts: Mapping[str, object], ctx: ExecCtx) -> Opinion | None:
        request = ModelRequest(
            model=self._model,
            purpose="reviewer",
            step_id=ctx.step_id,
            # As JSON: no text in it can end the surrounding data.
            messages=(
                Message(role="system", content=load_prompt("reviewer")),
                Message(role="user", content=json.dumps(facts, ensure_ascii=False, indent=1)),
            ),
            max_output_tokens=OUTPUT_TOKENS,
        )
        try:
            async with asyncio.timeout(self._timeout_s):
                reply = await self._client.ask(request)
            opinion = parse_opinion(reply.message.content)
            why = UNREADABLE
        except TimeoutError:
            opinion, why = None, f"no reply within {self._timeout_s:g} s"
        except (ModelFault, BudgetExhausted) as problem:
            opinion, why = None, str(problem)
        if opinion is None:
            self._channel.emit(WarningRaised(message=NO_OPINION.format(why=why)))
        return opinion

    async def _listen(self, events: Subscription) -> None:
        """Store the latest events of each step, as one line each."""
        async for envelope in events:
            if envelope.step_id and (line := _recent_line(envelope)):
                self._recent.setdefault(envelope.step_id, deque(maxlen=_RECENT)).append(line)


def parse_opinion(reply: str) -> Opinion | None:
    """Return the opinion in a reply, ignoring other text; of several the strictest, because one may be quoted."""
    found = [data for data in _json_objects(reply) if _verdict_of(data) in _STRICTNESS]
    if not found:
        return None
    strictest = max(found, key=lambda data: _STRICTNESS.index(_verdict_of(data)))
    reason = strictest.get("reason")
    text = " ".join(reason.split()) if isinstance(reason, str) else ""
    text = text if len(text) <= _REASON_CHARS else f"{text[: _REASON_CHARS - 1]}…"
    match _verdict_of(strictest):
        case "allow" | "ask" | "deny" as verdict:
            return Opinion(verdict=verdict, text=text or _NO_REASON)
        case _:
            return None


def _verdict_of(data: Mapping[str, object]) -> str:
    return str(data.get("verdict")).strip().lower()


def _json_objects(text: str) -> Iterator[dict[str, object]]:
    decoder = json.JSONDecoder()
    start = text.find("{")
    while start >= 0:
        try:
            data, end = decoder.raw_decode(text, start)
            yield data
        except (ValueError, RecursionError):
            end = start + 1
        start = text.find("{", end)


def _recent_line(envelope: Envelope) -> str:
    match envelope.event:
        case MessageAdded(role="assistant", content=content, delta=False) if content:
            text = f"the agent said: {content}"
        case ToolStarted(name=name, input=given):
            text = f"called {name} {json.dumps(dict(given), ensure_ascii=False, default=str)}"
        case ToolCompleted(name=name, status=status, output=output):
            text = f"{name} ended ({status}): {output}"
        case _:
            return ""
    return _cut(text, _RECENT_CHARS)[0]


def _preview(action: Action) -> str:
    """Return the diff of an edit; empty if it is going to fail."""
    try:
        return action.preview() if action.preview else ""
    except ToolError:
        return ""


def _cut(text: str, limit: int) -> tuple[str, bool]:
    """Return a text of at most this length, and whether it is complete."""
    if len(text) <= limit:
        return text, True
    return f"{text[:limit]} [… {len(text) - limit} characters left out]", False
