"""Connects to test servers as a run does, with a scripted user, and without a sandbox, which other tests cover."""

import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from uuid import UUID

from agent.backends.host import HostCommandRunner
from tooling.contract.action import Action
from tooling.contract.command import CommandRunner
from tooling.contract.context import ExecCtx
from tooling.contract.question import Question
from tooling.contract.result import ToolResult
from tooling.contract.tool import AnyTool, ToolServices
from tooling.jobs import BackgroundJobs
from tooling.mcp.connection import McpHost, ServerConnection
from tooling.mcp.listing_store import ListingStore
from tooling.mcp.servers import McpServer, parse_server
from tooling.mcp.toolset import McpToolset, build_toolset

SERVERS = Path(__file__).with_name("servers")


@dataclass
class ScriptedUser:
    """Answers questions and approvals in order, and remembers them; without answers nobody is there."""

    answers: list[str] = field(default_factory=list)
    allows: bool = False
    questions: list[Question] = field(default_factory=list)
    actions: list[Action] = field(default_factory=list)

    async def ask(self, question: Question, ctx: ExecCtx) -> str | None:
        self.questions.append(question)
        return self.answers.pop(0) if self.answers else None

    async def refusal(self, action: Action, ctx: ExecCtx) -> str | None:
        self.actions.append(action)
        return None if self.allows else "Denied by the user."


class PlainProcess:
    """Runs a server as a plain process."""

    def __init__(self, environ: dict[str, str]) -> None:
        self.runner: CommandRunner = HostCommandRunner(environ)

    async def close(self) -> None:
        """Do nothing: processes end with their connection."""


class EchoModel:
    """A model that repeats what it is told."""

    async def sample(self, system: str, messages: Iterable[tuple[str, str]], max_tokens: int, ctx: ExecCtx) -> str:
        return f"{max_tokens}: {list(messages)}"


@dataclass
class McpHarness:
    """A run with MCP servers."""

    folder: Path
    user: ScriptedUser = field(default_factory=ScriptedUser)
    environ: dict[str, str] = field(default_factory=lambda: {"PATH": "/usr/bin:/bin"})
    connections: list[ServerConnection] = field(default_factory=list)
    late: list[AnyTool] = field(default_factory=list)

    @property
    def ctx(self) -> ExecCtx:
        return ExecCtx(user_id=UUID(int=1), task_id=UUID(int=2), working_dir=self.folder, call_id="c1")

    @property
    def host(self) -> McpHost:
        return McpHost(
            workspace=self.folder,
            folder=self.folder / "mcp",
            environ=self.environ,
            open_sandbox=lambda server: PlainProcess(self.environ),
            asker=self.user,
            gate=self.user,
            version="0",
            sampler=EchoModel(),
        )

    @property
    def store(self) -> ListingStore:
        return ListingStore(self.folder / "mcp")

    def open(self, *servers: McpServer) -> McpToolset:
        """Return the tools of a run; servers that were asked before are known."""
        runner = HostCommandRunner(self.environ)
        services = ToolServices(runner=runner, asker=self.user, jobs=BackgroundJobs(runner), action_gate=self.user)
        opened = [ServerConnection(server, self.host, self.store) for server in servers]
        self.connections += opened
        return build_toolset(opened, services, self.store, self.late.append)

    async def learn(self, server: McpServer) -> McpToolset:
        """Ask a server what it offers, as `agent mcp test` does, and return the tools of the next run."""
        connection = ServerConnection(server, self.host, self.store)
        try:
            await connection.refresh(self.ctx)
        finally:
            await connection.close()
        return self.open(server)

    async def close(self) -> None:
        for connection in self.connections:
            await connection.close()


def hostile(mode: str, **settings: object) -> McpServer:
    """Return a server that misbehaves in one way."""
    argv = [str(SERVERS / "hostile.py"), mode]
    return parse_server(mode, {"command": sys.executable, "args": argv, **settings})


def ordinary(**settings: object) -> McpServer:
    """Return the server that behaves."""
    return parse_server("notes", {"command": sys.executable, "args": [str(SERVERS / "notes.py")], **settings})


def find(toolset: McpToolset, name: str) -> AnyTool:
    """Return a tool by its name."""
    return next(tool for tool in (*toolset.tools, *toolset.hidden) if tool.spec.name == name)


async def call(harness: McpHarness, tool: AnyTool, **arguments: object) -> ToolResult:
    """Call a tool that is allowed."""
    return await tool.run(tool.parse_arguments(arguments), harness.ctx)
