"""One session of an editor: requests become runs, events become updates, approvals and questions become dialogs."""

import asyncio
import base64
import binascii
import contextlib
import mimetypes
from collections.abc import Coroutine, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import TypeAlias
from urllib.parse import unquote, urlsplit

from acp import RequestError, text_block, tool_content, update_tool_call
from acp.interfaces import Client
from acp.schema import (
    AllowedOutcome,
    AudioContentBlock,
    EmbeddedResourceContentBlock,
    ImageContentBlock,
    PermissionOption,
    PromptResponse,
    ResourceContentBlock,
    StopReason,
    TextContentBlock,
    TextResourceContents,
    ToolCallProgress,
    ToolCallUpdate,
)

from agent.app import Windlass
from agent.protocol.commands import AnswerQuestion, ResolveApproval, Submit
from agent.protocol.envelope import Envelope
from agent.protocol.events import ApprovalRequested, ApprovalResolved, QuestionAnswered, QuestionAsked
from agent.vocabulary import exit_codes
from agent.vocabulary.errors import AgentError
from agent.vocabulary.outcome import Outcome
from cli.acp.updates import UpdateBuilder
from tooling.files.temp_dir import TempDir

Block: TypeAlias = (
    TextContentBlock | ImageContentBlock | AudioContentBlock | ResourceContentBlock | EmbeddedResourceContentBlock
)
ALLOW_ONCE, ALLOW_RUN, REJECT = "allow_once", "allow_run", "reject"
PERMISSIONS = (
    PermissionOption(option_id=ALLOW_ONCE, name="Allow once", kind="allow_once"),
    PermissionOption(option_id=ALLOW_RUN, name="Allow for this run", kind="allow_always"),
    PermissionOption(option_id=REJECT, name="Reject", kind="reject_once"),
)
BUSY = "a prompt of this session is already running"
# Text for the model if a question has no options that an editor can offer.
ANSWER_LATER = (
    "The user's editor cannot answer in the middle of a turn. The question has been shown: end the turn with it, and "
    "the user answers with the next message."
)
_STOP_REASONS: dict[int, StopReason] = {
    exit_codes.INTERRUPTED: "cancelled",
    exit_codes.LIMIT: "max_turn_requests",
    exit_codes.BUDGET: "max_tokens",
}
_NO_KEY_CODE, _INTERNAL_CODE = -32000, -32603


