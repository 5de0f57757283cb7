"""`agent tools`: what the model may use."""

import json
from typing import Annotated

import typer

from agent.backends.catalogue import ToolCatalogue, read_catalogue
from agent.vocabulary.errors import UsageError
from tooling.contract.shape import nearest
from tooling.contract.tool import ToolSpec

app = typer.Typer(help="What the model may use.", no_args_is_help=True)
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command("list")
def list_tools(*, as_json: JsonOption = False) -> None:
    """List the tools with one line each; --json prints exactly the schemas a model is shown."""
    catalogue = _catalogue()
    if as_json:
        typer.echo(json.dumps([spec.to_openai_tool() for spec in catalogue.specs], indent=2))
        return
    width = max(len(spec.name) for spec in catalogue.specs)
    for spec in catalogue.specs:
        typer.echo(f"{spec.name:<{width}}  {spec.effect:<7}  {spec.description.partition(chr(10))[0]}")


@app.command("show")
def show(name: Annotated[str, typer.Argument(metavar="NAME", help="Name of a tool.")]) -> None:
    """Show one tool: what it does, what it takes, how long it may take."""
    specs = {spec.name: spec for spec in _catalogue().specs}
    if name not in specs:
        raise UsageError(f"there is no tool {name!r}{nearest(name, list(specs))}", "`agent tools list` shows them all")
    typer.echo("\n".join(_lines(specs[name])))


def _catalogue() -> ToolCatalogue:
    catalogue = read_catalogue()
    for warning in catalogue.warnings:
        typer.echo(f"warning: {warning}", err=True)
    return catalogue


def _lines(spec: ToolSpec) -> list[str]:
    limit = f"{spec.timeout_ms / 1000:g} s" if spec.timeout_ms else "its own"
    parameters = json.dumps(spec.parameters, indent=2)
    return [spec.name, f"  {spec.description}", f"  effect: {spec.effect}", f"  time limit: {limit}", parameters]
