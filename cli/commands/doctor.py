"""`agent doctor`: check the setup."""

import asyncio
import json
from typing import Annotated

import typer

from agent.config.user_dirs import os_environ
from agent.diagnostics.health import run_checks
from agent.vocabulary import exit_codes
from cli.pages.columns import render_rows
from cli.pages.pages import print_table, stdout_colors, terminal_width
from cli.screen.colors import Tone
from tooling.contract.json_codec import encode

_MARKS = {"ok": "ok", "note": "--", "problem": "!!"}
_TONES: dict[str, Tone] = {"ok": "good", "note": "quiet", "problem": "bad"}


def command(*, as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """Check your setup. Exits with 1 if something is missing."""
    findings = asyncio.run(run_checks(os_environ()))
    is_ok = all(finding.state != "problem" for finding in findings)
    if as_json:
        typer.echo(json.dumps({"ok": is_ok, "findings": encode(findings)}, indent=2))
    else:
        rows = [(_MARKS[finding.state], finding.name, finding.detail) for finding in findings]
        tones = [_TONES[finding.state] for finding in findings]
        print_table(render_rows(rows, terminal_width(), tones=tones, paint=stdout_colors()))
    raise typer.Exit(exit_codes.OK if is_ok else exit_codes.FAILED)
