"""`agent approvals`: the log of requested approvals and decisions."""

from collections.abc import Sequence
from itertools import islice
from typing import Annotated

import typer

from agent.config.user_dirs import data_dir, os_environ
from agent.sessions.store import SessionStore
from agent.sessions.views.approvals import ApprovalRecord, approval_log
from cli.pages.columns import Column, render_table
from cli.pages.pages import format_time, print_json, print_table, short_ids, stdout_colors, terminal_width
from cli.screen.colors import Tone
from tooling.contract.action import USER
from tooling.contract.json_codec import encode
from tooling.safety.hidden_characters import escape_hidden

app = typer.Typer(no_args_is_help=True)

_DEFAULT_LIMIT = 30
_SCOPES = {"run": "this run", "project": "this folder", "always": "always"}
_TONES: dict[str, Tone] = {"allow": "good", "deny": "warn", "fail": "bad"}


@app.command("log")
def show_log(
    *,
    session: Annotated[
        str | None, typer.Option("--session", metavar="SESSION", help="Only approvals of this session.")
    ] = None,
    limit: Annotated[
        int, typer.Option("--limit", "-n", min=1, metavar="N", help="Maximum number to list.")
    ] = _DEFAULT_LIMIT,
    unasked: Annotated[
        bool, typer.Option("--unasked", help="Also list what ran, was written or reached without asking.")
    ] = False,
    show_all: Annotated[bool, typer.Option("--all", "-a", help="List all.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List what was asked and decided, newest first. With the rule and the file it was saved in."""
    records = approval_log(SessionStore(data_dir(os_environ())), session, with_unasked=unasked)
    # The sessions are sorted by their last change, so the newest requests are not simply the first.
    newest = sorted(records, key=lambda record: record.asked_at, reverse=True)
    chosen = list(islice(newest, None if show_all else limit))
    if as_json:
        print_json(encode(chosen))
    else:
        print_table(_table(chosen, terminal_width()) if chosen else ["(no approvals)"])


def _table(records: Sequence[ApprovalRecord], width: int | None) -> list[str]:
    runs = [record.run_id for record in records]
    columns = [
        Column(
            header="ASKED", cells=[format_time(record.asked_at) for record in records], tone="quiet", drop_priority=3
        ),
        Column(
            header="DECISION",
            cells=[record.decision for record in records],
            tones=[_TONES.get(record.decision, "quiet") for record in records],
        ),
        Column(header="BY", cells=[_decided_by(record) for record in records], drop_priority=1),
        Column(header="RUN", cells=runs if width is None else short_ids(runs), tone="quiet", drop_priority=6),
        Column(header="STEP", cells=[record.step_id or "" for record in records], tone="accent", drop_priority=5),
        Column(header="RULE", cells=[_rule(record) for record in records], min_width=10, drop_priority=4),
        Column(header="WHAT", cells=[_subject(record) for record in records], min_width=28),
    ]
    return render_table(columns, width, stdout_colors())


def _decided_by(record: ApprovalRecord) -> str:
    scope = f", {_SCOPES[record.scope]}" if record.scope in _SCOPES else ""
    return f"you{scope}" if record.by == USER else record.by


def _rule(record: ApprovalRecord) -> str:
    """Return the rule that decided or was saved; for a refusal, the one that would allow the action."""
    return escape_hidden(record.rule) + (f" in {record.saved_in}" if record.saved_in else "")


def _subject(record: ApprovalRecord) -> str:
    # Calls of some tools, such as MCP tools, begin with their name.
    is_named = record.tool in (None, "run_command") or record.command.split(" ")[0] == record.tool
    tool = "" if is_named else f"{record.tool} "
    edited = f" → {escape_hidden(record.edited_command)}" if record.edited_command else ""
    return f"{tool}{escape_hidden(record.command)}{edited}"
