"""The MCP servers of a run: their selection, their backends, and their connections to the user and the model."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from uuid import UUID

from agent.backends.backend import Backend, BackendOptions
from agent.backends.process.environment import outside_of
from agent.backends.table import build_backend
from agent.backends.tool_executor import LocalToolExecutor
from agent.config.mcp_file import user_servers
from agent.config.user_dirs import config_dir, data_path
from agent.model.budget import BudgetExhausted
from agent.model.faults import ModelFault
from agent.model.metered_client import MeteredModel
from agent.model.port import ModelRequest
from agent.tool_setup import ToolEnvironment, backend_options
from agent.version import VERSION
from agent.vocabulary.message import Message
from tooling.contract.command import CommandRunner
from tooling.contract.context import ExecCtx
from tooling.contract.question import Question
from tooling.contract.result import ToolError
from tooling.contract.tool import DenyFurtherActions, ToolServices, ToolSpec
from tooling.mcp.connection import KeptConnections, Login, McpHost, ServerConnection
from tooling.mcp.listing import OfferedPrompt
from tooling.mcp.listing_store import ListingStore
from tooling.mcp.servers import McpServer
from tooling.mcp.tools import tool_spec
from tooling.mcp.toolset import build_toolset
from tooling.registry import RegistrationError

_SCRIPTS = (".py", ".js", ".mjs", ".cjs", ".ts")
_PACKAGES = "node_modules"
_PROJECT_MARKS = ("package.json", "pyproject.toml")


class ModelSampler:
    """Sends requests of a server to a model; the user has approved exactly these messages."""

    def __init__(self, client: MeteredModel, model: str) -> None:
        self._client = client
        self._model = model

    async def sample(self, system: str, messages: Iterable[tuple[str, str]], max_tokens: int, ctx: ExecCtx) -> str:
        """Return the reply. Raises ToolError."""
        request = ModelRequest(
            model=self._model,
            purpose="sampling",
            step_id=ctx.step_id,
            messages=(
                *((Message(role="system", content=system),) if system else ()),
                *(
                    Message(role="assistant" if role == "assistant" else "user", content=text)
                    for role, text in messages
                ),
            ),
            max_output_tokens=max_tokens,
        )
        try:
            return (await self._client.ask(request)).message.content
        except (ModelFault, BudgetExhausted) as problem:
            raise ToolError(str(problem)) from problem


class ServerBackend:
    """Backend of one server: a separate sandbox, or this machine if the user chose that."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    @property
    def runner(self) -> CommandRunner:
        """The runner that starts the process."""
        return self._backend.runner

    async def close(self) -> None:
        """Stop everything that runs in it."""
        await self._backend.close()


def open_server_backend(server: McpServer, options: BackendOptions) -> ServerBackend:
    """Return the backend of a server without starting it. `options` are those of the run's commands."""
    home = Path(options.environ.get("HOME") or "/")
    program = Path(server.argv[0])
    environ = dict(options.environ) if server.is_sandboxed else outside_of(options.workspace, options.environ)
    if program.is_absolute():
        # Programs on the PATH are visible in the sandbox, with their installation.
        environ["PATH"] = os.pathsep.join((str(program.parent), environ.get("PATH", os.defpath)))
    own = replace(
        options,
        environ=environ,
        extra_dirs=(*options.extra_dirs, *(_folder(name, home) for name in server.add_dirs)),
        outputs=(*(_folder(name, home) for name in server.read_dirs), *_script_folders(server, home)),
        allow_net=server.allow_net,
        # Not the folder of the run's commands, which could then reach the server's hosts.
        socket_dir=options.socket_dir.with_name(f"net-{server.name}"),
        on_sandbox_error=lambda error: None,
    )
    return ServerBackend(build_backend("sandbox" if server.is_sandboxed else "host", own))


def _folder(name: str, home: Path) -> Path:
    return home / name[2:] if name.startswith("~/") else Path(name)


def _script_folders(server: McpServer, home: Path) -> Iterator[Path]:
    """Yield the folders of scripts that an interpreter runs: their projects, if they are in one."""
    for word in server.argv:
        path = Path(word)
        if path.is_absolute() and _PACKAGES in path.parts and path.exists():
            # An npm program loads packages from this whole folder, and its name is often a link into it.
            yield Path(*path.parts[: path.parts.index(_PACKAGES) + 1])
    for word in server.argv[1:]:
        path = Path(word)
        if path.is_absolute() and path.suffix in _SCRIPTS and path.is_file():
            roots = [folder for folder in path.parents[:3] if any((folder / mark).exists() for mark in _PROJECT_MARKS)]
            folder = roots[0] if roots else path.parent
            if len(folder.parts) > 2 and not home.is_relative_to(folder):
                yield folder


