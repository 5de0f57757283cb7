"""The user's MCP servers: the file `mcp.json`, files for one run, and the choice of servers for a run."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from agent.config.settings import McpOffer
from agent.config.user_dirs import config_dir
from agent.vocabulary.errors import ConfigError
from tooling.mcp.servers import (
    McpServer,
    ServerFile,
    ServerProblem,
    merge_servers,
    offered_servers,
    parse_servers,
    read_server_file,
)

SERVER_FILE = "mcp.json"
OPEN_HINT = 'see docs/extending.md; the file has the form {"mcpServers": {"NAME": {"command": "…"}}}'


def server_file(environ: Mapping[str, str]) -> Path:
    """Return the path of the user's servers, which may not exist."""
    return config_dir(environ) / SERVER_FILE


def user_servers(environ: Mapping[str, str]) -> ServerFile:
    """Return the servers of the user's file; none without one. Raises ConfigError if it is unreadable."""
    path = server_file(environ)
    return _read(path) if path.exists() else ServerFile()


def merge_files(paths: Iterable[Path]) -> dict[str, object]:
    """Return the servers of files named for a run, merged into one object. Raises ConfigError."""
    entries: dict[str, object] = {}
    for path in paths:
        _all_offered(_read(path), str(path))
        entries |= json.loads(path.read_text("utf-8"))["mcpServers"]
    return {"mcpServers": entries}


def task_servers(document: object) -> tuple[McpServer, ...]:
    """Return the servers of a parsed `mcpServers` object, all of them enabled. Raises ConfigError."""
    try:
        return _all_offered(parse_servers(document), "mcp_config")
    except ServerProblem as problem:
        raise ConfigError(f"mcp_config: {problem}", OPEN_HINT) from problem


def _read(path: Path) -> ServerFile:
    try:
        return read_server_file(path)
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from error
    except ServerProblem as problem:
        raise ConfigError(str(problem), OPEN_HINT) from problem


def _all_offered(file: ServerFile, where: str) -> tuple[McpServer, ...]:
    if file.problems:
        raise ConfigError(f"{where}: {file.problems[0]}")
    return tuple(server if server.offer == "never" else replace(server, offer="always") for server in file.servers)


def choose_servers(
    environ: Mapping[str, str], given: Sequence[McpServer], offer: McpOffer, requests: Callable[[], Iterable[str]]
) -> ServerFile:
    """Return the servers that a run offers, with problems; `requests` are those of the session so far."""
    own = user_servers(environ) if offer != "never" else ServerFile()
    if offer == "always":
        own = replace(own, servers=tuple(replace(s, offer="always") if s.offer == "named" else s for s in own.servers))
    everything = merge_servers(own, ServerFile(servers=tuple(given)))
    needs_requests = any(server.offer == "named" for server in everything.servers)
    return replace(everything, servers=offered_servers(everything.servers, requests() if needs_requests else ()))
