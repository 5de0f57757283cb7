"""Imports servers from the files of other programs: Claude Code (`.claude.json`, `.mcp.json`) and VS Code."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TypeAlias

from tooling.contract.fast_dataclass import dataclass
from tooling.contract.json_codec import DecodeError
from tooling.contract.lazy_pattern import lazy_pattern
from tooling.mcp.servers import McpServer, ServerProblem, parse_server

Entry: TypeAlias = dict[str, object]
# Fields with the same meaning here. Approvals configured in other programs are never imported.
_FIELDS = ("type", "command", "args", "env", "cwd", "url", "headers", "disabled", "enabled")
# A string, which is kept; a comment or a trailing comma, which JSON does not allow.
_JSON_WITH_COMMENTS = lazy_pattern(r'"(?:\\.|[^"\\])*"|//[^\n]*|/\*.*?\*/|,(?=\s*[}\]])', re.DOTALL)
_VS_CODE_VARIABLE = lazy_pattern(r"\$\{(env|input):([^}]+)\}")
_WORKSPACE = lazy_pattern(r"\$\{workspaceFolder\}/?")


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundServer:
    """A server of another program: its entry in our format, and remarks about it."""

    name: str
    entry: Entry
    server: McpServer | None
    notes: tuple[str, ...] = ()


def read_foreign_file(path: Path) -> list[FoundServer]:
    """Return the servers of a file. Raises OSError, and ServerProblem if there are none."""
    text = path.read_text("utf-8")
    plain = _JSON_WITH_COMMENTS.sub(lambda found: found[0] if found[0].startswith('"') else "", text)
    try:
        document = json.loads(plain)
    except ValueError as error:
        raise ServerProblem(f"{path} is not valid JSON: {error}") from error
    found = list(_find_servers(document))
    if not found:
        raise ServerProblem(f"{path} has no MCP servers")
    return [_convert(name, entry) for name, entry in dict(reversed(found)).items()][::-1]


def _find_servers(document: object) -> Iterator[tuple[str, object]]:
    """Yield entries from all locations that the programs use; the first entry of a name is used."""
    if not isinstance(document, Mapping):
        return
    settings = document.get("mcp")
    for part in (document.get("mcpServers"), document.get("servers"), document.get("mcp.servers")):
        yield from part.items() if isinstance(part, Mapping) else ()
    if isinstance(settings, Mapping):
        yield from _find_servers(settings)
    projects = document.get("projects")
    if isinstance(projects, Mapping):
        for project in projects.values():
            yield from _find_servers({"mcpServers": project.get("mcpServers")} if isinstance(project, Mapping) else {})


def _convert(name: str, entry: object) -> FoundServer:
    given: Mapping[str, object] = entry if isinstance(entry, Mapping) else {}
    notes: list[str] = []
    kept = {field: _rewrite(given[field], notes) for field in _FIELDS if field in given}
    if ignored := [field for field in given if field not in _FIELDS]:
        notes.append(f"left out: {', '.join(map(str, ignored))}")
    try:
        server = parse_server(name, kept)
    except (ServerProblem, DecodeError) as problem:
        return FoundServer(name=name, entry=kept, server=None, notes=(*notes, str(problem)))
    if server.argv:
        notes += _sandbox_notes(server)
    return FoundServer(name=name, entry=kept, server=server, notes=tuple(dict.fromkeys(notes)))


def _sandbox_notes(server: McpServer) -> Iterator[str]:
    program = Path(server.argv[0]).name
    if program in ("npx", "uvx", "pipx", "bunx", "docker", "podman"):
        yield f'{program} needs the network and your caches: install the server, or add "sandbox": false'


def _rewrite(value: object, notes: list[str]) -> object:
    """Replace VS Code variables by environment variables."""
    if isinstance(value, Mapping):
        return {str(key): _rewrite(item, notes) for key, item in value.items()}
    if isinstance(value, list):
        return [_rewrite(item, notes) for item in value]
    if not isinstance(value, str):
        return value

    def replace(found: "re.Match[str]") -> str:
        name = re.sub(r"\W", "_", found[2]).upper() if found[1] == "input" else found[2]
        if found[1] == "input":
            notes.append(f"set the variable {name}, for which VS Code asks")
        return f"${{{name}}}"

    return _WORKSPACE.sub("./", _VS_CODE_VARIABLE.sub(replace, value))
