"""`agent mcp`: list, test and import MCP servers, and run as one."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from agent.config.mcp_file import server_file, user_servers
from agent.config.user_dirs import data_path, os_environ
from agent.mcp_setup import mcp_folder
from agent.vocabulary import exit_codes
from agent.vocabulary.errors import InputError, UsageError
from cli.pages import pages
from cli.pages.columns import render_rows
from cli.run import flags as flag
from cli.screen.sanitize import sanitize
from tooling.contract.json_codec import JsonObject, did_you_mean
from tooling.mcp.listing_store import ListingStore
from tooling.mcp.servers import McpServer, ServerFile, ServerProblem, describe_entry

app = typer.Typer(no_args_is_help=True)

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]
Names = Annotated[list[str] | None, typer.Argument(metavar="[NAME]…", help="Servers to test; all of them if omitted.")]
Source = Annotated[
    Path | None,
    typer.Argument(
        metavar="[FILE]", help="A file of Claude Code or VS Code; ~/.claude.json if omitted.", show_default=False
    ),
]
Replace = Annotated[bool, typer.Option("--replace", help="Replace servers that exist already.")]
Http = Annotated[bool, typer.Option("--http", help="Serve HTTP on this machine instead of stdin and stdout.")]
Port = Annotated[int, typer.Option("--port", metavar="PORT", help="Port for --http; 0 chooses one.", min=0, max=65535)]
NO_SERVERS = "no MCP servers are configured"
ADD_HINT = "`agent mcp import` imports them from Claude Code or VS Code; docs/extending.md shows the file"
_OFFERED = {"named": "if a request names it", "always": "in every run", "never": "disabled"}


@app.command("list")
def list_servers(*, as_json: JsonOption = False) -> None:
    """List the configured servers. Starts none of them."""
    file = _servers()
    store = ListingStore(mcp_folder(data_path(os_environ())))
    if as_json:
        pages.print_json({"file": str(server_file(os_environ())), "servers": [_entry(s, store) for s in file.servers]})
        return
    if not file.servers:
        pages.print_notice(f"{NO_SERVERS}; {ADD_HINT}")
        return
    rows = [(server.name, _OFFERED[server.offer], _known(server, store), server.location) for server in file.servers]
    pages.print_lines(render_rows([tuple(map(sanitize, row)) for row in rows], pages.terminal_width()))


@app.command("test")
def test(names: Names = None, *, as_json: JsonOption = False, cwd: flag.Folder = None) -> None:
    """Start servers, log in if they ask for it, and show what they offer. Exits with 1 if one fails."""
    servers = _choose(_servers(), names or [])
    from cli.pages.mcp_pages import print_reports, test_servers

    reports = test_servers(servers, cwd)
    if as_json:
        pages.print_json({"servers": [report.to_json() for report in reports]})
    else:
        print_reports(reports)
    raise typer.Exit(exit_codes.OK if all(report.listing for report in reports) else exit_codes.FAILED)


@app.command("import")
def import_(
    file: Source = None, *, yes: YesOption = False, replace: Replace = False, as_json: JsonOption = False
) -> None:
    """Import servers from Claude Code or VS Code. Shows them first, and starts none."""
    from cli.pages.mcp_pages import import_lines, save_servers
    from tooling.mcp.imports import read_foreign_file

    environ = os_environ()
    source = file or Path(environ.get("HOME", "~")) / ".claude.json"
    try:
        found = read_foreign_file(source)
    except OSError as error:
        raise InputError(f"{source} cannot be read: {error.strerror}") from error
    except ServerProblem as problem:
        raise InputError(str(problem)) from problem
    known = {server.name for server in user_servers(environ).servers}
    wanted = [one for one in found if one.server and (replace or one.server.name not in known)]
    target = server_file(environ)
    pages.print_notice("\n".join(sanitize(line) for line in import_lines(found, wanted, target)))
    is_sure = bool(wanted) and (yes or _confirm(f"add {len(wanted)} to {target}?"))
    if is_sure:
        save_servers(target, wanted)
    if as_json:
        names = [one.server.name for one in wanted if one.server]
        pages.print_json({"file": str(target), "imported": names if is_sure else [], "found": [f.name for f in found]})


@app.command("serve")
def serve(
    *,
    http: Http = False,
    port: Port = 0,
    cwd: flag.Folder = None,
    model: flag.Model = None,
    approval_mode: flag.Mode = None,
    allow: flag.Allow = None,
    deny: flag.Deny = None,
    allow_net: flag.AllowNet = None,
    max_budget_usd: flag.MaxBudget = None,
    profile: flag.Profile = None,
) -> None:
    """Be an MCP server for other agents.

    They can run and plan tasks, see their state, and answer questions and approvals.
    """
    given = dict(locals())
    from cli.mcp_server.serve import ServeOptions, serve_mcp

    settings = ("model", "approval_mode", "allow", "deny", "allow_net", "max_budget_usd")
    options = ServeOptions(
        is_http=http,
        port=port,
        cwd=cwd,
        flags={name: given[name] for name in settings if given[name] is not None},
        profile=profile,
    )
    raise typer.Exit(serve_mcp(options))


def _servers() -> ServerFile:
    file = user_servers(os_environ())
    for problem in file.problems:
        typer.echo(f"warning: {sanitize(problem)}", err=True)
    return file


def _choose(file: ServerFile, names: list[str]) -> tuple[McpServer, ...]:
    if not file.servers:
        raise InputError(NO_SERVERS, ADD_HINT)
    known = {server.name: server for server in file.servers}
    if unknown := [name for name in names if name not in known]:
        raise UsageError(
            f"there is no MCP server {unknown[0]!r}{did_you_mean(unknown[0], list(known))}",
            "`agent mcp list` shows them",
        )
    return tuple(known[name] for name in names) or tuple(s for s in file.servers if s.offer != "never")


def _entry(server: McpServer, store: ListingStore) -> JsonObject:
    listing = store.load(server)
    return {**describe_entry(server), "known_tools": None if listing is None else [tool.name for tool in listing.tools]}


def _known(server: McpServer, store: ListingStore) -> str:
    listing = store.load(server)
    if listing is None:
        return "not tested"
    return "1 tool" if len(listing.tools) == 1 else f"{len(listing.tools)} tools"


def _confirm(question: str) -> bool:
    if not sys.stdin.isatty():
        raise UsageError(pages.NO_CONFIRMATION, "--yes imports without asking")
    return typer.confirm(question, err=True)
