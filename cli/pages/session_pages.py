"""Pages about sessions: the list, one session, and search results."""

import re
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

from rich.cells import cell_len

from agent.sessions.views.listing import SessionRow
from agent.sessions.views.session_search import SessionHit
from agent.sessions.views.session_summary import RunRecord, SessionRecord
from cli.pages.columns import Column, render_table
from cli.pages.pages import format_age, format_time, one_line, short_ids, status_tone, status_word
from cli.screen.colors import Paint, clip_line
from cli.screen.format import format_cost, format_duration, shorten_path

_LINE_CHARS = 100


def sessions_table(rows: Sequence[SessionRow], width: int | None, paint: Paint | None = None) -> list[str]:
    """Return the list of sessions; on a terminal their ids are short."""
    ids = [row.id for row in rows]
    columns = [
        Column(header="ID", cells=ids if width is None else short_ids(ids), tone="accent"),
        Column(header="AGE", cells=[format_age(row.updated_at) for row in rows], tone="quiet", drop_priority=2),
        Column(header="RUNS", cells=[str(row.runs) for row in rows], drop_priority=4),
        Column(
            header="STATUS",
            cells=[row.status if width is None else status_word(row.status) for row in rows],
            tones=[status_tone(row.status) for row in rows],
            drop_priority=1,
        ),
        Column(header="COST", cells=[cost_or_dash(row.cost_usd) for row in rows], drop_priority=3),
        Column(
            header="FOLDER", cells=[_format_folder(row) for row in rows], min_width=12, tone="quiet", drop_priority=5
        ),
        Column(header="TITLE", cells=[one_line(row.title, 200) for row in rows], min_width=24),
    ]
    return render_table(columns, width, paint)


def render_session(record: SessionRecord, *, title: str, status: str) -> list[str]:
    """Return the lines of a session and its newest runs, oldest first."""
    lines = [
        f"{record.id}  {one_line(title, 200)}",
        f"  created  {format_time(record.created_at)}",
        f"  updated  {format_time(record.updated_at)}",
        f"  folder   {one_line(record.cwd, 1000)}",
        f"  status   {status}",
        f"  cost     {cost_or_dash(record.cost_usd)}",
    ]
    if older := record.run_count - len(record.runs):
        lines.append(f"  older    {older} more; `agent runs list --session {record.id} --all` lists them")
    return [*lines, *(line for run in record.runs for line in _run_lines(run))]


def hits_table(hits: Sequence[SessionHit]) -> list[str]:
    """Return search results as plain rows, for a pipe."""
    columns = [
        Column(header="SESSION", cells=[hit.session_id for hit in hits]),
        Column(header="RUN", cells=[hit.run_id for hit in hits]),
        Column(header="IN", cells=[hit.where for hit in hits]),
        Column(header="LINE", cells=[one_line(hit.line, 300) for hit in hits]),
    ]
    return render_table(columns, None)


def highlight_hits(hits: Sequence[SessionHit], text: str, *, width: int, paint: Paint) -> list[str]:
    """Return search results grouped by session, with the matching text highlighted."""
    pattern = re.compile(re.escape(" ".join(text.split())), re.IGNORECASE)
    lines: list[str] = []
    for session, group in groupby(hits, key=lambda hit: hit.session_id):
        lines.append(paint("accent", session))
        for hit in group:
            head = f"  {hit.where}: "
            line = _excerpt(one_line(hit.line, 300), pattern, width - cell_len(head))
            lines.append(paint("quiet", head) + pattern.sub(lambda match: paint("warn", match[0]), line))
    return lines


def _excerpt(line: str, pattern: re.Pattern[str], width: int) -> str:
    """Return the part of a line around its first match."""
    match = pattern.search(line)
    if match and cell_len(line[: match.end()]) >= width:
        line = "…" + line[max(0, match.start() - width // 3) :]
    return clip_line(line, width)


def cost_or_dash(usd: float | None) -> str:
    """Format a cost: `?` if it is unknown, `-` if it is zero."""
    return "?" if usd is None else format_cost(usd) if usd else "-"


def _format_folder(row: SessionRow) -> str:
    """Return the folder of a session; the path of its own workspace is not worth showing."""
    return "(workspace)" if Path(row.cwd).parent.name == row.id else shorten_path(row.cwd)


def _run_lines(run: RunRecord) -> list[str]:
    known = [run.subtype, *([f"exit {run.exit_code}"] if run.exit_code is not None else [])]
    known += [format_duration(run.duration_ms / 1000)] if run.duration_ms else []
    lines = [
        f"{run.run_id}  {format_time(run.date)}  {', '.join(known)}",
        f"  request   {one_line(run.user, _LINE_CHARS)}",
    ]
    lines += [f"  {step.id:<8}  {step.status}: {one_line(step.summary, _LINE_CHARS)}" for step in run.step_results]
    return [*lines, f"  answer    {one_line(run.final, _LINE_CHARS)}"]
