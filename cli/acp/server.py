"""The agent side of the Agent Client Protocol on stdin and stdout."""

import asyncio
import contextlib
import os
import signal
import stat
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeAlias, cast

from acp import PROTOCOL_VERSION, RequestError
from acp.agent.connection import AgentSideConnection
from acp.interfaces import Agent, Client
from acp.schema import (
    AcpMcpServer,
    AgentCapabilities,
    ClientCapabilities,
    HttpMcpServer,
    Implementation,
    InitializeResponse,
    ListSessionsResponse,
    LoadSessionResponse,
    McpServerStdio,
    NewSessionResponse,
    PromptCapabilities,
    PromptResponse,
    SessionCapabilities,
    SessionInfo,
    SessionListCapabilities,
    SessionMode,
    SessionModeState,
    SetSessionModeResponse,
    SseMcpServer,
)

from agent.app import Windlass, WindlassConfig
from agent.config.load import load_settings
from agent.config.user_dirs import data_dir, os_environ
from agent.protocol.envelope import Envelope
from agent.sessions.log.log_index import read_lines
from agent.sessions.store import SessionFolder, SessionStore, new_session_id
from agent.sessions.views.listing import newest_sessions, session_rows
from agent.sessions.views.session_summary import active_runs, read_all_runs
from agent.version import VERSION
from agent.vocabulary import exit_codes
from agent.vocabulary.errors import InputError, UsageError
from agent.vocabulary.task_config import TaskConfig
from cli.acp.session import Block, EditorSession
from cli.acp.updates import replay

McpServer: TypeAlias = HttpMcpServer | SseMcpServer | AcpMcpServer | McpServerStdio
MODES = (
    SessionMode(id="ask", name="Ask", description="Ask before commands and edits."),
    SessionMode(id="auto-edit", name="Edit freely", description="Edit files without asking; ask before commands."),
    SessionMode(id="plan", name="Plan", description="Only look around; change nothing."),
    SessionMode(id="never", name="Never ask", description="Deny what would need approval."),
    SessionMode(id="yolo", name="Allow all", description="Allow what would need approval; blocked commands stay so."),
)
NEEDS_EDITOR = "agent acp is started by an editor, which talks to it on stdin and stdout"
EDITOR_HINT = "add the command to your editor's agent settings; `agent` opens the interactive prompt"
# A request with images or files is one line.
_LINE_LIMIT_BYTES = 50 * 1024 * 1024
_SESSIONS_PER_PAGE = 50
_STDIN, _STDOUT, _STDERR = 0, 1, 2
_SIGNALS = {signal.SIGINT: exit_codes.INTERRUPTED, signal.SIGTERM: exit_codes.TERMINATED}


class EditorAgent:
    """Answers the requests of one editor, which may have several sessions open."""

    def __init__(self, config: WindlassConfig, environ: Mapping[str, str]) -> None:
        self._config = config
        self._environ = environ
        self._store = SessionStore(data_dir(environ))
        self._sessions: dict[str, EditorSession] = {}
        self._client: Client | None = None

    def on_connect(self, conn: Client) -> None:
        """Store the connection; called by the SDK."""
        self._client = conn

    async def initialize(
        self,
        protocol_version: int,
        client_capabilities: ClientCapabilities | None = None,
        client_info: Implementation | None = None,
        **_: object,
    ) -> InitializeResponse:
        """Return the capabilities of this agent."""
        return InitializeResponse(
            protocol_version=min(protocol_version, PROTOCOL_VERSION),
            agent_capabilities=AgentCapabilities(
                load_session=True,
                prompt_capabilities=PromptCapabilities(image=True, embedded_context=True),
                session_capabilities=SessionCapabilities(list=SessionListCapabilities()),
            ),
            agent_info=Implementation(name="windlass", title="Windlass", version=VERSION),
            auth_methods=[],
        )

    async def new_session(
        self,
        cwd: str,
        additional_directories: list[str] | None = None,
        mcp_servers: list[McpServer] | None = None,
        **_: object,
    ) -> NewSessionResponse:
        """Open a session; it is stored with its first request."""
        session_id = new_session_id(datetime.now(UTC))
        modes = self._open(session_id, cwd, additional_directories, mcp_servers)
        return NewSessionResponse(session_id=session_id, modes=modes)

    async def load_session(
        self,
        cwd: str,
        session_id: str,
        mcp_servers: list[McpServer] | None = None,
        additional_directories: list[str] | None = None,
        **_: object,
    ) -> LoadSessionResponse:
        """Open a stored session and show its conversation."""
        folder = self._find(session_id)
        modes = self._open(folder.id, cwd, additional_directories, mcp_servers)
        for update in replay(await asyncio.to_thread(_conversation, folder), Path(cwd)):
            await self._connected.session_update(session_id=folder.id, update=update)
        return LoadSessionResponse(modes=modes)

    async def list_sessions(
        self, cwd: str | None = None, cursor: str | None = None, **_: object
    ) -> ListSessionsResponse:
        """List the stored sessions of a folder, newest first."""
        start = int(cursor) if cursor and cursor.isdecimal() else 0
        rows = [
            row for row in session_rows(self._store, newest_sessions(self._store)) if row.cwd and cwd in (None, row.cwd)
        ]
        end = start + _SESSIONS_PER_PAGE
        sessions = [
            SessionInfo(session_id=row.id, cwd=row.cwd, title=row.title or None, updated_at=row.updated_at or None)
            for row in rows[start:end]
        ]
        return ListSessionsResponse(sessions=sessions, next_cursor=str(end) if end < len(rows) else None)

    async def set_session_mode(self, session_id: str, mode_id: str, **_: object) -> SetSessionModeResponse:
        """Change the approval mode, from the next request on."""
        if mode_id not in [mode.id for mode in MODES]:
            raise RequestError.invalid_params({"details": f"there is no mode {mode_id!r}"})
        self._session(session_id).windlass.configure(approval_mode=mode_id)
        return SetSessionModeResponse()

    async def prompt(self, session_id: str, prompt: Sequence[Block], **_: object) -> PromptResponse:
        """Run a request."""
        return await self._session(session_id).prompt(prompt)

    async def cancel(self, session_id: str, **_: object) -> None:
        """Interrupt the running request; its response reports that."""
        self._session(session_id).windlass.interrupt()

    async def close(self) -> None:
        """Close all sessions."""
        for session in self._sessions.values():
            await session.close()

    @property
    def _connected(self) -> Client:
        assert self._client is not None, "requests arrive through a connection"
        return self._client

    def _session(self, session_id: str) -> EditorSession:
        if session_id not in self._sessions:
            raise RequestError.resource_not_found(session_id)
        return self._sessions[session_id]

    def _find(self, session_id: str) -> SessionFolder:
        try:
            folder = self._store.folder_for(session_id)
        except InputError as error:
            raise RequestError.resource_not_found(session_id) from error
        if not folder.events.exists():
            raise RequestError.resource_not_found(session_id)
        return folder

    def _open(
        self, session_id: str, cwd: str, folders: Sequence[str] | None, servers: Sequence[McpServer] | None
    ) -> SessionModeState:
        folder = Path(cwd)
        if not folder.is_absolute() or not folder.is_dir():
            raise RequestError.invalid_params({"details": f"{cwd} is not the absolute path of a folder"})
        config = replace(
            self._config,
            cwd=folder,
            session_id=session_id,
            extra_dirs=(*self._config.extra_dirs, *map(Path, folders or ())),
            task=TaskConfig(mcp_config=_mcp_config(servers or ())),
        )
        self._sessions[session_id] = EditorSession(session_id, Windlass(config), self._connected, folder)
        mode = load_settings(
            environ=self._environ, flags=config.settings, profile=config.profile
        ).settings.approval_mode
        offered = MODES if mode in [known.id for known in MODES] else (*MODES, SessionMode(id=mode, name=mode.title()))
        return SessionModeState(available_modes=list(offered), current_mode_id=mode)


