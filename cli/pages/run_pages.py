"""Pages about runs: the list, one run with its plan, and the evidence for one step."""

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from agent.sessions.views.listing import RunRow
from agent.sessions.views.run_summary import CallView, RunView, StepView
from agent.vocabulary.effects import EffectRecord
from cli.pages.columns import Column, render_table
from cli.pages.pages import format_age, format_time, indent_lines, one_line, short_ids, status_tone, status_word
from cli.pages.session_pages import cost_or_dash
from cli.screen.colors import Paint, Tone
from cli.screen.format import COMMAND_TOOLS, WILL_RUN, format_cost, format_count, format_duration, runnable_lines
from tooling.contract.result import FileChange
from tooling.safety.hidden_characters import escape_hidden

if TYPE_CHECKING:
    from agent.sessions.views.evidence import Evidence


IN_DOUBT = "in doubt"
_EFFECT_TONES: dict[str, Tone] = {IN_DOUBT: "bad", "done": "good", "skipped": "quiet"}
FULL_OUTPUT_IN = "full output in"
_MAX_CHANGED = 50


def runs_table(rows: Sequence[RunRow], width: int | None, paint: Paint | None = None) -> list[str]:
    """Return the list of runs; on a terminal their ids are short."""
    shorten = list if width is None else short_ids
    ids, sessions = shorten([row.run_id for row in rows]), shorten([row.session_id for row in rows])
    columns = [
        Column(header="ID", cells=ids, tone="accent"),
        Column(header="SESSION", cells=sessions, tone="quiet", drop_priority=6),
        Column(header="AGE", cells=[format_age(row.started_at) for row in rows], tone="quiet", drop_priority=2),
        Column(
            header="STATUS",
            cells=[row.status if width is None else status_word(row.status) for row in rows],
            tones=[status_tone(row.status) for row in rows],
            drop_priority=1,
        ),
        Column(header="STEPS", cells=[f"{row.steps_ok}/{row.steps}" for row in rows], drop_priority=5),
        Column(header="TIME", cells=[_format_duration(row.duration_ms) for row in rows], drop_priority=4),
        Column(header="COST", cells=[cost_or_dash(row.cost_usd) for row in rows], drop_priority=3),
        Column(header="REQUEST", cells=[one_line(row.request, 200) for row in rows], min_width=24),
    ]
    return render_table(columns, width, paint)


def effects_table(effects: Sequence[EffectRecord], width: int | None, paint: Paint | None = None) -> list[str]:
    """Return the list of effects outside the workspace, in the order of their start."""
    statuses = [_effect_status(effect) for effect in effects]
    columns = [
        Column(header="TIME", cells=[format_time(effect.started_at) for effect in effects], drop_priority=3),
        Column(header="STEP", cells=[effect.step_id or "-" for effect in effects], tone="quiet", drop_priority=2),
        Column(header="KIND", cells=[effect.kind for effect in effects]),
        Column(header="STATUS", cells=statuses, tones=[_EFFECT_TONES.get(status, "plain") for status in statuses]),
        Column(header="KEY", cells=[effect.effect_id for effect in effects], tone="quiet", drop_priority=1),
        Column(header="TARGET", cells=[one_line(effect.target, 200) for effect in effects], min_width=20),
    ]
    return render_table(columns, width, paint)


def _effect_status(effect: EffectRecord) -> str:
    return IN_DOUBT if effect.is_in_doubt else effect.status


def render_run(run: RunView, *, status: str, width: int | None) -> Iterator[str]:
    """Yield the lines of a run: its request, plan, steps, cost and answer."""
    ending = "" if run.exit_code is None else f", exit {run.exit_code}"
    yield f"{run.run_id}  {status}{ending}"
    yield f"  session  {run.session_id}"
    yield f"  started  {format_time(run.started_at)}" + (
        f", took {_format_duration(run.duration_ms)}" if run.duration_ms else ""
    )
    yield f"  folder   {one_line(run.cwd, 1000)}"
    yield f"  model    {one_line(run.model, 200) or 'none'}"
    if run.usage:
        cached = f" ({format_count(run.usage.cache_read_tokens)} cached)" if run.usage.cache_read_tokens else ""
        tokens = (
            f"{format_count(run.usage.input_tokens)} tokens in{cached}, {format_count(run.usage.output_tokens)} out"
        )
        yield f"  cost     {cost_or_dash(run.usage.cost_usd)}  ({tokens}, {run.usage.requests} requests)"
    if run.verified is not None:
        yield f"  verified {'yes' if run.verified else 'no'}"
    if run.resumes:
        yield f"  resumes  {run.resumes}"
    yield "request:"
    yield from indent_lines(run.request)
    if run.steps:
        yield "plan:"
        yield from (f"  {line}" for line in _steps_table(run.steps, None if width is None else width - 2))
    for revision in run.revisions:
        yield f"plan {revision.revision}, {one_line(revision.reason, 200)}:"
        yield from indent_lines(revision.diff)
    yield from (f"warning: {one_line(text, 400)}" for text in run.warnings)
    yield from (f"error: {one_line(text, 400)}" for text in run.errors)
    yield from (f"denied: {one_line(text, 400)}" for text in (*run.permission_denials, *run.deferred))
    yield from (f"changed: {one_line(path, 400)}" for path in _changed_paths(run))
    if run.will_run:
        yield WILL_RUN
        yield from runnable_lines(run.will_run)
    if run.answer:
        yield "answer:"
        yield from indent_lines(run.answer)