def add_mcp_tools(env: ToolEnvironment, executor: LocalToolExecutor, servers: Sequence[McpServer]) -> tuple[str, ...]:
    """Add the tools of the servers that this run offers, and return the warnings."""
    problems: list[str] = []
    host = mcp_host(env, executor.services)
    store = ListingStore(host.folder, is_saved=env.scope.is_persistent)
    kept = _kept_connections(env)
    surroundings = backend_options(env).without_callbacks()
    connections = [kept.open(server, surroundings, host, store) for server in servers]
    if env.shared_backend is None:
        executor.call_at_close(kept.close)
    toolset = build_toolset(
        connections, executor.services, store, lambda tool: executor.add_tool(tool, is_listed=False)
    )
    for tool, is_listed in (*((t, True) for t in toolset.tools), *((t, False) for t in toolset.hidden)):
        try:
            executor.add_tool(tool, is_listed=is_listed)
        except RegistrationError as error:
            problems.append(f"skipped a tool of an MCP server: {error}")
    return tuple(problems)


def _kept_connections(env: ToolEnvironment) -> KeptConnections:
    """Return the connections of the session if they outlive its runs, else new ones."""
    shared = env.shared_backend
    if shared is None:
        return KeptConnections()
    if shared.connections is None:
        shared.connections = KeptConnections()
    return shared.connections


def mcp_host(env: ToolEnvironment, services: ToolServices, login: Login | None = None) -> McpHost:
    """Return the services that servers get from a run."""
    options = backend_options(env)
    if env.shared_backend is not None:
        options = env.shared_backend.report_to_current_run(options)
    return McpHost(
        workspace=env.scope.cwd,
        folder=mcp_folder(env.scope.data_dir),
        environ=env.environ,
        open_sandbox=lambda server: open_server_backend(server, options),
        asker=services.asker,
        gate=services.action_gate,
        version=VERSION,
        sampler=ModelSampler(env.client, env.model) if env.client and env.model else None,
        login=login,
        warn=env.warn,
    )


def mcp_folder(data_dir: Path) -> Path:
    """Return the folder of listings, approvals and tokens."""
    return data_dir / "mcp"


def known_tools(environ: Mapping[str, str]) -> dict[str, tuple[McpServer, ToolSpec]]:
    """Return the tools that the user's servers offered last, by name; no server is started."""
    store = ListingStore(mcp_folder(data_path(environ)))
    listed = [(server, store.load(server)) for server in user_servers(environ).servers if server.offer != "never"]
    return {
        spec.name: (replace(server, offer="always"), spec)
        for server, listing in listed
        if listing is not None
        for spec in (tool_spec(server.name, tool) for tool in listing.tools if server.uses(tool.name))
    }


def known_prompts(environ: Mapping[str, str]) -> list[tuple[McpServer, OfferedPrompt]]:
    """Return the prompts that the user's servers offered last."""
    store = ListingStore(mcp_folder(data_path(environ)))
    listed = [(server, store.load(server)) for server in user_servers(environ).servers if server.offer != "never"]
    return [(server, prompt) for server, listing in listed if listing is not None for prompt in listing.prompts]


async def fetch_prompt(
    server: McpServer, prompt: str, arguments: Mapping[str, str], environ: Mapping[str, str], folder: Path
) -> str:
    """Start a server for one prompt and return its text; the server cannot ask the user. Raises ToolError."""
    data = data_path(environ)
    own = mcp_folder(data)
    options = BackendOptions(
        workspace=folder, environ=environ, hidden=(data, config_dir(environ)), socket_dir=own / "net"
    )
    nobody = Nobody()
    host = McpHost(
        workspace=folder,
        folder=own,
        environ=environ,
        open_sandbox=lambda server: open_server_backend(server, options),
        asker=nobody,
        gate=DenyFurtherActions(),
        version=VERSION,
    )
    connection = ServerConnection(server, host, ListingStore(own))
    ctx = ExecCtx(user_id=UUID(int=0), task_id=UUID(int=0), working_dir=folder, may_ask=False)
    try:
        return await connection.use(ctx, lambda client: client.get_prompt(prompt, arguments))
    finally:
        await connection.close()


class Nobody:
    """An asker for runs without a user."""

    async def ask(self, question: Question, ctx: ExecCtx) -> str | None:
        """Return no answer."""
        return None