class EditorSession:
    """A session as an editor sees it."""

    def __init__(self, session_id: str, windlass: Windlass, client: Client, cwd: Path) -> None:
        self.id = session_id
        self.windlass = windlass
        self._client = client
        self._cwd = cwd
        self._attachments: TempDir | None = None
        self._dialogs: dict[str, asyncio.Task[None]] = {}
        self._is_busy = False

    async def prompt(self, blocks: Sequence[Block]) -> PromptResponse:
        """Run a request and return the stop reason. Raises RequestError if there is no answer."""
        if self._is_busy:
            raise RequestError.invalid_request({"details": BUSY})
        self._is_busy = True
        try:
            await self._run(self._read(blocks))
        except AgentError as error:
            raise request_error(error.message, error.hint, error.exit_code) from error
        except ConnectionError:
            # The editor disconnected, and the run was interrupted.
            return PromptResponse(stop_reason="cancelled")
        finally:
            self._is_busy = False
            for dialog in self._dialogs.values():
                dialog.cancel()
            self._dialogs.clear()
        return _response(self.windlass.outcome)

    async def close(self) -> None:
        """Interrupt the running request and stop background commands."""
        await self.windlass.close()
        if self._attachments:
            self._attachments.remove()

    async def _run(self, submit: Submit) -> None:
        builder = UpdateBuilder(self._cwd)
        async with aclosing(self.windlass.submit(submit)) as envelopes:
            async for envelope in envelopes:
                for update in builder.build(envelope):
                    await self._client.session_update(session_id=self.id, update=update)
                self._follow_dialogs(envelope, builder)

    def _follow_dialogs(self, envelope: Envelope, builder: UpdateBuilder) -> None:
        """Open a dialog for a question while the run continues; close it if it was decided elsewhere."""
        match envelope.event:
            case ApprovalRequested(decided=False) as asked:
                call = builder.call_of(envelope.step_id or "", asked)
                self._open_dialog(asked.approval_id, self._approve(asked, call))
            case QuestionAsked() as question:
                self._open_dialog(question.question_id, self._ask(question))
            case ApprovalResolved(approval_id=asked_id) | QuestionAnswered(question_id=asked_id):
                if dialog := self._dialogs.pop(asked_id, None):
                    dialog.cancel()
            case _:
                pass

    def _open_dialog(self, asked_id: str, dialog: Coroutine[object, object, None]) -> None:
        self._dialogs[asked_id] = asyncio.create_task(dialog, name=f"dialog {asked_id}")

    async def _approve(self, asked: ApprovalRequested, call: ToolCallProgress) -> None:
        chosen = await self._choose(call, PERMISSIONS)
        await self.windlass.answer(
            ResolveApproval(
                approval_id=asked.approval_id,
                decision="allow" if chosen in (ALLOW_ONCE, ALLOW_RUN) else "deny",
                scope="run" if chosen == ALLOW_RUN else "once",
            )
        )

    async def _ask(self, asked: QuestionAsked) -> None:
        """Offer the options of a question; without any, show it and take the next message as the answer."""
        answer = ANSWER_LATER
        shown = update_tool_call(
            asked.question_id,
            title=asked.question,
            kind="think",
            status="pending",
            content=[tool_content(text_block(asked.question))],
        )
        if asked.options:
            choices = [PermissionOption(option_id=text, name=text, kind="allow_once") for text in asked.options]
            none = PermissionOption(option_id="", name="None of these", kind="reject_once")
            answer = await self._choose(shown, (*choices, none)) or "none of these"
        await self.windlass.answer(AnswerQuestion(question_id=asked.question_id, answer=answer))

    async def _choose(self, call: ToolCallProgress, options: Sequence[PermissionOption]) -> str:
        """Return the id of the chosen option; empty if the dialog was closed or cannot be shown."""
        about = ToolCallUpdate.model_validate(call.model_dump(exclude={"session_update"}, exclude_none=True))
        with contextlib.suppress(RequestError, ConnectionError):
            reply = await self._client.request_permission(session_id=self.id, tool_call=about, options=list(options))
            if isinstance(reply.outcome, AllowedOutcome):
                return reply.outcome.option_id
        return ""

    def _read(self, blocks: Sequence[Block]) -> Submit:
        """Return the request; linked files are named, embedded ones are context, images are attached."""
        words: list[str] = []
        context: list[str] = []
        files: list[Path] = []
        for block in blocks:
            match block:
                case TextContentBlock(text=text):
                    words.append(text)
                case ResourceContentBlock(uri=uri):
                    words.append(self._place(uri))
                case EmbeddedResourceContentBlock(resource=TextResourceContents(uri=uri, text=text)):
                    words.append(self._place(uri))
                    context.append(f"{self._place(uri)}:\n{text}")
                case ImageContentBlock():
                    files.append(self._save_image(block))
                case _:
                    raise RequestError.invalid_params({"details": f"{block.type} content is not supported"})
        return Submit(prompt="".join(words), stdin="\n\n".join(context) or None, files=tuple(files))

    def _place(self, uri: str) -> str:
        """Return a file's path, relative to the working folder if inside; any other URI unchanged."""
        parts = urlsplit(uri)
        if parts.scheme != "file":
            return uri
        path = Path(unquote(parts.path))
        return str(path.relative_to(self._cwd) if path.is_relative_to(self._cwd) else path)

    def _save_image(self, block: ImageContentBlock) -> Path:
        self._attachments = self._attachments or TempDir()
        count = sum(1 for _ in self._attachments.path.iterdir())
        path = self._attachments.path / f"image-{count + 1}{mimetypes.guess_extension(block.mime_type) or '.png'}"
        try:
            path.write_bytes(base64.b64decode(block.data, validate=True))
        except binascii.Error as error:
            raise RequestError.invalid_params({"details": f"an image is not base64: {error}"}) from error
        return path


def request_error(message: str, hint: str, exit_code: int) -> RequestError:
    """Return an error in the form that editors show."""
    code = _NO_KEY_CODE if exit_code == exit_codes.NO_KEY else _INTERNAL_CODE
    text = f"{message} ({hint})" if hint else message
    return RequestError(code, text, {"exit_code": exit_code})


def _response(outcome: Outcome | None) -> PromptResponse:
    if outcome is None or outcome.exit_code in _STOP_REASONS:
        return PromptResponse(stop_reason=_STOP_REASONS[outcome.exit_code] if outcome else "cancelled")
    if outcome.error and not outcome.answer:
        raise request_error(outcome.error, outcome.hint, outcome.exit_code)
    return PromptResponse(stop_reason="end_turn")