def render_evidence(evidence: "Evidence") -> Iterator[str]:
    """Yield the lines of a step's evidence: its task, calls with their results, changes, checks and answer."""
    step = evidence.step
    took = f" in {_format_duration(step.elapsed_ms)}" if step.elapsed_ms else ""
    yield f"{step.id}: {one_line(step.title, 200)}"
    yield f"  {step.status}{took}" + (f", {step.attempts} attempts" if step.attempts > 1 else "")
    yield f"  session {evidence.session_id}, {' and '.join(evidence.runs) or 'not started'}"
    yield from _section("task", step.instruction)
    for call in step.calls:
        yield from ("", *_call_lines(call))
    for change in step.changes:
        yield from ("", f"changed: {one_line(change.path, 400)} {_change_counts(change)}", *indent_lines(change.diff))
    if step.verify and not any(call.is_check for call in step.calls):
        yield from ("", f"check: {one_line(step.verify, 400)}: not run")
    yield from ("", *_section("answer", evidence.answer))


def _call_lines(call: CallView) -> Iterator[str]:
    """Yield the lines of one call: the command or code that it ran, else the tool with its arguments."""
    if call.name in COMMAND_TOOLS:
        text = str(call.input.get("command") or call.input.get("code", ""))
        command = "\n".join(map(escape_hidden, text.split("\n")))
        yield from _section("checked" if call.is_check else "ran", command)
    else:
        yield f"called: {one_line(call.name, 100)} {one_line(json.dumps(dict(call.input), ensure_ascii=False), 400)}"
    ending = call.status if call.exit_code is None else f"{call.status}, exit {call.exit_code}"
    verdict = (": passed" if call.exit_code == 0 else ": failed") if call.is_check else ""
    file = f"; {FULL_OUTPUT_IN} {one_line(call.output_file, 1000)}" if call.output_file else ""
    yield f"ended: {ending}{verdict}{file}"
    yield from indent_lines(call.output)


def _changed_paths(run: RunView) -> Iterator[str]:
    """Yield the files that a run changed, with tools and with commands."""
    found = [change.path for step in run.steps for change in step.changes if change.kind != "folder"]
    paths = list(dict.fromkeys((*run.artifacts, *found)))
    yield from paths[:_MAX_CHANGED]
    if len(paths) > _MAX_CHANGED:
        yield f"{len(paths) - _MAX_CHANGED} more; `agent sessions diff` shows them"


def _change_counts(change: FileChange) -> str:
    return f"({change.status}, +{change.added_lines} -{change.deleted_lines})"


def _section(name: str, text: str) -> Iterator[str]:
    lines = indent_lines(text)
    if len(lines) == 1:
        yield f"{name}: {lines[0].strip()}"
    elif lines:
        yield f"{name}:"
        yield from lines


def _steps_table(steps: Sequence[StepView], width: int | None) -> list[str]:
    after = [f"after {', '.join(step.depends_on)}" if step.depends_on else "" for step in steps]
    columns = [
        Column(header="STEP", cells=[step.id for step in steps]),
        Column(header="STATUS", cells=[_step_status(step) for step in steps]),
        Column(header="TIME", cells=[_format_duration(step.elapsed_ms) for step in steps], drop_priority=2),
        Column(
            header="COST",
            cells=["" if step.cost_usd is None else format_cost(step.cost_usd) for step in steps],
            drop_priority=3,
        ),
        Column(header="AFTER", cells=after, min_width=10, drop_priority=1),
        Column(header="TITLE", cells=[step.title for step in steps], min_width=12),
    ]
    return render_table(columns, width)


def _step_status(step: StepView) -> str:
    checked = {True: ", verified", False: ", check failed", None: ""}[step.verified]
    cached = f" ({step.cache})" if step.cache != "miss" else ""
    return f"{step.status}{checked}{cached}"


def _format_duration(milliseconds: int) -> str:
    return format_duration(milliseconds / 1000) if milliseconds else "-"
