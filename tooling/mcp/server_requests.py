"""Requests from a server during a call: to ask the user, to ask the model, to list the workspace."""

import asyncio
import contextlib
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import mcp_types
from pydantic import FileUrl

from tooling.contract.action import Action
from tooling.contract.context import ExecCtx
from tooling.contract.question import Question
from tooling.contract.result import ToolError
from tooling.mcp.listing import clean_text

if TYPE_CHECKING:
    from mcp.client.session import ClientRequestContext

    from tooling.mcp.connection import McpHost

MAX_QUESTIONS = 8
MAX_SAMPLES = 10
_MAX_TEXT_CHARS = 20_000
_MAX_QUESTION_CHARS = 1_000
_MAX_TOKENS = 4_000
ACCEPT, DECLINE = "yes", "no"
_Value = str | int | float | bool | list[str] | None


class ServerRequests:
    """Answers the requests of one server during a call; outside of a call all are refused."""

    def __init__(self, server: str, host: "McpHost") -> None:
        self._server = server
        self._host = host
        self._ctx: ExecCtx | None = None
        self._clock: asyncio.Timeout | None = None
        self._samples = self._questions = 0

    def attach(self, host: "McpHost") -> None:
        """Use the user and the model of another run from now on."""
        self._host = host

    @contextlib.contextmanager
    def serve(self, ctx: ExecCtx, clock: asyncio.Timeout) -> Iterator[None]:
        """Answer requests during one call, whose clock stops meanwhile."""
        self._ctx, self._clock = ctx, clock
        self._samples = self._questions = 0
        try:
            yield
        finally:
            self._ctx = self._clock = None

    async def list_roots(self, context: "ClientRequestContext") -> mcp_types.ListRootsResult:
        """Return the folder of the run."""
        workspace = self._host.workspace
        root = mcp_types.Root(uri=FileUrl(workspace.as_uri()), name=workspace.name)
        return mcp_types.ListRootsResult(roots=[root])

    async def elicit(
        self, context: "ClientRequestContext", params: mcp_types.ElicitRequestParams
    ) -> mcp_types.ElicitResult | mcp_types.ErrorData:
        """Ask the user for the values that the server requests, one at a time."""
        ctx = self._ctx
        if ctx is None or not ctx.may_ask:
            return mcp_types.ElicitResult(action="cancel")
        with self._clock_stopped():
            if isinstance(params, mcp_types.ElicitRequestURLParams):
                text = f"{params.message}\nIt asks you to open {params.url}\nHave you done that?"
                answer = await self._ask(text, (ACCEPT, DECLINE), ctx)
                return mcp_types.ElicitResult(action="accept" if answer == ACCEPT else "decline")
            return await self._ask_values(params, ctx)

    async def _ask_values(self, params: mcp_types.ElicitRequestFormParams, ctx: ExecCtx) -> mcp_types.ElicitResult:
        properties = params.requested_schema.get("properties")
        fields = properties if isinstance(properties, Mapping) else {}
        if not fields:
            answer = await self._ask(params.message, (ACCEPT, DECLINE), ctx)
            return mcp_types.ElicitResult(action="accept", content={}) if answer == ACCEPT else _declined()
        content: dict[str, _Value] = {}
        for name, schema in list(fields.items())[:MAX_QUESTIONS]:
            kind = schema if isinstance(schema, Mapping) else {}
            label = str(kind.get("description") or kind.get("title") or name)
            answer = await self._ask(f"{params.message}\n{label}", _options(kind), ctx)
            if answer is None:
                return _declined()
            content[str(name)] = _typed(answer, kind)
        return mcp_types.ElicitResult(action="accept", content=content)

    async def _ask(self, text: str, options: tuple[str, ...], ctx: ExecCtx) -> str | None:
        self._questions += 1
        if self._questions > MAX_QUESTIONS:
            return None
        shown = f"The MCP server {self._server} asks: {clean_text(text, _MAX_QUESTION_CHARS)}"
        return await self._host.asker.ask(Question(text=shown, options=options), ctx)

    async def sample(
        self, context: "ClientRequestContext", params: mcp_types.CreateMessageRequestParams
    ) -> mcp_types.CreateMessageResult | mcp_types.ErrorData:
        """Send a request to the model with the user's approval: it costs money, and the server reads the reply."""
        ctx, sampler = self._ctx, self._host.sampler
        self._samples += 1
        if ctx is None or sampler is None or self._samples > MAX_SAMPLES:
            return _refused("sampling is not possible now")
        messages = [(message.role, _text_of(message)) for message in params.messages]
        system = clean_text(params.system_prompt or "", _MAX_TEXT_CHARS)
        action = Action(
            tool=f"mcp_sampling__{self._server}",
            effect="external",
            subject="\n".join(filter(None, (system, *(f"{role}: {text}" for role, text in messages)))),
            cwd=ctx.working_dir,
        )
        with self._clock_stopped():
            if refusal := await self._host.gate.refusal(action, ctx):
                return _refused(refusal)
            try:
                reply = await sampler.sample(system, messages, min(params.max_tokens, _MAX_TOKENS), ctx)
            except ToolError as error:
                return _refused(str(error))
        content = mcp_types.TextContent(type="text", text=reply)
        return mcp_types.CreateMessageResult(role="assistant", content=content, model="windlass", stop_reason="endTurn")

    @contextlib.contextmanager
    def _clock_stopped(self) -> Iterator[None]:
        clock = self._clock
        deadline = clock.when() if clock is not None else None
        if clock is None or deadline is None:
            yield
            return
        loop = asyncio.get_running_loop()
        left = deadline - loop.time()
        clock.reschedule(None)
        try:
            yield
        finally:
            if self._clock is clock and not clock.expired():
                clock.reschedule(loop.time() + left)


def _declined() -> mcp_types.ElicitResult:
    return mcp_types.ElicitResult(action="decline")


def _refused(reason: str) -> mcp_types.ErrorData:
    return mcp_types.ErrorData(code=mcp_types.INVALID_REQUEST, message=reason)


def _text_of(message: mcp_types.SamplingMessage) -> str:
    parts = message.content if isinstance(message.content, list) else [message.content]
    texts = [part.text for part in parts if isinstance(part, mcp_types.TextContent)]
    return clean_text("\n".join(texts), _MAX_TEXT_CHARS)


def _options(schema: Mapping[str, object]) -> tuple[str, ...]:
    choices = schema.get("enum")
    if isinstance(choices, list):
        return tuple(clean_text(str(choice), 100) for choice in choices[:20])
    return (ACCEPT, DECLINE) if schema.get("type") == "boolean" else ()


def _typed(answer: str, schema: Mapping[str, object]) -> _Value:
    kind = schema.get("type")
    try:
        if kind == "integer":
            return int(answer)
        if kind == "number":
            return float(answer)
    except ValueError:
        return answer
    return answer.strip().casefold() in (ACCEPT, "y", "true", "1") if kind == "boolean" else answer
