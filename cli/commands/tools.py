"""`agent tools`: list, show and call the tools of the model."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated

import typer

from agent.config.load import load_settings
from agent.config.user_dirs import os_environ
from agent.mcp_setup import known_tools
from agent.plugins.find import load_full_catalog
from agent.vocabulary import exit_codes
from agent.vocabulary.errors import UsageError
from cli.pages import pages
from cli.pages.columns import render_rows
from cli.run import flags as flag
from cli.run.flag_checks import check_flags
from cli.run.progress import print_stderr
from cli.tool_arguments import parse_arguments
from tooling.contract.json_codec import did_you_mean, encode
from tooling.contract.result import ToolResult
from tooling.contract.tool import ToolSpec
from tooling.tool_catalog import ToolCatalog

app = typer.Typer(no_args_is_help=True)
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of a tool.")]
Words = Annotated[
    list[str] | None, typer.Argument(metavar="KEY=VALUE…", help="Arguments; use KEY:=JSON for JSON values.")
]
OUTPUT_NOT_SAVED = "note: full outputs are saved only in a run; the file named in this output was deleted"
_FETCH = "fetch_page"
_REFUSED = ("denied", "deferred", "blocked")


@app.command("list")
def list_tools(*, as_json: JsonOption = False) -> None:
    """List the tools. --json prints the schemas that the model sees."""
    catalog = _catalog()
    if as_json:
        typer.echo(json.dumps([spec.to_openai_tool() for spec in catalog.specs], indent=2))
        return
    rows = [
        (spec.name, spec.effect, pages.one_line(spec.description.partition("\n")[0], 120)) for spec in catalog.specs
    ]
    paint = pages.stdout_colors()
    pages.print_table(render_rows(rows, pages.terminal_width(), tones=["accent"] * len(rows), paint=paint))


@app.command("show")
def show(name: Name) -> None:
    """Show a tool's description, arguments and time limit."""
    pages.print_page(_spec_lines(_find_spec(name, _catalog())), is_wrapped=False)


@app.command("call")
def call(
    name: Name,
    words: Words = None,
    *,
    as_json: JsonOption = False,
    cwd: flag.Folder = None,
    add_dirs: flag.AddDirs = None,
    backend: flag.Backend = None,
    docker_image: flag.Image = None,
    allow_net: flag.AllowNet = None,
    mode: flag.Mode = None,
    allow: flag.Allow = None,
    deny: flag.Deny = None,
    assignments: flag.Assignments = None,
) -> None:
    """Call one tool as the model would. Checks, approvals, sandbox and limits apply; exits with the call's code."""
    check_flags(locals())
    from agent.diagnostics.one_call import call_tool
    from cli.run.standalone_call import CallOptions, run_standalone

    # Warnings about plugins that cannot be loaded are printed when the call is made.
    offered = known_tools(os_environ()) if name.startswith("mcp__") else {}
    spec = offered[name][1] if name in offered else _find_spec(name, _load_catalog())
    arguments = parse_arguments(words or (), spec)
    servers = (offered[name][0],) if name in offered else ()
    options = CallOptions(
        cwd=cwd,
        add_dirs=tuple(add_dirs or ()),
        flags={
            "backend": backend,
            "docker_image": docker_image,
            "allow_net": allow_net,
            "approval_mode": mode,
            "allow": [*(allow or ()), *_host_rules(name, arguments)] or None,
            "deny": deny,
        },
        assignments=tuple(assignments or ()),
    )
    result = run_standalone(
        options, lambda environment: call_tool(name, arguments, replace(environment, mcp_servers=servers))
    )
    raise typer.Exit(_print_result(name, result, as_json=as_json))


def _host_rules(name: str, arguments: Mapping[str, object]) -> list[str]:
    """Return a rule for the host of a typed URL: a user who types it need not be asked."""
    from tooling.web.addresses.url_check import AddressRefused, parse_url, with_scheme

    url = arguments.get("url")
    if name != _FETCH or not isinstance(url, str):
        return []
    try:
        return [f"{name} {parse_url(with_scheme(url), allow_loopback=True).host}"]
    except AddressRefused:
        return []


def _print_result(name: str, result: ToolResult, *, as_json: bool) -> int:
    """Print the text that the model would read, to stderr if the call failed; return the exit code."""
    code = exit_codes.APPROVAL if result.meta.status in _REFUSED else result.exit_code
    if as_json:
        document = {"tool": name, "status": result.meta.status, "exit_code": code, "content": result.content}
        document |= {} if result.display is None else {"display": result.display}
        document |= {"changes": encode(result.meta.changes)} if result.meta.changes else {}
        pages.print_json(document)
        return code
    if result.meta.output_path:
        print_stderr(OUTPUT_NOT_SAVED)
    if result.is_ok:
        pages.print_text(result.content + "\n")
    else:
        print_stderr(result.content)
    return code


def _find_spec(name: str, catalog: ToolCatalog) -> ToolSpec:
    specs = {spec.name: spec for spec in catalog.specs}
    if name not in specs:
        raise UsageError(
            f"there is no tool {name!r}{did_you_mean(name, list(specs))}", "`agent tools list` shows them all"
        )
    return specs[name]


def _load_catalog() -> ToolCatalog:
    environ = os_environ()
    return load_full_catalog(environ, load_settings(environ=environ).settings)


def _catalog() -> ToolCatalog:
    catalog = _load_catalog()
    offered = tuple(spec for _, spec in known_tools(os_environ()).values())
    catalog = replace(catalog, specs=(*catalog.specs, *offered))
    for warning in catalog.warnings:
        typer.echo(f"warning: {warning}", err=True)
    return catalog


def _spec_lines(spec: ToolSpec) -> list[str]:
    limit = f"{spec.timeout_ms / 1000:g} s" if spec.timeout_ms else "set by the tool"
    parameters = json.dumps(spec.parameters, indent=2)
    effect = f"{spec.effect}, always needs approval" if spec.requires_approval else spec.effect
    return [spec.name, f"  {spec.description}", f"  effect: {effect}", f"  time limit: {limit}", parameters]
