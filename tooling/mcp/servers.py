"""The servers of an `mcpServers` file: their connection, enabled tools, and when they are offered."""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import Literal, TypeAlias

from tooling.contract.fast_dataclass import dataclass
from tooling.contract.json_codec import DecodeError, JsonObject, decode, encode
from tooling.contract.lazy_pattern import lazy_pattern

# When the model gets the tools of a server: if the request names the server, in every run, or never.
Offer: TypeAlias = Literal["named", "always", "never"]

DEFAULT_TIMEOUT_MS = 30_000
INSTALL = "pip install 'windlass[mcp]'"
MISSING_EXTRA = "MCP servers need an extra that is not installed"
_STDIO, _HTTP = "stdio", ("http", "streamable-http", "streamableHttp", "streamable_http")
_VARIABLE = lazy_pattern(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
_MAX_NAME_CHARS = 30


class ServerProblem(ValueError):
    """The configuration of a server is invalid; the message is the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    """One entry of a file, including the field names of other programs."""

    type: str = ""
    command: str | tuple[str, ...] = ""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: str = ""
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    sandbox: bool = True
    allow_net: tuple[str, ...] = ()
    add_dirs: tuple[str, ...] = ()
    read_dirs: tuple[str, ...] = ()
    tools: tuple[str, ...] | None = None
    timeout_ms: int = DEFAULT_TIMEOUT_MS
    start_timeout_ms: int = DEFAULT_TIMEOUT_MS
    enabled: bool | None = None
    disabled: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class McpServer:
    """One server: a program to start, or a URL. `tools` are the enabled ones; None means all.

    Texts may contain `${VAR}` and `${VAR:-default}`, which are replaced only when the server is started. A program runs
    in its own sandbox unless `is_sandboxed` is false. There `allow_net` are the hosts that it may reach,
    `add_dirs` and `read_dirs` the additional folders that it may change and read.
    """

    name: str
    argv: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: str = ""
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    is_sandboxed: bool = True
    allow_net: tuple[str, ...] = ()
    add_dirs: tuple[str, ...] = ()
    read_dirs: tuple[str, ...] = ()
    tools: tuple[str, ...] | None = None
    timeout_s: float = DEFAULT_TIMEOUT_MS / 1000
    start_timeout_s: float = DEFAULT_TIMEOUT_MS / 1000
    offer: Offer = "named"

    @property
    def digest(self) -> str:
        """Return a hash of the settings that determine the server's tools."""
        said = encode((self.argv, self.env, self.cwd, self.url, self.headers, self.tools))
        return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()

    @property
    def location(self) -> str:
        """Return the command line or URL for display; variables are not replaced."""
        return self.url or " ".join(self.argv)

    def is_named_in(self, text: str) -> bool:
        """Whether a request contains the server's name as a separate word."""
        return re.search(rf"(?<![\w-]){re.escape(self.name)}(?![\w-])", text, re.IGNORECASE) is not None

    def uses(self, tool: str) -> bool:
        """Whether the configuration allows a tool of the server."""
        return self.tools is None or tool in self.tools


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerFile:
    """The servers of one file, and a problem for each invalid one."""

    servers: tuple[McpServer, ...] = ()
    problems: tuple[str, ...] = ()


def read_server_file(path: Path) -> ServerFile:
    """Read an `mcpServers` file. Raises OSError, and ServerProblem if it is not such a file."""
    try:
        document = json.loads(path.read_text("utf-8"))
    except ValueError as error:
        raise ServerProblem(f"{path} is not valid JSON: {error}") from error
    try:
        return parse_servers(document)
    except ServerProblem as problem:
        raise ServerProblem(f"{path}: {problem}") from problem


def parse_servers(document: object) -> ServerFile:
    """Return the servers of a parsed `mcpServers` object. Raises ServerProblem if it is not one."""
    entries = document.get("mcpServers") if isinstance(document, Mapping) else None
    if not isinstance(entries, Mapping):
        raise ServerProblem('expected an object with "mcpServers"')
    servers: dict[str, McpServer] = {}
    problems: list[str] = []
    for name, entry in entries.items():
        try:
            server = parse_server(str(name), entry)
            if server.name in servers:
                raise ServerProblem(f"another server is called {server.name} already")
            servers[server.name] = server
        except (ServerProblem, DecodeError) as problem:
            problems.append(f"MCP server {name}: {problem}")
    return ServerFile(servers=tuple(servers.values()), problems=tuple(problems))


def parse_server(name: str, entry: object) -> McpServer:
    """Return one server. Raises ServerProblem or DecodeError."""
    given = decode(_Entry, entry, extra="ignore")
    words = (given.command,) if isinstance(given.command, str) else given.command
    argv = tuple(word for word in (*words, *given.args) if word or word in given.args)
    if bool(given.url) == bool(argv and argv[0]):
        raise ServerProblem("needs either a command or a url")
    if given.type and given.type != _STDIO and given.type not in _HTTP:
        raise ServerProblem(f"the transport {given.type} is not supported, only stdio and http")
    if given.url and not given.url.startswith(("http://", "https://", "${")):
        raise ServerProblem("the url must start with https:// or http://")
    if min(given.timeout_ms, given.start_timeout_ms) <= 0:
        raise ServerProblem("time limits must be more than 0")
    is_off = given.disabled or given.enabled is False
    return McpServer(
        name=safe_name(name),
        argv=argv,
        env=given.env,
        cwd=given.cwd,
        url=given.url,
        headers=given.headers,
        is_sandboxed=given.sandbox,
        allow_net=given.allow_net,
        add_dirs=given.add_dirs,
        read_dirs=given.read_dirs,
        tools=given.tools,
        timeout_s=given.timeout_ms / 1000,
        start_timeout_s=given.start_timeout_ms / 1000,
        offer="never" if is_off else "always" if given.enabled else "named",
    )


def safe_name(name: str) -> str:
    """Return the name of a server for tool names: without double underscores, which separate the parts."""
    safe = re.sub(r"_+", "_", re.sub(r"[^A-Za-z0-9-]", "_", name)).strip("_")[:_MAX_NAME_CHARS].rstrip("_")
    if not safe:
        raise ServerProblem("its name has no letters or digits")
    return safe


def expand_variables(server: McpServer, environ: Mapping[str, str]) -> McpServer:
    """Return the server with all `${VAR}` replaced. Raises ServerProblem for an unset variable."""

    def expand(text: str) -> str:
        return _VARIABLE.sub(lambda found: _value_of(found, environ), text)

    def expand_values(values: Mapping[str, str]) -> dict[str, str]:
        return {name: expand(value) for name, value in values.items()}

    return replace(
        server,
        argv=tuple(map(expand, server.argv)),
        env=expand_values(server.env),
        cwd=expand(server.cwd),
        add_dirs=tuple(map(expand, server.add_dirs)),
        read_dirs=tuple(map(expand, server.read_dirs)),
        url=expand(server.url),
        headers=expand_values(server.headers),
    )


def _value_of(found: "re.Match[str]", environ: Mapping[str, str]) -> str:
    name, default = found.groups()
    value = environ.get(name) or default
    if value is None:
        raise ServerProblem(f"the variable {name} is not set")
    return value


def merge_servers(*files: ServerFile) -> ServerFile:
    """Return the servers of all files; later files override earlier ones."""
    servers: dict[str, McpServer] = {}
    for file in files:
        servers |= {server.name: server for server in file.servers}
    return ServerFile(
        servers=tuple(servers.values()), problems=tuple(problem for file in files for problem in file.problems)
    )


def offered_servers(servers: Iterable[McpServer], requests: Iterable[str]) -> tuple[McpServer, ...]:
    """Return the servers whose tools a run offers: those for every run, and those named in a request."""
    texts = tuple(requests)
    return tuple(
        server
        for server in servers
        if server.offer == "always" or (server.offer == "named" and any(map(server.is_named_in, texts)))
    )


def describe_entry(server: McpServer) -> JsonObject:
    """Return a server's data for display, without values of variables or headers, which may be secret."""
    return {
        "name": server.name,
        "transport": "http" if server.url else _STDIO,
        "location": server.location,
        "env": sorted(server.env),
        "headers": sorted(server.headers),
        "sandbox": server.is_sandboxed if server.argv else None,
        "allow_net": list(server.allow_net),
        "add_dirs": list(server.add_dirs),
        "read_dirs": list(server.read_dirs),
        "tools": None if server.tools is None else list(server.tools),
        "timeout_ms": round(server.timeout_s * 1000),
        "offered": server.offer,
    }
