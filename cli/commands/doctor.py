"""`agent doctor`: check that everything a run needs is there."""

import asyncio
import json
from typing import Annotated

import typer

from agent.config.places import os_environ
from agent.diagnostics.health import examine
from agent.vocabulary import exit_codes
from cli.pages.columns import rows
from cli.pages.pages import show, width
from tooling.contract.json_codec import encode

_MARKS = {"ok": "ok", "note": "--", "problem": "!!"}


def command(*, as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """Check that everything a run needs is there; exit 1 when something is missing."""
    findings = asyncio.run(examine(os_environ()))
    is_well = all(finding.state != "problem" for finding in findings)
    if as_json:
        typer.echo(json.dumps({"ok": is_well, "findings": encode(findings)}, indent=2))
    else:
        show(rows([(_MARKS[finding.state], finding.name, finding.detail) for finding in findings], width()))
    raise typer.Exit(exit_codes.OK if is_well else exit_codes.FAILED)