def _conversation(folder: SessionFolder) -> list[Envelope]:
    """Return the events of a session's conversation, without rewound runs."""
    kept = {run.run_id for run in active_runs(read_all_runs(folder).runs)}
    decoded = (line.envelope() for line in read_lines(folder.events) if line.run_id in kept)
    return [envelope for envelope in decoded if envelope]


def _mcp_config(servers: Sequence[McpServer]) -> dict[str, object]:
    """Return the servers of an editor in the format of an mcpServers file."""
    found: dict[str, object] = {}
    for server in servers:
        match server:
            case McpServerStdio(name=name, command=command, args=arguments, env=env):
                variables = {variable.name: variable.value for variable in env or ()}
                found[name] = {"command": command, "args": list(arguments or ()), "env": variables}
            case HttpMcpServer(name=name, url=url, headers=headers) | SseMcpServer(name=name, url=url, headers=headers):
                found[name] = {"url": url, "headers": {header.name: header.value for header in headers or ()}}
            case _:
                pass
    return {"mcpServers": found} if found else {}


def serve_editor(settings: Mapping[str, object], profile: str | None) -> int:
    """Serve an editor until it closes stdin; return the exit code."""
    if not (_is_pipe(_STDIN) and _is_pipe(_STDOUT)):
        raise UsageError(NEEDS_EDITOR, EDITOR_HINT)
    environ = os_environ()
    # Load the settings now, so that invalid ones are reported at once, not with the first request.
    load_settings(environ=environ, flags=settings, profile=profile)
    # Only the protocol may be written to stdout: any other output goes to stderr.
    output = os.dup(_STDOUT)
    os.dup2(_STDERR, _STDOUT)
    config = WindlassConfig(settings=settings, profile=profile, answers=True, environ=environ)
    return asyncio.run(_serve(EditorAgent(config, environ), output))


def _is_pipe(descriptor: int) -> bool:
    """Whether a descriptor is a pipe or a socket; an event loop cannot wait for other kinds of files."""
    try:
        mode = os.fstat(descriptor).st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


async def _serve(agent: EditorAgent, output: int) -> int:
    # The SDK answers unimplemented methods with "method not found".
    connection = AgentSideConnection(cast("Agent", agent), *await _open_streams(output), listening=False)
    listening = asyncio.ensure_future(connection.listen())
    exit_code = exit_codes.OK

    def stop(code: int) -> None:
        nonlocal exit_code
        exit_code = code
        listening.cancel()

    for number, code in _SIGNALS.items():
        asyncio.get_running_loop().add_signal_handler(number, stop, code)
    await asyncio.wait([listening])
    await agent.close()
    # A crashed editor no longer reads.
    with contextlib.suppress(ConnectionError):
        await connection.close()
    return exit_code


async def _open_streams(output: int) -> tuple[asyncio.StreamWriter, asyncio.StreamReader]:
    """Return streams for stdin and a copy of stdout."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=_LINE_LIMIT_BYTES)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(_STDIN, "rb", buffering=0))
    transport, protocol = await loop.connect_write_pipe(
        lambda: asyncio.StreamReaderProtocol(asyncio.StreamReader()), os.fdopen(output, "wb", buffering=0)
    )
    return asyncio.StreamWriter(transport, protocol, None, loop), reader
