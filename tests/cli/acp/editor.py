"""An editor for tests: the SDK's own client, which starts the real program and records what it is told."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from acp import PROTOCOL_VERSION, RequestError, spawn_agent_process, text_block
from acp.client.connection import ClientSideConnection
from acp.schema import AllowedOutcome, DeniedOutcome, PermissionOption, RequestPermissionResponse, ToolCallUpdate

from tests.cli.terminal_user import User

LIMIT_S = 60
AUTO = {"AGENT_PLANNING": "auto"}


@dataclass(kw_only=True)
class Editor:
    """What an editor shows; `choose` is what its user does in a permission dialog, by the id of an option."""

    choose: Callable[[ToolCallUpdate], str] = lambda call: "allow_once"
    updates: list[dict[str, object]] = field(default_factory=list)
    dialogs: list[tuple[ToolCallUpdate, list[PermissionOption]]] = field(default_factory=list)
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    agent: ClientSideConnection | None = None

    async def session_update(self, session_id: str, update: object, **_: object) -> None:
        self.updates.append({"session": session_id, **update.model_dump(mode="json", exclude_none=True)})
        self.changed.set()

    async def request_permission(
        self, session_id: str, tool_call: ToolCallUpdate, options: list[PermissionOption], **_: object
    ) -> RequestPermissionResponse:
        self.dialogs.append((tool_call, options))
        chosen = self.choose(tool_call)
        if not chosen:
            return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))
        return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=chosen))

    async def ext_method(self, method: str, params: dict[str, object]) -> dict[str, object]:
        raise RequestError.method_not_found(method)

    def on_connect(self, conn: object) -> None:
        pass

    async def open(self, cwd: Path) -> str:
        return (await self.connected.new_session(cwd=str(cwd), mcp_servers=[])).session_id

    async def ask(self, session: str, text: str) -> str:
        """Send a prompt and return why it stopped."""
        asked = self.connected.prompt(session_id=session, prompt=[text_block(text)])
        return (await asyncio.wait_for(asked, LIMIT_S)).stop_reason

    async def until(self, is_there: Callable[[], bool]) -> None:
        async with asyncio.timeout(LIMIT_S):
            while not is_there():
                self.changed.clear()
                await self.changed.wait()

    @property
    def connected(self) -> ClientSideConnection:
        assert self.agent
        return self.agent

    def of_kind(self, kind: str) -> list[dict[str, object]]:
        return [update for update in self.updates if update["session_update"] == kind]

    def text(self, kind: str = "agent_message_chunk") -> str:
        return "".join(update["content"]["text"] for update in self.of_kind(kind))


@asynccontextmanager
async def open_editor(user: User, *words: str, editor: Editor | None = None, **environ: str) -> AsyncIterator[Editor]:
    """Start `agent acp` as an editor does."""
    editor = editor or Editor()
    program, *arguments = user.command("acp", *words)
    async with spawn_agent_process(
        editor, program, *arguments, env=user.environment(**{**AUTO, **environ}), cwd=user.home
    ) as (connection, process):
        editor.agent = connection
        await asyncio.wait_for(connection.initialize(protocol_version=PROTOCOL_VERSION), LIMIT_S)
        yield editor
    assert await asyncio.wait_for(process.wait(), LIMIT_S) == 0
