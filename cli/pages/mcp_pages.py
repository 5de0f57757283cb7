"""Testing and importing MCP servers: the work and output behind `agent mcp`."""

import asyncio
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from agent.config.user_dirs import data_dir
from agent.mcp_setup import mcp_folder, mcp_host
from agent.tool_setup import ToolEnvironment, build_tools
from agent.vocabulary.errors import ConfigError
from cli.pages import pages
from cli.run.progress import print_stderr
from cli.run.standalone_call import CallOptions, run_standalone
from cli.screen.sanitize import sanitize
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.json_codec import JsonObject
from tooling.contract.result import ToolError
from tooling.files.atomic_write import write_atomic
from tooling.mcp.connection import ServerConnection, load_client
from tooling.mcp.imports import FoundServer
from tooling.mcp.listing import ServerListing, full_name
from tooling.mcp.listing_store import ListingStore
from tooling.mcp.servers import INSTALL, MISSING_EXTRA, McpServer

LOG_IN = "log in to continue:"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerReport:
    """The listing of one server, or the reason of its failure."""

    server: McpServer
    listing: ServerListing | None
    problem: str = ""

    def to_json(self) -> JsonObject:
        """Return the report for programs."""
        listing = self.listing
        return {
            "name": self.server.name,
            "ok": listing is not None,
            "problem": self.problem,
            "tools": [full_name(self.server.name, tool.name) for tool in listing.tools] if listing else [],
            "prompts": [prompt.name for prompt in listing.prompts] if listing else [],
            "resources": [resource.uri for resource in listing.resources] if listing else [],
            "warnings": list(listing.problems) if listing else [],
        }


class TerminalLogin:
    """Shows the URL of a login on stderr; the user opens it."""

    async def show(self, url: str) -> None:
        """Print the URL."""
        print_stderr(f"{LOG_IN} {sanitize(url)}")


def test_servers(servers: Sequence[McpServer], cwd: Path | None) -> list[ServerReport]:
    """Start each server as a run would, and request its listing. Raises ConfigError without the extra."""
    try:
        load_client()
    except ToolError as error:
        raise ConfigError(MISSING_EXTRA, f"install it with {INSTALL}") from error

    async def test_all(env: ToolEnvironment) -> list[ServerReport]:
        tools = build_tools(replace(env, settings=replace(env.settings, mcp="never")))
        login = TerminalLogin() if sys.stdin.isatty() else None
        host = mcp_host(env, tools.executor.services, login)
        store = ListingStore(mcp_folder(data_dir(env.environ)))
        try:
            connections = [ServerConnection(server, host, store) for server in servers]
            return list(await asyncio.gather(*(_test(connection, env) for connection in connections)))
        finally:
            await tools.close()

    return run_standalone(CallOptions(cwd=cwd, flags={}), test_all)


async def _test(connection: ServerConnection, env: ToolEnvironment) -> ServerReport:
    try:
        listing = await connection.refresh(env.scope.ctx_of("mcp"))
        return ServerReport(server=connection.server, listing=listing)
    except ToolError as error:
        return ServerReport(server=connection.server, listing=None, problem=str(error))
    finally:
        await connection.close()


def print_reports(reports: Sequence[ServerReport]) -> None:
    """Print the listing of each server; failures go to stderr."""
    for report in reports:
        if report.listing is None:
            print_stderr(f"{report.server.name}: {sanitize(report.problem)}")
            continue
        listing = report.listing
        lines = [f"{report.server.name}: ok"]
        lines += [
            f"  {full_name(report.server.name, tool.name)}  {_first_line(tool.description)}" for tool in listing.tools
        ]
        lines += [
            f"  /{full_name(report.server.name, prompt.name)}  {_first_line(prompt.description)}"
            for prompt in listing.prompts
        ]
        lines += [f"  {resource.uri}  {resource.name}" for resource in listing.resources]
        pages.print_lines(map(sanitize, lines))
        for problem in listing.problems:
            print_stderr(f"warning: {report.server.name}: {sanitize(problem)}")


def _first_line(text: str) -> str:
    return pages.one_line(text.partition("\n")[0], 100)


def import_lines(found: Sequence[FoundServer], wanted: Sequence[FoundServer], target: Path) -> list[str]:
    """Return what would be written, what would not, and why."""
    lines = []
    for one in found:
        is_new = one in wanted
        state = "import" if is_new else "skip"
        why = "" if is_new or one.server is None else f": {target} has one of this name; --replace replaces it"
        where = f" {one.server.location}" if one.server else ""
        lines.append(f"{state} {one.name}{where}{why}")
        lines += [f"  {note}" for note in one.notes]
    return lines


def save_servers(target: Path, wanted: Sequence[FoundServer]) -> None:
    """Add servers to the user's file, which only this user can read. Raises ConfigError."""
    try:
        document = json.loads(target.read_text("utf-8")) if target.exists() else {}
        entries = dict(document.get("mcpServers") or {})
        entries |= {one.server.name: one.entry for one in wanted if one.server}
        text = json.dumps({**document, "mcpServers": entries}, indent=2, ensure_ascii=False)
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_atomic(target, f"{text}\n".encode())
    except OSError as error:
        raise ConfigError(f"{target} cannot be written: {error.strerror}") from error
